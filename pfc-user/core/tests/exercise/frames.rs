//! Exercises what answers and forwards frames: the tester's ports, and the simulated devices.

use std::net::IpAddr;

use pfc_ebpf::units::{LineRate, Priority};
use validator_core::agent::protocol::OpenChannel;
use validator_core::dut::requester::model::{Adapter, Model};
use validator_core::dut::switch::config::SwitchConfig;
use validator_core::dut::switch::model::Switch;
use validator_core::engine::filter::{Filter, From};
use validator_core::engine::neighbour::Host;
use validator_core::engine::plan::{Interface, PortIndex};
use validator_core::neighbour::Station;
use validator_core::roce;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ADDRESSES: [[&str; 2]; 2] = [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]];

/// Gives a frame to each of them.
pub fn exercise(frame: &[u8]) {
    for [own, peer] in ADDRESSES.map(|pair| pair.map(|text| text.parse::<IpAddr>().unwrap())) {
        let station = Station { mac: MAC, ip: own };
        if let Some(answer) = station.answer(frame) {
            assert!(answer.len() >= 60 && answer[6..12] == MAC);
        }
        let interface = Interface {
            name: "i".into(),
            port: PortIndex(0),
            mac: MAC,
            vlans: Vec::new(),
            address: own,
            prefix: 24,
            gateway: peer,
        };
        for vlans in [vec![], vec![5], vec![5, 6]] {
            Host::new(&Interface {
                vlans,
                ..interface.clone()
            })
            .receive(frame, 1);
        }
        requester(own, peer, frame);
    }
    roce::is_intact(frame);
    switch(frame);
    for from in [From::Frame, From::Tag, From::Ipv4, From::Ipv6] {
        for bit in [0, 3, 96, 8 * frame.len()] {
            [1, 6, 48, 128]
                .into_iter()
                .for_each(|bits| filter(from, bit, bits, frame));
        }
    }
}

/// Filters of captures for that field, whose value is 0 or another.
fn filter(from: From, bit: usize, bits: usize, frame: &[u8]) {
    let zero = Filter {
        from,
        bit,
        bits,
        value: 0,
        ignored: 0,
        negate: false,
    };
    let other = Filter {
        negate: true,
        ..zero
    };
    let any = Filter {
        ignored: u128::MAX,
        ..zero
    };
    let kept = zero.keeps(frame) ^ other.keeps(frame);
    assert_eq!(kept, any.keeps(frame), "{zero:?}");
}

/// An adapter that waits for the answer to a READ.
fn requester(own: IpAddr, peer: IpAddr, frame: &[u8]) {
    let adapter = Adapter {
        name: "sim".into(),
        mac: MAC,
        peer_mac: [2; 6],
        address: own,
        active_mtu: 1024,
    };
    let mut model = Model::new(adapter, &[]);
    let settings = OpenChannel {
        path_mtu: 1024,
        retry_count: 1,
        timeout: 1,
        remote: peer,
        remote_queue_pair: 1,
        psn: 1,
        remote_psn: 1,
    };
    model.open(0, &settings).expect("it can be opened");
    model.receive(1, frame);
    model.completions(2);
}

/// A switch whose other port is open.
fn switch(frame: &[u8]) {
    let lossless = [3, 4].map(Priority::from_low_bits).into_iter().collect();
    let rate = LineRate::from_bits_per_second(1_000_000_000).expect("a rate");
    let mut switch = Switch::new(SwitchConfig::new(rate, lossless), &[]);
    switch.ingress(0, 1, frame.to_vec());
    switch.ingress(1, 1, frame.to_vec());
    switch.advance(1_000_000_000);
    let left = std::iter::from_fn(|| switch.pop_departure());
    assert!(left.count() <= 2, "it sends no more than came");
}
