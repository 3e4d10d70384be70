//! Measures as many exchanges as `mad.c14-024-10-01` has (768 Sets and 768 Gets): with `validator
//! dut sma` as a process, and with the simulated fabric in this process. `cargo bench -p pfc-user
//! --bench exchange`.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Report;
use ib_mad::mad::{AttributeId, Lid, MKey, Method, Status};
use ib_mad::requester::{Outcome, Requester};
use ib_mad::sma::{Fabric, NodeConfig, NodeKind, Sma};
use ib_mad::smp::{Route, Smp};
use ib_mad::transport::Transport;
use ib_mad::transport::ibsim::IbsimTransport;
use ib_mad::transport::simulated::Simulated;

const BLOCKS: u32 = 768;
const ROUNDS: usize = 21;
const WAIT: Duration = Duration::from_secs(2);

/// Runs one round and returns its duration. Every exchange must be answered as by a switch without
/// a linear table.
fn round(requester: &mut Requester<impl Transport>) -> Duration {
    let route = Route::Directed("0,1".parse().expect("a path"));
    let begun = Instant::now();
    for (method, block) in [Method::SET, Method::GET]
        .into_iter()
        .flat_map(|method| (0..BLOCKS).map(move |block| (method, block)))
    {
        let request = Smp::request(method, AttributeId::LINEAR_FORWARDING_TABLE, block, &route);
        match requester
            .exchange(request, &route, WAIT)
            .expect("the transport works")
            .outcome
        {
            Outcome::Answered { smp, .. } if smp.status() == Status::INVALID_FIELD => {}
            other => panic!("{method} of block {block}: {other:?}"),
        }
    }
    begun.elapsed()
}

/// Reports the durations of the rounds, in milliseconds.
fn report(name: &str, times: &[f64]) {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (median, worst) = (sorted[ROUNDS / 2], sorted[ROUNDS - 1]);
    let (exchanges, each) = (2 * BLOCKS, median * 1e3 / f64::from(2 * BLOCKS));
    println!(
        "{name}: {exchanges} exchanges, median of {ROUNDS}: {median:.3} ms ({each:.3} us each), \
         worst {worst:.3} ms"
    );
}

fn fabric() -> Fabric {
    let config = |kind, lid| NodeConfig {
        kind,
        description: "node".into(),
        guid: 0x0200_0000_0000_0000 + u64::from(lid) * 0x100,
        lid: Lid(lid),
        master_sm_lid: Lid(1),
        port_state: 4,
        linear_fdb_cap: 0,
        random_fdb_cap: 1024,
        m_key: MKey(0),
        m_key_protect_bits: 0,
        m_key_lease_period: 0,
        response_time_value: 8,
        subnet_timeout: 8,
    };
    let tester = Sma::new(config(NodeKind::ChannelAdapter, 1), Vec::new());
    Fabric {
        tester,
        dut: Sma::new(config(NodeKind::Switch(4), 2), Vec::new()),
    }
}

/// Starts the process. Returns it with the name of its server. It ends with its standard input.
fn process() -> (Child, String) {
    let name = format!("bench-{}", std::process::id());
    let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
    command
        .args(["dut", "sma", "--socket", &name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut process = command.spawn().expect("the process starts");
    let mut ready = String::new();
    BufReader::new(process.stdout.as_mut().expect("piped"))
        .read_line(&mut ready)
        .expect("it says that it is ready");
    assert!(ready.starts_with("ready"), "{ready}");
    (process, name)
}

fn main() {
    let mut in_process = Requester::new(Box::new(Simulated::new(fabric())), 0);
    let (mut process, name) = process();
    let transport = IbsimTransport::connect(&name, "Hca1", WAIT).expect("a server");
    let mut by_sockets = Requester::new(Box::new(transport), 0);
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        here.push(milliseconds(round(&mut in_process)));
        there.push(milliseconds(round(&mut by_sockets)));
    }
    let names = [
        "simulated fabric, in process",
        "validator dut sma, by ibsim's sockets",
    ];
    report(names[0], &here);
    report(names[1], &there);
    let figure = |name: &str| format!("{} exchanges, {name}", 2 * BLOCKS);
    Report("exchange").figure(&figure(names[0]), "ms", &here);
    Report("exchange").beside(&figure(names[1]), "ms", &there, names[0], &here);
    drop(by_sockets);
    drop(process.stdin.take());
    process.wait().expect("it ends");
}
