//! The defects of a plan that need no machine to be seen.

use std::collections::HashSet;

use pfc_ebpf::flow_stamp::Form;
use validator_core::engine::Problem;
use validator_core::engine::plan::{Flow, Plan};

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
    for this in &plan.flows {
        for port in [this.from].iter().chain(&this.to) {
            if port.0 >= plan.ports.len() {
                wrong.push(format!(
                    "flow \"{}\": there is no port {}: the plan has {}",
                    this.name,
                    port.0,
                    plan.ports.len()
                ));
            }
        }
        for hop in &this.next_hops {
            if *hop < plan.interfaces.len() {
                continue;
            }
            wrong.push(format!(
                "flow \"{}\": there is no interface {hop}: the plan has {}",
                this.name,
                plan.interfaces.len()
            ));
        }
        wrong.extend(flow(this));
    }
    for interface in &plan.interfaces {
        if interface.port.0 >= plan.ports.len() {
            wrong.push(format!(
                "interface \"{}\": there is no port {}: the plan has {}",
                interface.name,
                interface.port.0,
                plan.ports.len()
            ));
        }
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
