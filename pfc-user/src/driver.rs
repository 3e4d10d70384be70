//! The only contact with kernel and devices.

pub mod clock;
pub mod control;
pub mod interrupt;
pub mod journal;
pub mod link;
pub mod mad;
pub mod netns;
pub mod packet;
pub mod process;
pub mod promiscuous;
pub mod rc;
pub mod realtime;
pub mod responder;
pub mod testbed;
pub mod traffic;
pub mod watch;
pub mod xdp;
