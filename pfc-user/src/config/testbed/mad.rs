//! The part of a testbed that the MAD cases use.

use std::path::PathBuf;

use ib_mad::mad::MKey;
use ib_mad::sma::fault::Fault;
use ib_mad::smp::Route;

use crate::plan::Nanos;

/// Where the MAD tester's port is, and how to reach the DUT from it.
#[derive(Clone, Debug, PartialEq)]
pub struct MadTestbed {
    /// What packets are sent by.
    pub transport: MadTransport,
    /// Way to the DUT.
    pub route: Route,
    /// Key that the DUT has before the run; 0 for none.
    pub m_key_current: MKey,
    /// M_KEY_DUT; not 0.
    pub m_key_dut: MKey,
    /// M_KEY_OTHER; neither 0 nor M_KEY_DUT.
    pub m_key_other: MKey,
    /// The least time that is waited for an answer.
    pub timeout: Nanos,
}

/// What packets are sent by.
#[derive(Clone, Debug, PartialEq)]
pub enum MadTransport {
    /// A simulated DUT of our own: the tool starts `validator dut sma` and speaks ibsim's protocol with it.
    Sim {
        /// Faults in force.
        faults: Vec<Fault>,
        /// Further arguments for its process.
        args: Vec<String>,
    },
    /// A server of ibsim's socket protocol that runs already.
    Ibsim {
        /// IBSIM_SOCKNAME of the server.
        socket: String,
        /// Node of the fabric that the tester is (SIM_HOST).
        host: String,
    },
    /// A port of a real adapter.
    Umad {
        /// Device, such as `mlx5_0`.
        device: String,
        /// Port, from 1.
        port: u8,
        /// Where sysfs is: `/sys`; another folder in tests.
        sysfs: PathBuf,
    },
}
