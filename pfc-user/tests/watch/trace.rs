//! `watch --trace`: lines about frames on standard error, and none without it.

use pfc_ebpf::stamp::{Phase, Stamp};
use pfc_ebpf::units::{Priority, Quanta};
use pfc_ebpf::wire::mac_control::MacControl;

use crate::common::need_root;
use crate::frames::TestFrame;
use crate::watch::lab::Lab;

#[test]
fn root_trace_says_what_each_program_sees_and_nothing_unasked() {
    const NAME: &str = "root_trace_says_what_each_program_sees_and_nothing_unasked";
    if !need_root(NAME) {
        return;
    }
    let lab = Lab::new();
    let port = lab.device_port();
    let priority = Priority::new(3).unwrap();
    let pfc = MacControl::pfc([priority], Quanta(65_535)).emit([2, 0, 0, 0, 1, 0]);
    let test = TestFrame::new(Stamp {
        run: 5,
        flow: 2,
        phase: Phase::Drain,
        sequence: 9,
        time: 0,
    })
    .octets();
    for attach in ["skb", "tc"] {
        for trace in ["", " --trace"] {
            let mut running = lab.watch(&format!("t0 --interval 50ms --attach {attach}{trace}"));
            port.send(&pfc).unwrap();
            port.send(&test).unwrap();
            running.wait_for("both frames", |object| {
                object["total"]["frames"].as_u64() >= Some(2)
            });
            let output = running.stopped();
            let expected = [
                "t0: PFC: vector 0x8 times 0 0 0 65535 0 0 0 0: pass",
                "t0: test frame: run 5 flow 2 phase drain sequence 9: pass",
            ];
            for line in expected {
                let found = output.lines().filter(|found| *found == line).count();
                assert_eq!(
                    found,
                    usize::from(!trace.is_empty()),
                    "{attach}{trace}: {line}: {output}"
                );
            }
        }
    }
}
