//! Measures reading a packet, changing its attribute and writing it out, beside a plain copy of its
//! 256 octets, with criterion: `cargo bench -p ib-mad --bench codec`.

use std::env;
use std::hint::black_box;
use std::time::Duration;

use criterion::Criterion;
use ib_mad::attr::PortInfo;
use ib_mad::mad::{AttributeId, LENGTH, Lid, Method, Tid};
use ib_mad::smp::{Route, Smp};

fn main() {
    // Set by `cargo xtask bench --quick`.
    let quick = env::var_os("VALIDATOR_BENCH_QUICK").is_some();
    let milliseconds = |quickly, else_| Duration::from_millis(if quick { quickly } else { else_ });
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(milliseconds(100, 500))
        .measurement_time(milliseconds(300, 3000))
        .configure_from_args();
    let mut smp = Smp::request(
        Method::GET_RESP,
        AttributeId::PORT_INFO,
        1,
        &Route::Lid(Lid(1)),
    );
    smp.set_tid(Tid(1));
    let wire = *smp.octets();
    let mut out = [0; LENGTH];

    // By this name `cargo xtask bench` finds the baseline of the other figures.
    let mut group = criterion.benchmark_group("codec beside copy");
    group.bench_function("copy", |bencher| {
        bencher.iter(|| {
            out.copy_from_slice(black_box(&wire));
            black_box(&mut out);
        })
    });
    group.bench_function("parse an SMP and write it out", |bencher| {
        bencher.iter(|| {
            let smp = Smp::parse(black_box(&wire)).expect("a packet");
            out.copy_from_slice(smp.octets());
            black_box(&mut out);
        })
    });
    group.bench_function(
        "the same, with PortInfo read, changed and put back",
        |bencher| {
            bencher.iter(|| {
                let mut smp = Smp::parse(black_box(&wire)).expect("a packet");
                let mut port: PortInfo = smp.decode().expect("PortInfo");
                port.set_m_key_violations(black_box(port.m_key_violations()).wrapping_add(1))
                    .expect("16 bits");
                smp.encode(&port);
                out.copy_from_slice(smp.octets());
                black_box(&mut out);
            })
        },
    );
    group.bench_function("a new request, written out", |bencher| {
        bencher.iter(|| {
            let mut smp = Smp::request(
                Method::GET,
                AttributeId::PORT_INFO,
                black_box(1),
                &Route::Lid(Lid(1)),
            );
            smp.set_tid(black_box(Tid(1)));
            out.copy_from_slice(smp.octets());
            black_box(&mut out);
        })
    });
    group.finish();
    criterion.final_summary();
}
