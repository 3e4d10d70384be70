//! Exercises the parsers of the programs with a frame of somebody else.

#[path = "../classified/mod.rs"]
pub mod classified;

use pfc_ebpf::abi::watch::{Config, Counters, Volume};
use pfc_ebpf::abi::{Trust, account};
use pfc_ebpf::flow_stamp::{self, FlowStamp};
use pfc_ebpf::observe::{Tag, observe};
use pfc_ebpf::own;
use pfc_ebpf::stamp::Stamp;
use pfc_ebpf::wire::mac_control::MacControl;
use pfc_ebpf::wire::{ethernet, neighbour, roce, segment, wrap};

use classified::{Class, classify};

/// Reads a frame by each of them, and asserts what holds for any.
pub fn exercise(frame: &[u8]) {
    match classify(frame).class {
        Class::Test { stamp, datagram } => {
            assert_eq!(Stamp::parse(&stamp.emit()), Ok(stamp));
            datagram.is_intact(frame);
            let header = ethernet::parse(frame).expect("its class is known");
            let has_options = matches!(frame[header.payload], 0x46..=0x4f);
            assert!(is_own(frame, stamp.run) || has_options);
        }
        Class::Control(control) => {
            assert_eq!(MacControl::parse(&control.emit([2; 6])[..]), Ok(control));
        }
        Class::Other | Class::Malformed(_) => {}
    }
    for trust in [Trust::Dscp, Trust::Pcp] {
        let config = Config {
            abi: 0,
            trust: trust as u8,
            capture: 0,
            sketch: 0,
            flows: 0,
            first_flow: 0,
            line_rate: 0,
            dscp_to_priority: std::array::from_fn(|dscp| dscp as u8 / 8),
        };
        let tag = Tag {
            tpid: 0x8100,
            tci: 0x6001,
        };
        for beside in [None, Some(tag)] {
            let mut counters = Counters::ZERO;
            let volume = Volume {
                frames: 1,
                octets: frame.len() as u64,
            };
            let observed = observe(frame, beside);
            counters.add(&config, &observed, volume);
            assert_eq!(counters.total, volume);
            if let Some(ip) = observed.ip {
                assert!(ip.dscp < 64 && ip.ecn < 4 && ip.payload <= frame.len());
            }
        }
    }
    if let Some(packet) = roce::parse(frame) {
        packet.reth(frame);
    }
    is_own(frame, 1);
    neighbour::is_message(frame);
    let wrap = wrap::wrap(frame);
    assert!(wrap.is_power_of_two() && wrap & wrap::ALL != 0);
    segment::headers(|at| frame.get(at..)?.first_chunk().copied());
    if let Some(end) = frame.last_chunk::<{ flow_stamp::LEN }>()
        && let Ok(stamp) = FlowStamp::read(*end)
    {
        assert_eq!(stamp.emit(), *end);
    }
}

/// Looks for a test of that run between the frame's own addresses, of either family. True if it is
/// found.
fn is_own(frame: &[u8], run: u16) -> bool {
    let Ok(header) = ethernet::parse(frame) else {
        return false;
    };
    let found = [(0, 12, 2), (1, 8, 8)].map(|(ipv6, at, longs)| {
        let mut config = account::Config {
            flows: 2,
            run,
            ipv6,
            ..account::Config::NONE
        };
        let octets = frame.get(header.payload + at..).unwrap_or_default();
        for (long, octets) in config.addresses[..longs]
            .iter_mut()
            .zip(octets.chunks_exact(4))
        {
            *long = u32::from_ne_bytes(octets.try_into().expect("four octets"));
        }
        own::is_test_frame(frame, &config)
    });
    found.contains(&true)
}
