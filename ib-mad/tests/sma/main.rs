//! The model of a subnet management agent: its answers, its silence, its counters, and the effect
//! of each fault.

mod attributes;
mod faults;
mod m_key;
mod random;
mod routing;
mod simulated;
mod spoilt;

use std::time::Duration;

use ib_mad::attr::{PortInfo, PortState};
use ib_mad::mad::{AttributeId, Lid, MKey, Method, Status};
use ib_mad::sma::{Fabric, Fault, NodeConfig, NodeKind, Sma};
use ib_mad::smp::{Route, Smp};
use ib_mad::transport::Received;

const TESTER_LID: Lid = Lid(1);
const DUT_LID: Lid = Lid(2);
const GUID: u64 = 0x0002_c903_0000_1000;

fn config(kind: NodeKind, lid: Lid) -> NodeConfig {
    NodeConfig {
        kind,
        description: format!("node {lid}"),
        guid: GUID + u64::from(lid.0) * 0x10,
        lid,
        master_sm_lid: TESTER_LID,
        port_state: 4,
        linear_fdb_cap: 0,
        random_fdb_cap: 40,
        m_key: MKey(0),
        m_key_protect_bits: 0,
        m_key_lease_period: 0,
        response_time_value: 16,
        subnet_timeout: 18,
    }
}

fn switch() -> NodeConfig {
    config(NodeKind::Switch(4), DUT_LID)
}

fn adapter() -> NodeConfig {
    config(NodeKind::ChannelAdapter, DUT_LID)
}

fn fabric(dut: NodeConfig, faults: &[Fault]) -> Fabric {
    let tester = Sma::new(config(NodeKind::ChannelAdapter, TESTER_LID), Vec::new());
    Fabric {
        tester,
        dut: Sma::new(dut, faults.to_vec()),
    }
}

fn directed(path: &str) -> Route {
    Route::Directed(path.parse().unwrap())
}

/// Makes a request with `key` to the DUT, by directed route.
fn request(method: Method, attribute: AttributeId, modifier: u32, key: MKey) -> Smp {
    let mut smp = Smp::request(method, attribute, modifier, &directed("0,1"));
    smp.set_m_key(key);
    smp
}

/// Makes a Set of PortInfo with `key`.
fn set_port(modifier: u32, info: &PortInfo, key: MKey) -> Smp {
    let mut smp = request(Method::SET, AttributeId::PORT_INFO, modifier, key);
    smp.encode(info);
    smp
}

fn smps(deliveries: &[Received]) -> Vec<Smp> {
    deliveries
        .iter()
        .map(|delivery| Smp::parse(&delivery.octets).unwrap())
        .collect()
}

/// Sends `smp` at `now` and returns what comes back to the tester.
fn send(fabric: &mut Fabric, now: Duration, smp: &Smp) -> Vec<Smp> {
    smps(&fabric.send(now, smp, Lid::PERMISSIVE))
}

/// Sends `smp` and returns the one packet that comes back, its response.
fn ask(fabric: &mut Fabric, smp: &Smp) -> Smp {
    let [answer] = <[Smp; 1]>::try_from(send(fabric, Duration::ZERO, smp)).unwrap();
    assert_eq!(answer.method(), Method::GET_RESP);
    assert_eq!(answer.tid(), smp.tid());
    answer
}

fn get(fabric: &mut Fabric, attribute: AttributeId, modifier: u32) -> Smp {
    ask(fabric, &request(Method::GET, attribute, modifier, MKey(0)))
}

/// Returns PortInfo `modifier` as shown to a Get with `key`.
fn port(fabric: &mut Fabric, modifier: u32, key: MKey) -> PortInfo {
    let answer = ask(
        fabric,
        &request(Method::GET, AttributeId::PORT_INFO, modifier, key),
    );
    assert_eq!(answer.status(), Status::OK);
    answer.decode().unwrap()
}

/// Makes a valid Set of it: both states ask for no change.
fn to_set(mut info: PortInfo) -> PortInfo {
    info.set_port_state(PortState::NoChange).unwrap();
    info.set_port_physical_state(0).unwrap();
    info
}
