//! Every BPF program is loaded: `cargo xtask lab kernel` runs this on each kernel of the range.

use pfc_ebpf::maps::Trust;
use pfc_ebpf::units::Priority;
use validator::driver::responder::Responder;
use validator::driver::watch::{Direction, Point, Settings, Watch};
use validator::driver::xdp::{Account, Mode, Sizes};

#[path = "common/mod.rs"]
mod common;

use common::need_root;

fn watch(point: Point) {
    let settings = Settings {
        trust: Trust::Dscp,
        dscp_map: std::array::from_fn(|dscp| Priority::from_low_bits(dscp as u8)),
        line_rate: None,
        capture: true,
        flows: 8,
    };
    if let Err(error) = Watch::load(point, &settings) {
        panic!("{error}");
    }
}

#[test]
fn root_account_is_loaded_with_the_programs_that_send() {
    if !need_root("root_account_is_loaded_with_the_programs_that_send") {
        return;
    }
    let mut account = Account::load(Sizes {
        flows: 8,
        windows: 8,
    })
    .unwrap_or_else(|error| panic!("{error}"));
    let generator = account
        .generator()
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(generator.uncounted(), None);
}

#[test]
fn root_responder_is_loaded() {
    if need_root("root_responder_is_loaded")
        && let Err(error) = Responder::load()
    {
        panic!("{error}");
    }
}

#[test]
fn root_watch_is_loaded_at_xdp() {
    if need_root("root_watch_is_loaded_at_xdp") {
        watch(Point::Xdp(Mode::Auto));
    }
}

#[test]
fn root_watch_is_loaded_at_tc() {
    if need_root("root_watch_is_loaded_at_tc") {
        watch(Point::Tcx(Direction::Ingress));
    }
}
