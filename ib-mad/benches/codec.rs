//! Time to read a packet, change its attribute and write it out, beside a plain copy of its 256 octets:
//! `cargo bench -p ib-mad --bench codec`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ib_mad::attr::PortInfo;
use ib_mad::mad::{AttributeId, LENGTH, Lid, Method, Tid};
use ib_mad::smp::{Route, Smp};

/// Runs of a sample.
const RUNS: u32 = 10_000;
/// Samples, of which the median counts.
const SAMPLES: usize = 501;

fn median(mut run: impl FnMut()) -> f64 {
    let mut sample = || {
        let start = Instant::now();
        (0..RUNS).for_each(|_| run());
        start.elapsed()
    };
    // The first samples warm up caches and clock.
    (0..SAMPLES / 10).for_each(|_| _ = sample());
    let mut samples: Vec<Duration> = (0..SAMPLES).map(|_| sample()).collect();
    samples.sort();
    samples[SAMPLES / 2].as_nanos() as f64 / f64::from(RUNS)
}

fn main() {
    let mut smp = Smp::request(Method::GET_RESP, AttributeId::PORT_INFO, 1, &Route::Lid(Lid(1)));
    smp.set_tid(Tid(1));
    let wire = *smp.octets();
    let mut out = [0; LENGTH];

    let copy = median(|| {
        out.copy_from_slice(black_box(&wire));
        black_box(&mut out);
    });
    let pass = median(|| {
        let smp = Smp::parse(black_box(&wire)).expect("a packet");
        out.copy_from_slice(smp.octets());
        black_box(&mut out);
    });
    let attribute = median(|| {
        let mut smp = Smp::parse(black_box(&wire)).expect("a packet");
        let mut port: PortInfo = smp.decode().expect("PortInfo");
        port.set_m_key_violations(black_box(port.m_key_violations()).wrapping_add(1)).expect("16 bits");
        smp.encode(&port);
        out.copy_from_slice(smp.octets());
        black_box(&mut out);
    });
    let emit = median(|| {
        let mut smp = Smp::request(Method::GET, AttributeId::PORT_INFO, black_box(1), &Route::Lid(Lid(1)));
        smp.set_tid(black_box(Tid(1)));
        out.copy_from_slice(smp.octets());
        black_box(&mut out);
    });

    println!("medians of {SAMPLES} samples of {RUNS} runs");
    println!("copy of {LENGTH} octets                  {copy:7.1} ns");
    for (what, time) in
        [("parse and write out", pass), ("the same, and change of a PortInfo", attribute), ("new request, written out", emit)]
    {
        println!("{what:<34} {time:7.1} ns, {:.1} times the copy", time / copy);
    }
}
