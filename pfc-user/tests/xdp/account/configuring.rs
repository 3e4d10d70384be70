//! Counts of the program before, between and after configurations.

use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::account::{Config, FlowConfig};
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::{AccountProgram, Sizes, XdpError};

use super::{PEER, only_flow, run, run_all};
use crate::frames::TestFrame;
use crate::xdp::{PASS, config, flows, loaded, stamp};

#[test]
fn root_without_a_configuration_nothing_counts() {
    let account = AccountProgram::load(Sizes {
        flows: 1,
        windows: 1,
    })
    .unwrap();
    assert_eq!(run(&account, &TestFrame::new(stamp(0, 0)).octets()), PASS);
    assert_eq!(account.port().unwrap(), Default::default());
}

#[test]
fn root_configuring_begins_anew() {
    let mut account = loaded(Trust::Dscp);
    run_all(&account, [0, 1, 1, 5, 4]);
    run(
        &account,
        &MacControl::Pfc {
            vector: 8,
            quanta: [9; 8],
        }
        .emit(PEER),
    );
    account.configure(&config(Trust::Dscp), &flows(8)).unwrap();
    assert_eq!(account.flows().unwrap(), []);
    assert_eq!(account.port().unwrap(), Default::default());
    assert_eq!(account.windows().unwrap(), [[0; 8]; 8]);
    let rings = account.take_rings().unwrap();
    assert_eq!(
        (
            rings.arrivals.len(),
            rings.controls.len(),
            rings.offences.len()
        ),
        (0, 0, 0)
    );
    run_all(&account, [0, 1]);
    let flow = only_flow(&account);
    assert_eq!((flow.frames, flow.duplicate, flow.reordered), (2, 0, 0));
}

#[test]
fn root_more_than_was_loaded_for_is_refused() {
    let mut account = AccountProgram::load(Sizes {
        flows: 2,
        windows: 8,
    })
    .unwrap();
    let message = |result: Result<(), XdpError>| result.unwrap_err().to_string();
    assert_eq!(
        message(account.configure(&config(Trust::Dscp), &flows(3))),
        "flows must be 0 to 2, found 3"
    );
    let wide = Config {
        windows: 9,
        ..config(Trust::Dscp)
    };
    assert_eq!(
        message(account.configure(&wide, &[FlowConfig::default()])),
        "windows must be 1 to 8, found 9"
    );
    assert!(matches!(
        AccountProgram::load(Sizes {
            flows: 4097,
            windows: 1
        }),
        Err(XdpError::OutOfRange(_))
    ));
}
