//! Each counter of the XDP program, by BPF_PROG_TEST_RUN, which runs the program in the kernel
//! without an interface.

mod configuring;
mod numbers;
mod octets;
mod others;
mod pause;
mod places;
mod records;

use pfc_ebpf::abi::account::OffenceKind;
use validator::driver::bpf::AccountProgram;
use validator_core::evidence::pfc::FlowReceived;

use crate::frames::TestFrame;
use crate::xdp::{DROP, stamp};

const PEER: [u8; 6] = [0x02, 0, 0, 0, 0, 5];

fn run(account: &AccountProgram, frame: &[u8]) -> u32 {
    account.test_run(frame, 1).unwrap().action
}

fn run_all(account: &AccountProgram, sequences: impl IntoIterator<Item = u64>) {
    for sequence in sequences {
        assert_eq!(
            run(account, &TestFrame::new(stamp(3, sequence)).octets()),
            DROP
        );
    }
}

/// The one flow and phase that was seen.
fn only_flow(account: &AccountProgram) -> FlowReceived {
    let mut flows = account.flows().unwrap();
    assert_eq!(flows.len(), 1, "{flows:?}");
    flows.remove(0)
}

fn kinds(account: &mut AccountProgram) -> Vec<OffenceKind> {
    account
        .take_rings()
        .unwrap()
        .offences
        .into_iter()
        .map(|offence| offence.kind)
        .collect()
}

fn by_priority(account: &AccountProgram) -> [u64; 8] {
    account
        .port_counters()
        .unwrap()
        .by_priority(account.configured())
}
