//! The model of an agent, through a simulated fabric.

use std::time::Duration;

use ib_mad::mad::{AttributeId, Lid, MKey, Method};
use ib_mad::requester::{Outcome, Requester};
use ib_mad::sma::{Fabric, NodeConfig, NodeKind, Sma};
use ib_mad::smp::{Route, Smp};
use ib_mad::transport::simulated::Simulated;

fn config(kind: NodeKind, lid: u16) -> NodeConfig {
    NodeConfig {
        kind,
        description: "node".into(),
        guid: 0x0002_0000_0000_0000 + u64::from(lid) * 0x100,
        lid: Lid(lid),
        master_sm_lid: Lid(1),
        port_state: 4,
        linear_fdb_cap: 0,
        random_fdb_cap: 3072,
        m_key: MKey(0),
        m_key_protect_bits: 0,
        m_key_lease_period: 0,
        response_time_value: 18,
        subnet_timeout: 18,
    }
}

#[test]
fn a_switch_answers_by_directed_route_and_by_lid() {
    let fabric =
        Fabric { tester: Sma::new(config(NodeKind::ChannelAdapter, 1), vec![]), dut: Sma::new(config(NodeKind::Switch(4), 2), vec![]) };
    let mut requester = Requester::new(Simulated::new(fabric), 1);
    for route in [Route::Directed("0,1".parse().unwrap()), Route::Lid(Lid(2))] {
        let request = Smp::request(Method::GET, AttributeId::NODE_INFO, 0, &route);
        let exchange = requester.exchange(request, &route, Duration::from_secs(1)).unwrap();
        let Outcome::Answered { smp, .. } = exchange.outcome else { panic!("{route}: {:?}", exchange.outcome) };
        assert_eq!(smp.data()[..4], [1, 1, 2, 4]);
    }
}
