//! Each fault of the simulated agent, in virtual time: exactly these checks fail, and an agent
//! without faults passes all.

mod assertions;
pub mod bench;
mod faults;
mod floods;
mod hidden_key;
mod kept;
mod key_in_force;
mod lateness;
mod missing;
mod proof;
mod recovery;
mod returns;
mod strays;
mod surroundings;
