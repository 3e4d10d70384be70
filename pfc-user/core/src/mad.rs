//! Rules of management datagrams that need no device: what an M_Key protects, and how long an
//! answer may take.

pub mod m_key;
pub mod timing;
pub mod unlock;
