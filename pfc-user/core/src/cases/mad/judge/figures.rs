//! Figures that are reported and not judged.

use ib_mad::attr::{Attribute, NodeInfo, PortInfo, SwitchInfo};
use ib_mad::mad::Method;
use ib_mad::smp::Smp;

use super::decoded::{Asked, Asking, Stray, View};
use crate::cases::mad::timing;
use crate::cases::value::{Value, count, time};
use crate::evidence::mad::Purpose;
use crate::m_key::Protection;
use crate::plan::Nanos;
use crate::plan::mad::Difference;
use crate::verdict::Figure;

/// Name and value of a figure.
type Named = (&'static str, Value);

pub(super) fn of(view: &View<'_>) -> Vec<Figure> {
    let mut named = surroundings(view);
    named.extend(found(view));
    named.extend(exchanges(view));
    named.extend(others(view));
    let figure = |(name, value): Named| value.figure(&view.e.plan.name, name);
    named.into_iter().map(figure).collect()
}

/// The way to the DUT, and the longest time of an answer.
fn surroundings(view: &View<'_>) -> Vec<Named> {
    let way = format!("{}, {}", view.e.transport, view.e.plan.route);
    let mut named = vec![("transport", way.into())];
    if !view.e.shows_unmatched {
        let unseen = "answers that match no request under way";
        named.push(("not visible", unseen.into()));
    }
    if let Some(port) = view.port() {
        let times = format!(
            "{:.3?} (RespTimeValue {}, SubnetTimeOut {})",
            view.answer_time(),
            port.response_time_value(),
            port.subnet_timeout()
        );
        named.push(("time-out", times.into()));
    }
    named
}

/// The DUT as it was found.
fn found(view: &View<'_>) -> Vec<Named> {
    let mut named = Vec::new();
    if let Some(port) = view.port() {
        let violations = port.m_key_violations();
        let found = format!("{}, violations {violations}", Protection::of(&port));
        named.push(("found", found.into()));
    }
    let original = view.e.original;
    if let Some(original) = original.filter(|original| Some(*original) != view.found()) {
        named.push((
            "found by an earlier repetition",
            original.to_string().into(),
        ));
    }
    let set = view.asking(Purpose::KeySet);
    if let Some(set) = set.and_then(|asking| asking.last().port()) {
        named.push(("answer to the Set", Protection::of(&set).to_string().into()));
    }
    if let Some(node) = view.attribute::<NodeInfo>(Purpose::NodeInfo) {
        let info = format!(
            "{:?}, {} ports, GUID {:#018x}",
            node.node_type(),
            node.num_ports(),
            node.node_guid()
        );
        named.push(("NodeInfo", info.into()));
    }
    if let Some(switch) = view.attribute::<SwitchInfo>(Purpose::SwitchInfo) {
        let info = format!(
            "LinearFDBCap {}, RandomFDBCap {}",
            switch.linear_fdb_cap(),
            switch.random_fdb_cap()
        );
        named.push(("SwitchInfo", info.into()));
    }
    named
}

/// Requests and answers.
fn exchanges(view: &View<'_>) -> Vec<Named> {
    let mut named = vec![("requests", requests(view))];
    let slowest = view.asked.iter().filter_map(Asked::took).max();
    named.extend(slowest.map(|slowest| ("slowest answer", time(slowest))));
    named.extend(slow(view).map(|found| ("answers later than RespTimeValue says", found)));
    named.extend(latest(view));
    named.extend(modifiers(view).map(|found| ("modifiers of answers", found)));
    named.extend(otherwise_changed(view).map(|found| ("PortInfo changed otherwise", found.into())));
    named.extend(set_data(view).map(|data| ("data of the Sets", data)));
    named.extend(wrong_keys(view).map(|keys| ("wrong keys", keys.into())));
    named
}

/// How the wrong keys differ that were tried, and how often each where that was not once.
fn wrong_keys(view: &View<'_>) -> Option<String> {
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
    (!all.is_empty()).then(|| format!("differ {}", all.join(", ")))
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
fn otherwise_changed(view: &View<'_>) -> Option<String> {
    let found = view.port()?;
    let mut last = [Purpose::Restored, Purpose::ResetShown].into_iter();
    let last = last.find_map(|purpose| view.asking(purpose)?.last().port())?;
    let expected = judged_as_in(&found, &last)?;
    let pairs = found.data().iter().zip(expected.data()).enumerate();
    let changed = pairs.filter(|(_, (before, after))| before != after);
    let changed: Vec<_> = changed.map(|(octet, _)| octet.to_string()).collect();
    (!changed.is_empty()).then(|| format!("octets {}", changed.join(", ")))
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
fn latest(view: &View<'_>) -> Option<Named> {
    let asking = view.asking(Purpose::OtherKey);
    let asking = asking.filter(|_| view.protect_bits() >= 2)?;
    let found = Value::from("until ") + time(view.seen_for(asking.last())) + " after";
    Some(("answers to a wrong key seen", found))
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
        blocks => Value::from(" (") + count(blocks as u64, "blocks") + ")",
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

/// Packets of others, and those that the DUT sent of its own accord.
fn others(view: &View<'_>) -> Vec<Named> {
    let mut figures = traps(view);
    let is_ours = |smp: &Smp| view.asked.iter().any(|asked| asked.owns(smp.tid()));
    let foreign: Vec<_> = smps(view)
        .filter(|(_, smp)| smp.method() != Method::TRAP && !is_ours(smp))
        .collect();
    if let Some((at, first)) = foreign.first() {
        let first = format!(", the first {}({}) at ", first.method(), first.attribute());
        let found = count(foreign.len() as u64, "") + first + time(*at);
        figures.push(("SMPs that are not the tester's affair", found));
    }
    let malformed = view.strays.iter().filter(|stray| stray.smp.is_none());
    let malformed = malformed.count() as u64;
    if malformed > 0 {
        figures.push(("packets that are no SMP", count(malformed, "")));
    }
    figures
}

/// Whole packets that answered no request under way, each with its time.
fn smps<'v>(view: &'v View<'_>) -> impl Iterator<Item = (Nanos, &'v Smp)> {
    let smp = |stray: &'v Stray<'_>| Some((stray.at, stray.smp.as_ref()?));
    view.strays.iter().filter_map(smp)
}

/// Traps, that of a wrong M_Key apart.
fn traps(view: &View<'_>) -> Vec<Named> {
    let mut figures = Vec::new();
    let notices = view.strays.iter();
    let notices = notices.filter_map(|stray| Some((stray.at, stray.notice()?)));
    let (bad_m_key, other): (Vec<_>, Vec<_>) =
        notices.partition(|(_, notice)| notice.bad_m_key().is_some());
    let numbered = |all: usize, at| count(all as u64, "") + ", the first at " + time(at);
    if let Some((at, first)) = bad_m_key.first() {
        let key = first.bad_m_key().map(|details| details.m_key());
        let key = key.unwrap_or_default();
        let found = numbered(bad_m_key.len(), *at) + format!(" for M_Key {key}");
        figures.push(("trap 256", found));
    }
    if let Some((at, first)) = other.first() {
        let found = numbered(other.len(), *at) + format!(": {:?}", first.source());
        figures.push(("other traps", found));
    }
    figures
}
