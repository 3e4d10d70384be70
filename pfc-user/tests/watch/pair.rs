//! A pair of which one end goes and comes back.

use std::time::Instant;

use nix::sys::signal::Signal;
use validator::driver::kernel::packet::PacketSocket;

use crate::common::need_root;
use crate::watch::counting::datagram;
use crate::watch::exposition::{self, Key, listening, scrape};
use crate::watch::lab::{BEYOND, Lab, PATIENCE};
use crate::watch::loss::judged;

/// Both ends, and the directions that they count.
const ENDS: [(&str, &str); 2] = [("t0", "transmit"), ("t1", "receive")];
/// Frames of priority 3 that pass an end at a time.
const FRAMES: usize = 5;

/// Name and labels of a sample of an end.
fn series(end: usize, name: &str, more: &[(&str, &str)]) -> Key {
    let (interface, direction) = ENDS[end];
    let own = [
        ("interface", interface),
        ("direction", direction),
        ("pair", "t0:t1"),
    ];
    exposition::series(name, &own, more)
}

fn frames(end: usize) -> Key {
    series(end, "priority_frames_total", &[("priority", "3")])
}

/// Lets frames of priority 3 pass an end.
fn pass(lab: &Lab, end: usize) {
    if end == 0 {
        let sender = lab.sender(3);
        for _ in 0..FRAMES {
            sender.send_to(&[0; 22], (BEYOND, 9)).unwrap();
        }
    } else {
        let open = || PacketSocket::open("d1").unwrap();
        let sender = lab.device.run(open).unwrap();
        for _ in 0..FRAMES {
            sender.send(&datagram(3, &[])).unwrap();
        }
    }
}

#[test]
fn root_an_end_that_comes_back_is_counted_on_and_no_loss_is_told() {
    if !need_root("root_an_end_that_comes_back_is_counted_on_and_no_loss_is_told") {
        return;
    }
    for (gone, (interface, _)) in ENDS.into_iter().enumerate() {
        let lab = Lab::new();
        let (mut running, address) = listening(&lab, "--loss t0:t1 --interval 20ms");
        let await_frames = |end: usize, times: usize| {
            let (begin, expected) = (Instant::now(), (FRAMES * times) as f64);
            while scrape(&lab, address).get(&frames(end)) != Some(&expected) {
                assert!(
                    begin.elapsed() < PATIENCE,
                    "{}: not {expected}",
                    ENDS[end].0
                );
            }
        };
        for end in [0, 1] {
            pass(&lab, end);
            await_frames(end, 1);
        }

        lab.ip(&lab.tester, &format!("link delete {interface}"));
        running.event("removed");
        // The other end alone counts on: without the series of this one, there is no difference.
        let left = 1 - gone;
        pass(&lab, left);
        await_frames(left, 2);
        let samples = scrape(&lab, address);
        assert_eq!(samples.get(&frames(gone)), None, "{interface}");
        assert_eq!(samples[&series(gone, "port_up", &[])], 0.0);
        assert_eq!(samples[&series(left, "port_up", &[])], 1.0);

        lab.pair("new", gone);
        lab.ip(&lab.tester, "link set dev new down");
        lab.ip(&lab.tester, &format!("link set dev new name {interface}"));
        lab.ip(&lab.tester, &format!("link set dev {interface} up"));
        if gone == 0 {
            lab.address();
        }
        running.wait_for("counted again", |object| {
            assert_ne!(object["type"], "loss", "{object}");
            object["event"] == "counted-again" && object["interface"] == interface
        });
        assert_eq!(scrape(&lab, address)[&series(gone, "port_up", &[])], 1.0);
        pass(&lab, gone);
        await_frames(gone, 2);
        pass(&lab, left);
        await_frames(left, 3);

        running.signal(Signal::SIGINT);
        let (objects, code) = running.end();
        assert_eq!(code, Some(130));
        let report = judged(&objects);
        assert_eq!(report["verdict"], "inconclusive", "{report:#}");
        assert_eq!(report["reason"], format!("{interface} was removed"));
    }
}
