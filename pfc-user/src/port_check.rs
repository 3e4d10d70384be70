//! `validator check`: the facts about the tester's ports, before anything is measured. Only `--fix`
//! changes anything.

use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::utsname::uname;
use pfc_ebpf::abi::Trust;
use validator_core::evidence::preflight::{Facts, Port, Preflight, Role, SelfTest, Wanted, Way};
use validator_core::plan::PortRole;
use validator_core::preflight::{self, State};

use crate::config::{
    Config, Dut, MadTestbed, MadTransport, PfcTestbed, RcDut, RcTestbed, Testbed, XdpMode,
};
use crate::driver::bpf::{Sizes, XdpError};
use crate::driver::bringup::journal::Journal;
use crate::driver::bringup::testbed::{self, Ports};
use crate::driver::kernel::netns::Namespace;
use crate::driver::kernel::{adapter, link};
use crate::error_text;

/// Smallest maps that suffice for the self-test.
const LEAST: Sizes = Sizes {
    flows: 1,
    windows: 1,
};

/// Longest time for a link to come back after an earlier reset.
const CARRIER: Duration = Duration::from_secs(10);

/// Extent of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Attaches no program and sends no frame.
    Passive,
    /// Runs the self-test.
    Active,
}

/// Examines the ports that the plan's cases use. Fails if one of them does not exist.
pub fn check(config: &Config, depth: Depth) -> Result<Preflight> {
    let (mut ports, mut ways) = (Vec::new(), Vec::new());
    if let Some(config) = config.pfc() {
        let (examined, way) = pfc_ports(config, depth)?;
        ports.extend(examined);
        ways.extend(way);
    }
    ports.extend(config.mad().and_then(mad_port));
    ports.extend(config.rc().map(rc_port).transpose()?.flatten());
    Ok(Preflight {
        kernel: Some(kernel_release()?),
        ports,
        unfit: Vec::new(),
        ways,
    })
}

/// `uname -r`.
pub fn kernel_release() -> Result<String> {
    let name = uname().context("uname")?;
    Ok(name.release().to_string_lossy().into_owned())
}

/// The ports of the PFC cases, and the error that a run would end with where none of their items
/// tells it.
fn pfc_ports(config: &PfcTestbed, depth: Depth) -> Result<(Vec<Port>, Option<Way>)> {
    let mut way = None;
    let laid = Ports::lay(config)?;
    let mut ports = examine(&laid, config)?;
    let taken = ports.iter().find(|port| port.facts.xdp_attached.is_some());
    // The self-test's frames have no tag, so no offload has to be changed for them.
    let mut untagged = config.clone();
    untagged.qos.trust = Trust::Dscp;
    let result = match (depth, taken) {
        (Depth::Passive, _) => not_done("it was not asked for"),
        (_, Some(taken)) => not_done(&format!(
            "there is an XDP program on {} already",
            taken.facts.interface
        )),
        (Depth::Active, None) => match laid.open(&untagged, LEAST) {
            Ok(testbed) => {
                note_tests(&mut ports, &testbed);
                return Ok((ports, None));
            }
            Err(error) => {
                let reason = error_text::in_words(&error);
                if error.is::<XdpError>() {
                    SelfTest::Refused { reason }
                } else {
                    way = Some(no_way(&ports, &reason));
                    SelfTest::NotDone { reason }
                }
            }
        },
    };
    for port in &mut ports {
        port.self_test = result.clone();
    }
    let found = Preflight {
        ports,
        ..Preflight::default()
    };
    let reported = preflight::worst(&found) == State::Problem;
    Ok((found.ports, way.filter(|_| !reported)))
}

/// Both ports, which cannot be taken as a run takes them.
fn no_way(ports: &[Port], error: &str) -> Way {
    let names = ports.iter().map(|port| port.facts.interface.as_str());
    Way {
        what: "ports of a run",
        table: "ports".into(),
        place: names.collect::<Vec<_>>().join(", "),
        usable: "",
        error: Some(error.to_owned()),
    }
}

fn not_done(reason: &str) -> SelfTest {
    SelfTest::NotDone {
        reason: reason.to_owned(),
    }
}

/// Collects the facts about the ports of the PFC cases before anything is attached.
pub fn examine(laid: &Ports, config: &PfcTestbed) -> Result<Vec<Port>> {
    let wanted = Wanted {
        xdp: config.ports.xdp,
        line_rate: config.ports.line_rate.map(|rate| rate.bits_per_second()),
        tagged: config.qos.trust == Trust::Pcp,
        max_response: Some(config.limits.max_response),
    };
    laid.all()
        .map(|(role, interface, namespace)| {
            let role = match role {
                PortRole::Rx => Role::Rx,
                PortRole::Tx => Role::Tx,
            };
            let facts = link::examine(namespace, interface)?;
            let mut port = examined(role, wanted.clone(), facts);
            port.pfc_visible = testbed::declared_pfc(config, &port.facts.driver.name);
            Ok(port)
        })
        .collect()
}

/// Adds the self-test's results on the ports of a testbed that is up, and the changes to their
/// offloads.
pub fn note_tests(ports: &mut [Port], testbed: &testbed::Testbed) {
    for (port, opened) in ports.iter_mut().zip(testbed.ports()) {
        port.self_test = opened
            .self_test
            .clone()
            .unwrap_or_else(|| not_done("the testbed has none"));
        port.pfc_visible.clone_from(&opened.pfc_visible);
        port.facts
            .features_with_program
            .clone_from(&opened.features);
    }
}

/// Examines the adapter of the MAD cases; `None` where they use none, or where it is not there, as
/// the transport then says itself.
pub fn mad_port(config: &MadTestbed) -> Option<Port> {
    let MadTransport::Umad {
        device,
        port,
        sysfs,
    } = &config.transport
    else {
        return None;
    };
    let facts = adapter::examine(device, *port, sysfs)?;
    Some(examined(Role::Mad, without_pfc(XdpMode::Auto), facts))
}

/// Examines the port of the RC case; `None` if the tool makes it.
pub fn rc_port(config: &RcTestbed) -> Result<Option<Port>> {
    let RcDut::Agent { port, .. } = &config.dut else {
        return Ok(None);
    };
    let namespace = Namespace::open(port.namespace.as_deref())?;
    link::settled_state(&namespace, &port.interface, CARRIER)?;
    let facts = link::examine(&namespace, &port.interface)?;
    Ok(Some(examined(Role::Rc, without_pfc(config.xdp), facts)))
}

/// Requirements on a port that sends no test frames of PFC.
fn without_pfc(xdp: XdpMode) -> Wanted {
    Wanted {
        xdp,
        line_rate: None,
        tagged: false,
        max_response: None,
    }
}

fn examined(role: Role, wanted: Wanted, facts: Facts) -> Port {
    Port {
        role,
        wanted,
        facts,
        self_test: not_done("there is none for this port"),
        pfc_visible: None,
    }
}

/// Corrects the offloads that are a problem, each journalled before it is touched. Returns a line
/// for each. Ports made by the tool are left out: they disappear with it.
pub fn fix(testbed: &Testbed, found: &Preflight) -> Result<Vec<String>> {
    let journal = Journal::open();
    let own = testbed
        .pfc
        .as_ref()
        .is_some_and(|pfc| !matches!(pfc.dut, Dut::External { .. }));
    let mut done = Vec::new();
    for (port, items) in found.ports.iter().zip(preflight::judge(found)) {
        if own && port.role != Role::Rc {
            continue;
        }
        let namespace = Namespace::open(port.facts.namespace.as_deref())?;
        for fix in items.iter().filter_map(|item| item.fix) {
            match journal.keep(&namespace, &port.facts.interface, fix.feature, fix.on) {
                Ok(lines) => done.extend(lines),
                Err(error) => done.push(format!(
                    "{}: {} could not be set: {error}",
                    port.facts.interface,
                    fix.feature.name()
                )),
            }
        }
    }
    Ok(done)
}
