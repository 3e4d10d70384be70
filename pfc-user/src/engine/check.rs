//! The defects of a plan that need no machine to be seen.

use std::collections::HashSet;
use std::iter;

use pfc_ebpf::flow_stamp::Form;
use validator_core::engine::Problem;
use validator_core::engine::plan::{Flow, Plan, PortIndex};

use super::port::PLACES;

/// All defects of a plan.
pub fn plan(plan: &Plan) -> Vec<Problem> {
    let mut wrong = Vec::new();
    let mut interfaces = HashSet::new();
    for port in &plan.ports {
        if !interfaces.insert((&port.namespace, &port.interface)) {
            wrong.push(format!(
                "port \"{}\": {} is another port's already",
                port.name, port.interface
            ));
        }
    }
    let most = PLACES as usize / 2;
    if plan.flows.len() > most {
        wrong.push(format!(
            "expected at most {most} flows, found {}",
            plan.flows.len()
        ));
    }
    let absent = |what: &str, found: usize, count: usize| {
        let found = (found >= count).then_some(found)?;
        Some(format!("there is no {what} {found}: the plan has {count}"))
    };
    let no_port = |port: &PortIndex| absent("port", port.0, plan.ports.len());
    for this in &plan.flows {
        let ports = iter::once(&this.from).chain(&this.to).filter_map(no_port);
        let hops = this.next_hops.iter();
        let hops = hops.filter_map(|hop| absent("interface", *hop, plan.interfaces.len()));
        let missing = ports.chain(hops);
        wrong.extend(missing.map(|what| format!("flow \"{}\": {what}", this.name)));
        wrong.extend(flow(this));
    }
    for interface in &plan.interfaces {
        let missing = no_port(&interface.port);
        wrong.extend(missing.map(|what| format!("interface \"{}\": {what}", interface.name)));
        if interface.address.is_ipv4() != interface.gateway.is_ipv4() {
            wrong.push(format!(
                "interface \"{}\": {} cannot reach its gateway {}: expected addresses of one family",
                interface.name, interface.address, interface.gateway
            ));
        }
    }
    wrong.into_iter().map(Problem::Order).collect()
}

/// The defects of a flow by itself.
pub fn flow(flow: &Flow) -> Vec<String> {
    let (shortest, _) = flow.length.bounds();
    let lengths = flow.length.check();
    let packet = flow.packet.check(shortest, flow.metrics.stamp);
    let untimed = flow.metrics.latency && flow.metrics.stamp != Some(Form::Whole);
    let untimed = untimed.then(|| "latency is measured by a whole stamp alone".to_owned());
    let all = lengths.into_iter().chain(flow.rate.check());
    let all = all.chain(packet).chain(untimed);
    all.map(|what| format!("flow \"{}\": {what}", flow.name))
        .collect()
}
