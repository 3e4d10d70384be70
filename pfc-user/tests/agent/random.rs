//! Random octets: the server neither panics nor stops serving.

use std::io::Write;

use super::fake::{Raw, Served, frame, open};

/// xorshift64*, from a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn octets(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1))
            .map(|_| self.below(256) as u8)
            .collect()
    }
}

/// Sends to a server of its own; dropping the server fails if it has panicked.
fn all_are_survived(seed: u64, octets: impl Fn(&mut Random) -> Vec<u8>) {
    let served = Served::open();
    let mut random = Random(seed);
    for _ in 0..300 {
        let mut raw = Raw::connect(&served);
        // The server may have closed the connection in the middle.
        let _ = raw.0.write_all(&octets(&mut random));
        raw.rest();
    }
    Raw::welcome(&served);
}

#[test]
fn octets_without_frames() {
    all_are_survived(1, |random| random.octets(600));
}

#[test]
fn frames_of_octets() {
    all_are_survived(2, |random| {
        (0..3).flat_map(|_| frame(&random.octets(200))).collect()
    });
}

#[test]
fn requests_with_octets_changed() {
    let open = open();
    let requests = [
        r#"{"ask":"hello","version":1,"token":null}"#,
        open.as_str(),
        r#"{"ask":"post-read","work_request":1,"address":2,"r_key":3,"length":4}"#,
        r#"{"ask":"poll","wait_ms":0}"#,
        r#"{"ask":"query"}"#,
        r#"{"ask":"close"}"#,
    ];
    all_are_survived(3, |random| {
        let mut octets: Vec<u8> = requests
            .iter()
            .flat_map(|request| frame(request.as_bytes()))
            .collect();
        for _ in 0..random.below(4) {
            let index = random.below(octets.len());
            octets[index] = b"\0\xff\"{}[],:019-eE"[random.below(15)];
        }
        octets.truncate(octets.len() - random.below(40) * random.below(2));
        octets
    });
}
