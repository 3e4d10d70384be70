//! The sender in the kernel: what it says it sent, against what arrives at the other end of a veth pair.

mod bench;

use pfc_ebpf::stamp::Phase;
use validator::driver::traffic::Source;

use self::bench::*;

#[test]
fn root_every_frame_let_go_is_received_or_told_as_lost() {
    on_a_wire(|| {
        let flows = [flow(0, 3, None, rate(20_000_000, 64), 64)];
        let mut wire = Setup::new(&flows).open().unwrap();
        wire.burst(Phase::Baseline, 200 * MS);
        let sent = wire.sender.report().unwrap();
        println!("{sent:?}");
        let received = wire.rx.received(Phase::Baseline).unwrap();
        assert!(received > 0);
        assert_eq!(received, total(&sent) - lost(&sent));
    });
}
