//! Faults that spoil octets of an answer, or a component of PortInfo.

use ib_mad::attr::PortInfo;
use ib_mad::mad::{AttributeId, MKey};
use ib_mad::sma::{Fabric, Fault};

use super::faults::{KEYS, protection, run};
use super::{fabric, set_port, switch};

#[test]
fn a_key_in_reserved_octets_is_that_of_a_wrong_one_at_protect_bits_1() {
    let good = run(&[]);
    let mut found = run(&[Fault::KeyInReserved]);
    let at = found
        .iter()
        .position(|(name, _)| name == "wrong-1")
        .unwrap();
    let octets = &mut found[at].1[0].octets;
    assert_eq!(octets[248..], KEYS[1].0.to_be_bytes());
    octets[248..].fill(0);
    assert_eq!(found, good);
}

#[test]
fn each_component_is_changed_by_a_set_alone() {
    type Read = fn(&PortInfo) -> u64;
    let components: [(&str, Read); 6] = [
        ("lid", |port| port.lid().into()),
        ("sm-lid", |port| port.master_sm_lid().into()),
        ("lmc", |port| port.lmc().into()),
        ("sm-sl", |port| port.master_sm_sl().into()),
        ("capability-mask", |port| port.capability_mask().into()),
        ("gid-prefix", PortInfo::gid_prefix),
    ];
    let mut wanted = protection(MKey(0), 0);
    wanted.set_master_sm_lid(1).unwrap();
    wanted.set_gid_prefix(7).unwrap();
    let set = |faults: &[Fault]| {
        let mut fabric = fabric(switch(), faults);
        let get = |fabric: &mut Fabric| -> PortInfo {
            super::get(fabric, AttributeId::PORT_INFO, 0)
                .decode()
                .unwrap()
        };
        let before = get(&mut fabric);
        super::ask(&mut fabric, &set_port(0, &wanted, MKey(0)));
        (before, get(&mut fabric))
    };
    let (before, good) = set(&[]);
    for (name, _) in components {
        let (found, after) = set(&[format!("changes={name}").parse().unwrap()]);
        assert_eq!(found, before, "{name}");
        for (other, read) in components {
            assert_eq!(
                read(&after) != read(&good),
                other == name,
                "{other} with {name}"
            );
        }
    }
}

#[test]
fn each_part_of_a_header_can_be_wrong() {
    // First octet of each part.
    let parts = [
        ("base-version", 0),
        ("class", 1),
        ("class-version", 2),
        ("method", 3),
        ("direction", 4),
        ("tid", 8),
        ("attribute", 16),
        ("path", 129),
    ];
    let good = run(&[]);
    for (part, octet) in parts {
        let found = run(&[format!("header={part}").parse().unwrap()]);
        for ((name, good), (_, found)) in good.iter().zip(&found) {
            for (good, found) in good.iter().zip(found) {
                let pairs = good.octets.iter().zip(&found.octets).enumerate();
                let differ = pairs.filter(|(_, (good, found))| good != found);
                let differ: Vec<_> = differ.map(|(octet, _)| octet).collect();
                assert_eq!(differ, [octet], "{part} in {name}");
            }
        }
    }
}
