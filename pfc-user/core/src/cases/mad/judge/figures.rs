//! What is reported and not judged.

use ib_mad::attr::{Attribute, BadMKey, NodeInfo, Notice, SwitchInfo};
use ib_mad::mad::Method;

use super::decoded::{Asked, View};
use crate::case::Figure;
use crate::cases::finding::ms;
use crate::evidence::mad::Purpose;
use crate::mad::m_key::Protection;

pub(super) fn of(view: &View<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut tell = |name: &str, value: String| {
        figures.push(Figure {
            repetition: view.e.plan.name.clone(),
            name: name.into(),
            value,
        });
    };
    tell(
        "transport",
        format!("{}, {}", view.e.transport, view.e.plan.route),
    );
    if !view.e.shows_unmatched {
        tell(
            "not visible",
            "answers that match no request under way".into(),
        );
    }
    if let Some(port) = view.port() {
        tell(
            "time-out",
            format!(
                "{:.3?} (RespTimeValue {}, SubnetTimeOut {})",
                view.answer_time(),
                port.response_time_value(),
                port.subnet_timeout()
            ),
        );
        tell(
            "found",
            format!(
                "{}, violations {}",
                Protection::of(&port),
                port.m_key_violations()
            ),
        );
    }
    if let Some(original) = view
        .e
        .original
        .filter(|original| Some(*original) != view.found())
    {
        tell("found by an earlier repetition", original.to_string());
    }
    if let Some(set) = view
        .asking(Purpose::KeySet)
        .and_then(|asking| asking.last().port())
    {
        tell("answer to the Set", Protection::of(&set).to_string());
    }
    if let Some(node) = view.attribute::<NodeInfo>(Purpose::NodeInfo) {
        tell(
            "NodeInfo",
            format!(
                "{:?}, {} ports, GUID {:#018x}",
                node.node_type(),
                node.num_ports(),
                node.node_guid()
            ),
        );
    }
    if let Some(switch) = view.attribute::<SwitchInfo>(Purpose::SwitchInfo) {
        tell(
            "SwitchInfo",
            format!(
                "LinearFDBCap {}, RandomFDBCap {}",
                switch.linear_fdb_cap(),
                switch.random_fdb_cap()
            ),
        );
    }
    tell("requests", requests(view));
    let slowest = view.asked.iter().filter_map(Asked::took).max();
    if let Some(slowest) = slowest {
        tell("slowest answer", ms(slowest));
    }
    if let Some(data) = set_data(view) {
        tell("data of the Sets", data);
    }
    let attempts = view
        .asked
        .iter()
        .map(|asked| asked.attempt)
        .max()
        .unwrap_or(1);
    if attempts > 1 {
        tell(
            "attempts",
            format!("{attempts}, as the violations stayed 0"),
        );
    }
    for (name, value) in others(view) {
        tell(name, value);
    }
    figures
}

fn requests(view: &View<'_>) -> String {
    let unanswered = view
        .asked
        .iter()
        .filter(|asked| asked.answer.is_none())
        .count();
    let busy = view
        .asked
        .iter()
        .filter(|asked| asked.answer.is_some() && asked.answer().is_none())
        .count();
    let purposes = [Purpose::SetBlock, Purpose::GetBlock];
    let blocks: usize = purposes
        .iter()
        .map(|purpose| view.askings(*purpose).len())
        .sum();
    let blocks = if blocks > 0 {
        format!(" ({blocks} blocks)")
    } else {
        String::new()
    };
    format!(
        "{}{blocks}, {unanswered} not answered, {busy} answered BUSY",
        view.asked.len()
    )
}

/// What the Sets carried and what came back: the document leaves it open.
fn set_data(view: &View<'_>) -> Option<String> {
    let askings = view.askings(Purpose::SetBlock);
    let first = askings.first()?;
    let returned = |smp: &ib_mad::smp::Smp| match () {
        () if smp.data() == first.last().request.data() => "as sent",
        () if smp.data().iter().all(|octet| *octet == 0) => "zero",
        () => "other",
    };
    let count = |kind: &str| {
        askings
            .iter()
            .filter_map(|asking| asking.answer())
            .filter(|answer| returned(answer) == kind)
            .count()
    };
    let sent = first.last().request.data()[0];
    Some(format!(
        "{sent:#04x} sent; came back as sent {}, zero {}, other {}",
        count("as sent"),
        count("zero"),
        count("other")
    ))
}

/// What others sent, or the DUT of its own accord.
fn others(view: &View<'_>) -> Vec<(&'static str, String)> {
    let mut figures = Vec::new();
    let smps = || {
        view.strays
            .iter()
            .filter_map(|stray| stray.smp.as_ref().map(|smp| (stray.at, smp)))
    };
    let notices =
        smps().filter(|(_, smp)| smp.method() == Method::TRAP && smp.attribute() == Notice::ID);
    let notices: Vec<_> = notices
        .map(|(at, smp)| (at, Notice::from_data(*smp.data())))
        .collect();
    let (bad_m_key, other): (Vec<_>, Vec<_>) = notices
        .into_iter()
        .partition(|(_, notice)| notice.bad_m_key().is_some());
    if let Some((at, first)) = bad_m_key.first() {
        let key = first
            .bad_m_key()
            .as_ref()
            .map(BadMKey::m_key)
            .unwrap_or_default();
        figures.push((
            "trap 256",
            format!(
                "{}, the first at {} for M_Key {key}",
                bad_m_key.len(),
                ms(*at)
            ),
        ));
    }
    if let Some((at, first)) = other.first() {
        figures.push((
            "other traps",
            format!(
                "{}, the first at {}: {:?}",
                other.len(),
                ms(*at),
                first.source()
            ),
        ));
    }
    let foreign: Vec<_> = smps()
        .filter(|(_, smp)| smp.method() != Method::TRAP)
        .collect();
    let foreign: Vec<_> = foreign
        .into_iter()
        .filter(|(_, smp)| {
            view.asked
                .iter()
                .all(|asked| asked.request.tid().0 as u32 != smp.tid().0 as u32)
        })
        .collect();
    if let Some((at, first)) = foreign.first() {
        let first = format!("{}({}) at {}", first.method(), first.attribute(), ms(*at));
        figures.push((
            "SMPs that are not the tester's affair",
            format!("{}, the first {first}", foreign.len()),
        ));
    }
    let malformed = view
        .strays
        .iter()
        .filter(|stray| stray.smp.is_none())
        .count();
    if malformed > 0 {
        figures.push(("packets that are no SMP", malformed.to_string()));
    }
    figures
}
