//! The MAD tester's port: a simulated DUT of our own, a server of ibsim's protocol, or a real adapter.

pub mod m_key;
pub mod timing;
