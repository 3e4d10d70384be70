//! Traffic that cannot be sent, and the choice of the sender.

use std::sync::Arc;

use pfc_ebpf::stamp::Phase;
use pfc_ebpf::units::Quanta;
use pfc_ebpf::wire::mac_control::MacControl;
use validator::config::Sender;
use validator::driver::bpf::{AccountProgram, Sizes, Tracepoints, XdpMode};
use validator::driver::kernel::clock;
use validator::driver::kernel::packet::PacketError;
use validator::driver::storm::ControlSender;
use validator::driver::traffic::live_frames::LiveFrames;
use validator::driver::traffic::{FlowControl, Source, TrafficError, choice};
use validator_core::pacing::pacer::PacingError;
use validator_core::plan::FlowPlan;

use crate::traffic_live::bench::*;
use crate::traffic_wire::wire::ip;

fn refusal(setup: &Setup<'_>) -> TrafficError {
    match setup.open() {
        Ok(_) => panic!("the sender opened"),
        Err(error) => error,
    }
}

#[test]
fn root_what_cannot_be_sent_is_refused_with_the_figures() {
    on_a_wire(|| {
        let at = |length| [flow(0, 3, None, 1_000_000, length)];
        assert!(matches!(
            refusal(&Setup::new(&at(59))),
            TrafficError::Frame(_)
        ));
        // A page has no room for more, whatever the MTU.
        let error = refusal(&Setup::new(&at(3409)));
        assert!(
            matches!(
                error,
                TrafficError::Packet(PacketError::TooLong { length: 3409, .. })
            ),
            "{error}"
        );
        ip("link set dev a mtu 1500");
        let error = refusal(&Setup::new(&at(1519)));
        assert!(
            matches!(
                error,
                TrafficError::Packet(PacketError::TooLong { length: 1519, .. })
            ),
            "{error}"
        );
        assert!(Setup::new(&at(1518)).open().is_ok());
        let error = refusal(&Setup {
            cpus: &[1000],
            ..Setup::new(&at(64))
        });
        assert_eq!(
            error.to_string(),
            "the sender may not run on CPU 1000; `taskset -p` shows those that it may"
        );
        let idle = [FlowPlan {
            rate: 0,
            ..flow(0, 3, None, 1, 64)
        }];
        assert!(matches!(
            refusal(&Setup::new(&idle)),
            TrafficError::Pacing(PacingError::NoRate { index: 0 })
        ));
        ip("link set dev a down");
        assert!(matches!(
            refusal(&Setup::new(&at(64))),
            TrafficError::Packet(PacketError::Down { .. })
        ));
    });
}

#[test]
fn root_more_flows_than_the_program_was_loaded_for_are_refused() {
    on_a_wire(|| {
        let flows: Vec<_> = (0..3).map(|id| flow(id, 0, None, 1_000_000, 64)).collect();
        let mut account = AccountProgram::attach(
            "a",
            XdpMode::Driver,
            Sizes {
                flows: 2,
                windows: WINDOWS,
            },
        )
        .unwrap();
        let setup = Setup::new(&flows);
        let generator = account.generator().unwrap();
        assert!(Arc::ptr_eq(&generator, &account.generator().unwrap()));
        let plan = setup.plan(clock::now());
        let error = LiveFrames::open(&plan, generator, &[0], None)
            .err()
            .unwrap();
        assert!(
            matches!(
                error,
                TrafficError::Room {
                    what: "flows",
                    max: 2,
                    found: 3
                }
            ),
            "{error}"
        );
    });
}

/// The report's word on the sender that is chosen for that many frames a second.
fn chosen(wanted: Sender, frames: u64) -> Result<String, TrafficError> {
    let flows = [flow(0, 3, None, rate(frames, 64), 64)];
    let mut account = AccountProgram::attach(
        "a",
        XdpMode::Driver,
        Sizes {
            flows: 1,
            windows: WINDOWS,
        },
    )
    .unwrap();
    let setup = Setup::new(&flows);
    let mut sender = choice::open(
        &setup.plan(clock::now()),
        wanted,
        FlowControl::Unaware("no DUT".into()),
        || account.generator(),
        drop,
    )?;
    let sent = sender.report()?.report;
    assert_eq!(sent.honours_pfc, "no DUT");
    Ok(sent.method)
}

#[test]
fn root_the_sender_is_the_one_that_rate_and_port_allow() {
    on_a_wire(|| {
        let slow = "sendmmsg (119 kframe/s: the sleeping sender leaves the CPU to others)";
        // The other end has no program: what it does not take would vanish.
        ip("link set dev b up");
        assert_eq!(chosen(Sender::Auto, 119_000).unwrap(), slow);
        let method = chosen(Sender::Auto, 1_000_000).unwrap();
        let reason = "sendmmsg (1000 kframe/s ask for live frames, but the tx port takes no \
                      frames of XDP";
        assert!(method.starts_with(reason), "{method}");
        let error = chosen(Sender::LiveFrames, 1_000_000).unwrap_err();
        assert!(
            matches!(&error, TrafficError::NoLiveFrames { interface, .. } if interface == "a"),
            "{error}"
        );

        let _peer = AccountProgram::attach(
            "b",
            XdpMode::Driver,
            Sizes {
                flows: 1,
                windows: 1,
            },
        )
        .unwrap();
        assert_eq!(chosen(Sender::Auto, 119_000).unwrap(), slow);
        assert_eq!(
            chosen(Sender::Auto, 1_000_000).unwrap(),
            "live frames, 1 core"
        );
        assert_eq!(
            chosen(Sender::LiveFrames, 1000).unwrap(),
            "live frames, 1 core"
        );
        assert_eq!(
            chosen(Sender::Sendmmsg, 1_000_000).unwrap(),
            "sendmmsg (as the testbed says)"
        );
    });
}

#[test]
fn root_too_few_queues_are_named_before_anything_is_sent() {
    on_a_wire(|| {
        for queues in [1, 2, 4] {
            ip("link del dev a");
            let queues = format!("numtxqueues {queues} numrxqueues {queues}");
            ip(&format!(
                "link add dev a up {queues} type veth peer name b {queues}"
            ));
            ip("link set dev b up");
            let sizes = Sizes {
                flows: 64,
                windows: WINDOWS,
            };
            let _peer = AccountProgram::attach("b", XdpMode::Driver, sizes).unwrap();
            let mut account = AccountProgram::attach("a", XdpMode::Driver, sizes).unwrap();
            let flows: [_; 64] =
                std::array::from_fn(|id| flow(id as u16, 3, None, rate(2_000_000, 64), 64));
            let setup = Setup::new(&flows);
            let mut warned = String::new();
            let mut sender = choice::open(
                &setup.plan(clock::now()),
                Sender::Auto,
                FlowControl::Unaware("no DUT".into()),
                || account.generator(),
                |text| warned = text,
            )
            .unwrap();
            assert_eq!(sender.report().unwrap().report.flows, []);
            let number = queues.split(' ').nth(1).unwrap();
            let expected = format!("and {number} of these in use");
            assert!(warned.contains(&expected), "{warned}");
            assert!(
                warned.starts_with("128000 kframe/s want 22 CPUs"),
                "{warned}"
            );
        }
    });
}

#[test]
fn root_without_the_tracepoints_that_count_losses_the_other_sender_is_taken() {
    on_a_wire(|| {
        let _peer = AccountProgram::attach(
            "b",
            XdpMode::Driver,
            Sizes {
                flows: 1,
                windows: 1,
            },
        )
        .unwrap();
        let flows = [flow(0, 3, None, rate(1_000_000, 64), 64)];
        let setup = Setup::new(&flows);
        let kernel = Tracepoints::default();
        for tracepoints in [
            Tracepoints {
                delivered: "no_such",
                ..kernel
            },
            Tracepoints {
                refused: "no_such",
                ..kernel
            },
        ] {
            let open = |wanted| {
                let mut account = AccountProgram::attach(
                    "a",
                    XdpMode::Driver,
                    Sizes {
                        flows: 1,
                        windows: WINDOWS,
                    },
                )
                .unwrap();
                let flow_control = FlowControl::Unaware("no DUT".into());
                let mut sender = choice::open(
                    &setup.plan(clock::now()),
                    wanted,
                    flow_control,
                    || account.generator_counting_by(tracepoints),
                    drop,
                )?;
                Ok(sender.report()?.report.method)
            };
            let method = open(Sender::Auto).unwrap();
            let reason = "1000 kframe/s ask for live frames, but what the kernel loses \
                          of them cannot be counted: ";
            assert!(
                method.starts_with(&format!("sendmmsg ({reason}tracepoint no_such: ")),
                "{method}"
            );
            assert!(
                method.ends_with("No such file or directory (os error 2))"),
                "{method}"
            );
            let error: TrafficError = open(Sender::LiveFrames).unwrap_err();
            assert!(
                matches!(
                    &error,
                    TrafficError::NoLiveFrames { lacks, .. }
                        if lacks.contains("tracepoint no_such")
                ),
                "{error}"
            );
        }
        // With those of the kernel it would have been the fast one.
        assert_eq!(
            chosen(Sender::Auto, 1_000_000).unwrap(),
            "live frames, 1 core"
        );
    });
}

#[test]
fn root_pfc_is_ignored_where_the_sender_was_told_to() {
    on_a_wire(|| {
        let flows = [flow(0, 3, None, rate(500_000, 64), 64)];
        let wire = Setup {
            pause_line: 1_000_000,
            ..Setup::new(&flows)
        }
        .open()
        .unwrap();
        let Wire {
            mut tx,
            rx,
            sender,
            epoch,
        } = wire;
        drop(sender);
        let generator = tx.generator().unwrap();
        let plan = Setup::new(&flows);
        let mut sender = LiveFrames::open(
            &plan.plan(epoch),
            generator,
            &[0],
            Some("the NIC does it".into()),
        )
        .unwrap();
        let control = ControlSender::open("b", [2, 0, 0, 0, 1, 1]).unwrap();
        control
            .send(&MacControl::pfc([priority(3)], Quanta::MAX))
            .unwrap();
        until(|| tx.port().unwrap().pfc_frames == 1);
        let burst = endless(Phase::Baseline, clock::now());
        sender.start(burst).unwrap();
        until(|| rx.received(Phase::Baseline, 0..1).unwrap() > 100);
        sender.stop().unwrap();
        let sent = sender.report().unwrap().report;
        assert_eq!(sent.honours_pfc, "the NIC does it");
        assert!(sent.withheld.is_empty());
    });
}
