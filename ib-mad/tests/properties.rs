//! Octets from outside: any octets are either read or refused, and nothing panics.

use std::fs;
use std::path::Path;

use ib_mad::mad::LENGTH;

#[cfg(all(feature = "host", target_os = "linux"))]
#[path = "codec_common/client.rs"]
mod client;
mod codec_common;
#[path = "codec_common/exercise.rs"]
mod exercise;
#[cfg(all(feature = "host", target_os = "linux"))]
#[path = "codec_common/server.rs"]
mod server;

use codec_common::Random;
use exercise::exercise;

#[test]
fn no_length_but_256_is_a_packet() {
    let mut random = Random(3);
    let octets: [u8; 2 * LENGTH] = random.octets();
    for length in 0..=octets.len() {
        let mut octets = octets[..length].to_vec();
        octets
            .iter_mut()
            .zip([1, 0x81])
            .for_each(|(octet, header)| *octet = header);
        assert_eq!(
            exercise(&octets).is_some(),
            length == LENGTH,
            "{length} octets"
        );
    }
}

#[test]
fn no_base_version_but_1_and_no_class_but_two() {
    for version in 0..=255 {
        for class in 0..=255 {
            let mut octets = [0; LENGTH];
            (octets[0], octets[1]) = (version, class);
            assert_eq!(
                exercise(&octets).is_some(),
                version == 1 && matches!(class, 0x01 | 0x81)
            );
        }
    }
}

#[test]
fn every_packet_of_random_octets_is_kept() {
    let mut random = Random(4);
    for round in 0..5000u32 {
        let mut octets: [u8; LENGTH] = random.octets();
        octets[0] = 1;
        octets[1] = if round % 2 == 0 { 0x01 } else { 0x81 };
        if round % 4 == 1 {
            octets[7] %= 64;
        }
        if round % 8 < 2 {
            // Trap 256, which has its own DataDetails.
            octets[64] |= 0x80;
            (octets[68], octets[69]) = (1, 0);
        }
        assert!(exercise(&octets).is_some());
    }
}

#[test]
fn every_hop_count_and_pointer_is_taken() {
    for count in 0..=255 {
        for pointer in [0, 1, 63, 64, 255] {
            let mut octets = [0; LENGTH];
            (octets[0], octets[1], octets[6], octets[7]) = (1, 0x81, pointer, count);
            let smp = exercise(&octets).unwrap();
            assert_eq!(smp.hops(), (pointer, count));
            assert_eq!(
                smp.path().map(|path| path.ports().len()),
                (count < 64).then_some(count.into())
            );
        }
    }
}

/// Files of a folder of seeds, which the fuzz targets found or began with.
fn seeds(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/seeds")
        .join(folder);
    let files = fs::read_dir(folder).unwrap().flatten();
    let seeds: Vec<_> = files.map(|file| fs::read(file.path()).unwrap()).collect();
    assert!(!seeds.is_empty());
    seeds
}

#[test]
fn packets_of_the_fuzzer_are_survived() {
    for seed in seeds("smp") {
        exercise(&seed);
    }
}

#[cfg(all(feature = "host", target_os = "linux"))]
#[test]
fn datagrams_of_the_fuzzer_are_survived_by_a_server() {
    for seed in seeds("ibsim") {
        server::exercise(&seed);
    }
}

#[cfg(all(feature = "host", target_os = "linux"))]
#[test]
fn datagrams_of_the_fuzzer_are_survived_by_a_client() {
    for seed in seeds("ibsim-client") {
        client::exercise(&seed);
    }
}
