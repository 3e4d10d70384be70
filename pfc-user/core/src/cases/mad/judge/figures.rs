//! Figures that are reported and not judged.

use ib_mad::attr::{Attribute, NodeInfo, Notice, PortInfo, SwitchInfo};
use ib_mad::mad::Method;
use ib_mad::smp::Smp;

use super::Mad;
use super::decoded::{Asked, Asking, View};
use crate::cases::judge::NamedFigure;
use crate::cases::mad::timing;
use crate::cases::value::{Value, count, time};
use crate::evidence::mad::Purpose;
use crate::m_key::Protection;
use crate::plan::Nanos;
use crate::plan::mad::Difference;

/// All of them, in the order of reports: the way to the DUT, the DUT as it was found, requests and
/// answers, and the packets of others and those that the DUT sent of its own accord.
pub(super) const FIGURES: [NamedFigure<Mad>; 20] = [
    ("transport", |view| {
        Some(format!("{}, {}", view.e.transport, view.e.plan.route).into())
    }),
    ("not visible", |view| {
        let unseen = "answers that match no request under way";
        (!view.e.shows_unmatched).then(|| unseen.into())
    }),
    ("time-out", time_out),
    ("found", |view| {
        let port = view.port()?;
        let violations = port.m_key_violations();
        let protection = Protection::of(&port);
        Some(format!("{protection}, violations {violations}").into())
    }),
    ("found by an earlier repetition", |view| {
        let original = view.e.original?;
        (Some(original) != view.found()).then(|| original.to_string().into())
    }),
    ("answer to the Set", |view| {
        let set = view.asking(Purpose::KeySet)?.last().port()?;
        Some(Protection::of(&set).to_string().into())
    }),
    ("NodeInfo", |view| {
        let node: NodeInfo = view.attribute(Purpose::NodeInfo)?;
        let (kind, ports, guid) = (node.node_type(), node.num_ports(), node.node_guid());
        Some(format!("{kind:?}, {ports} ports, GUID {guid:#018x}").into())
    }),
    ("SwitchInfo", |view| {
        let switch: SwitchInfo = view.attribute(Purpose::SwitchInfo)?;
        let (linear, random) = (switch.linear_fdb_cap(), switch.random_fdb_cap());
        Some(format!("LinearFDBCap {linear}, RandomFDBCap {random}").into())
    }),
    ("requests", |view| Some(requests(view))),
    ("slowest answer", |view| {
        view.asked.iter().filter_map(Asked::took).max().map(time)
    }),
    ("answers later than RespTimeValue says", slow),
    ("answers to a wrong key seen", latest),
    ("modifiers of answers", modifiers),
    ("PortInfo changed otherwise", otherwise_changed),
    ("data of the Sets", set_data),
    ("wrong keys", wrong_keys),
    ("trap 256", |view| {
        let (keys, _) = traps(view);
        let (at, first) = keys.first()?;
        let key = first.bad_m_key()?.m_key();
        Some(numbered(keys.len(), *at) + format!(" for M_Key {key}"))
    }),
    ("other traps", |view| {
        let (_, others) = traps(view);
        let (at, first) = others.first()?;
        Some(numbered(others.len(), *at) + format!(": {:?}", first.source()))
    }),
    ("SMPs that are not the tester's affair", foreign),
    ("packets that are no SMP", |view| {
        let malformed = view.strays.iter().filter(|stray| stray.smp.is_none());
        let malformed = malformed.count() as u64;
        (malformed > 0).then(|| count(malformed, ""))
    }),
];

/// The longest time of an answer.
fn time_out(view: &View<'_>) -> Option<Value> {
    let (port, time) = (view.port()?, view.answer_time());
    let (response, subnet) = (port.response_time_value(), port.subnet_timeout());
    Some(format!("{time:.3?} (RespTimeValue {response}, SubnetTimeOut {subnet})").into())
}

/// How the wrong keys differ that were tried, and how often each where that was not once.
fn wrong_keys(view: &View<'_>) -> Option<Value> {
    let askings = view.askings(Purpose::OtherKey);
    let differs = |difference: Difference| {
        let same = |asking: &&Asking<'_>| view.difference(asking.last()) == difference;
        match askings.iter().filter(same).count() {
            0 => None,
            1 => Some(difference.to_string()),
            count => Some(format!(
                "{difference} ({count} times, as the violations stayed 0)"
            )),
        }
    };
    let all = view.e.plan.differences().into_iter().filter_map(differs);
    let all: Vec<_> = all.collect();
    (!all.is_empty()).then(|| format!("differ {}", all.join(", ")).into())
}

/// Answers in time that took longer than the DUT's own RespTimeValue says. The way there and back,
/// and the tester, have a part in it that is not known.
fn slow(view: &View<'_>) -> Option<Value> {
    let says = timing::response_time(&view.port()?).as_nanos() as Nanos;
    let known_at = view.port_known_at();
    let of_dut = |asked: &&Asked| asked.purpose != Purpose::TesterPort && asked.sent >= known_at;
    let took = view.asked.iter().filter(of_dut).filter_map(Asked::took);
    let took: Vec<_> = took.collect();
    let slowest = *took.iter().max().filter(|slowest| **slowest > says)?;
    let late = took.iter().filter(|took| **took > says).count();
    let found = count(late as u64, "") + " of " + count(took.len() as u64, "");
    let found = found + ", the slowest after " + time(slowest) + "; it says " + time(says);
    Some(found + ", without the way there and back")
}

/// Modifiers of answers to requests with modifier 0, which are not judged, where they differ.
fn modifiers(view: &View<'_>) -> Option<Value> {
    let mut others = view.asked.iter().filter_map(|asked| {
        let (_, answer) = asked.answer.as_ref()?;
        let differs = asked.request.modifier() == 0 && answer.modifier() != 0;
        differs.then(|| format!("{} to {}", answer.modifier(), asked.name()))
    });
    let first = others.next()?;
    Some(count(1 + others.count() as u64, "") + format!(", the first {first}"))
}

/// Octets of PortInfo that the Sets of the M_Key changed, but for what a check judges: the state of
/// the link and its counters change by themselves too.
fn otherwise_changed(view: &View<'_>) -> Option<Value> {
    let found = view.port()?;
    let mut last = [Purpose::Restored, Purpose::ResetShown].into_iter();
    let last = last.find_map(|purpose| view.asking(purpose)?.last().port())?;
    let expected = judged_as_in(&found, &last)?;
    let pairs = found.data().iter().zip(expected.data()).enumerate();
    let changed = pairs.filter(|(_, (before, after))| before != after);
    let changed: Vec<_> = changed.map(|(octet, _)| octet.to_string()).collect();
    (!changed.is_empty()).then(|| format!("octets {}", changed.join(", ")).into())
}

/// `port` with what checks judge as in `found`.
fn judged_as_in(found: &PortInfo, port: &PortInfo) -> Option<PortInfo> {
    let mut port = *port;
    port.set_m_key(found.m_key()).ok()?;
    port.set_m_key_protect_bits(found.m_key_protect_bits())
        .ok()?;
    port.set_m_key_lease_period(found.m_key_lease_period())
        .ok()?;
    port.set_m_key_violations(found.m_key_violations()).ok()?;
    port.set_lid(found.lid()).ok()?;
    port.set_master_sm_lid(found.master_sm_lid()).ok()?;
    port.set_lmc(found.lmc()).ok()?;
    port.set_master_sm_sl(found.master_sm_sl()).ok()?;
    port.set_capability_mask(found.capability_mask()).ok()?;
    port.set_gid_prefix(found.gid_prefix()).ok()?;
    Some(port)
}

/// How late an answer to the last wrong key that must not be answered could have been seen.
fn latest(view: &View<'_>) -> Option<Value> {
    let asking = view.asking(Purpose::OtherKey);
    let asking = asking.filter(|_| view.protect_bits() >= 2)?;
    Some("until " + time(view.seen_for(asking.last())) + " after")
}

fn requests(view: &View<'_>) -> Value {
    let those =
        |is_it: fn(&&Asked) -> bool| count(view.asked.iter().filter(is_it).count() as u64, "");
    let unanswered = those(|asked| asked.answer.is_none());
    let busy = those(|asked| asked.is_busy());
    let requests = count(view.asked.len() as u64, "");
    let purposes = [Purpose::SetBlock, Purpose::GetBlock].into_iter();
    let blocks: usize = purposes.map(|purpose| view.askings(purpose).len()).sum();
    let blocks = match blocks {
        0 => Value::default(),
        blocks => " (" + count(blocks as u64, "blocks") + ")",
    };
    requests + blocks + ", " + unanswered + " not answered, " + busy + " answered BUSY"
}

/// The data of the Sets and of their answers: the document leaves them open.
fn set_data(view: &View<'_>) -> Option<Value> {
    let askings = view.askings(Purpose::SetBlock);
    let first = askings.first()?;
    let sent = first.last().request.data();
    let (mut as_sent, mut zero, mut other) = (0, 0, 0);
    for answer in askings.iter().filter_map(Asking::answer) {
        match answer.data() {
            data if data == sent => as_sent += 1,
            [0, rest @ ..] if rest.iter().all(|octet| *octet == 0) => zero += 1,
            _ => other += 1,
        }
    }
    let found = format!("{:#04x} sent; came back as sent ", sent[0]);
    let found = Value::from(found) + count(as_sent, "") + ", zero " + count(zero, "");
    Some(found + ", other " + count(other, ""))
}

/// Packets of others.
fn foreign(view: &View<'_>) -> Option<Value> {
    let is_ours = |smp: &Smp| view.asked.iter().any(|asked| asked.owns(smp.tid()));
    let smps = view.strays.iter();
    let smps = smps.filter_map(|stray| Some((stray.at, stray.smp.as_ref()?)));
    let mut foreign = smps.filter(|(_, smp)| smp.method() != Method::TRAP && !is_ours(smp));
    let (at, first) = foreign.next()?;
    let first = format!(", the first {}({}) at ", first.method(), first.attribute());
    Some(count(1 + foreign.count() as u64, "") + first + time(at))
}

/// A number of notices, with the time of the first.
fn numbered(all: usize, first: Nanos) -> Value {
    count(all as u64, "") + ", the first at " + time(first)
}

/// Notices, each with its time.
type Notices = Vec<(Nanos, Notice)>;

/// Traps of a wrong M_Key, and all others.
fn traps(view: &View<'_>) -> (Notices, Notices) {
    let notices = view.strays.iter();
    let notices = notices.filter_map(|stray| Some((stray.at, stray.notice()?)));
    notices.partition(|(_, notice)| notice.bad_m_key().is_some())
}
