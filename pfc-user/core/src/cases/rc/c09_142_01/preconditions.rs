//! Preconditions of the verdicts.

use crate::agent::protocol::State;
use crate::cases::finding::Finding;
use crate::cases::judge::{Met, Precondition};
use crate::cases::rc::judge::Rc;
use crate::cases::rc::judge::decoded::View;
use crate::cases::remedy;
use crate::evidence::rc::Phase;

type Need = Precondition<Rc>;

/// The document applies: by the testbed's word, or else by the device's.
pub(super) fn qualifier(view: &View<'_>) -> Finding {
    let mut finding = Finding::new();
    let (what, expected) = ("Automatic Path Migration", "not supported");
    let by = match view.e.apm {
        Some(_) => "`apm` of the testbed",
        None => "the device's flag",
    };
    match view.e.apm.or(view.e.device.apm) {
        Some(false) => finding.expect(what, expected, format!("not supported, by {by}"), true),
        Some(true) => {
            let why = format!("the DUT supports Automatic Path Migration, by {by}");
            return Finding::not_applicable(why);
        }
        None => finding.undecided_until(
            remedy::APM,
            what,
            expected,
            "neither the testbed nor the device says; write `apm = false` into the testbed's table \
             [rc] if the DUT does not support it, else `apm = true`",
        ),
    }
    finding
}

/// Requires that the document is known to apply or not to apply.
pub(super) const QUALIFIER: Need = Need::by("qualifier", Met::<Rc>::By(|view| Ok(qualifier(view))));
/// The DUT resolves the tester's address.
pub(super) const NEIGHBOUR: Need = Need::new(
    "neighbour",
    "See that the DUT reaches the tester's address (rc.address of the testbed): the link is up, \
     and the DUT's address is in the same subnet.",
    |view| match &view.e.unreachable {
        Some(why) => Err(format!("the DUT does not reach the tester: {why}")),
        None => Ok(()),
    },
);
/// Something of the DUT came in.
pub(super) const PATH: Need = Need::new(
    "path",
    "See that the DUT's port is at the other end of the tester's port, and unload the RDMA driver \
     of the tester's adapter.",
    |view| path(view).map_or(Ok(()), Err),
);
/// The DUT took the attributes of the test's queue pair.
pub(super) const ATTRIBUTES: Need = Need::new(
    "attributes",
    "Have the DUT's driver take the queue pair's attributes as asked, or plan those that it takes \
     (queue_pairs of the plan).",
    |view| of(&view.e.test, |test| attributes(view, test)),
);
/// The DUT took the attributes of the positive control's queue pair.
pub(super) const ATTRIBUTES_OF_CONTROL: Need = Need {
    met: Met::If(|view| of(&view.e.control, |control| attributes(view, control))),
    ..ATTRIBUTES
};
/// No packet of the test was left without a record.
pub(super) const RECORDS: Need = Need::new(
    "records",
    "Take load off the tester, until it keeps a record of each packet.",
    |view| of(&view.e.test, records),
);
/// No packet of the positive control was left without a record.
pub(super) const RECORDS_OF_CONTROL: Need = Need {
    met: Met::If(|view| of(&view.e.control, records)),
    ..RECORDS
};
/// The tester's side of the link lost nothing in the test.
pub(super) const DROPS: Need = Need::new(
    "drops",
    "Take load off the tester's port: end other traffic on it, or give it longer rings.",
    |view| of(&view.e.test, drops),
);
/// The tester's side of the link lost nothing in the positive control.
pub(super) const DROPS_OF_CONTROL: Need = Need {
    met: Met::If(|view| of(&view.e.control, drops)),
    ..DROPS
};

/// A phase that was not reached has nothing against it.
fn of(phase: &Option<Phase>, wrong: impl Fn(&Phase) -> Option<String>) -> Result<(), String> {
    phase.as_ref().and_then(wrong).map_or(Ok(()), Err)
}

fn records(phase: &Phase) -> Option<String> {
    let lost = phase.lost;
    (lost > 0).then(|| format!("{lost} packets came of which there is no record"))
}

fn drops(phase: &Phase) -> Option<String> {
    let drops = phase.drops.iter().filter(|(_, count)| *count > 0);
    let drops = drops.map(|(counter, count)| format!("{counter} rose by {count}"));
    let drops = drops.collect::<Vec<_>>().join(", ");
    (!drops.is_empty()).then(|| format!("the tester's side of the link lost frames: {drops}"))
}

/// Returns the reason if nothing arrived for the tester's queue pair: the DUT may not be connected,
/// or the adapter may keep RoCE frames from XDP.
fn path(view: &View<'_>) -> Option<String> {
    let control = view.e.control.as_ref()?;
    let mut completions = control.completions.iter();
    let completed = completions.any(|completion| completion.status == 0);
    (control.packets.is_empty() && !completed).then(|| {
        format!(
            "no packet of the positive control came in at {}: nothing shows that the DUT's port is \
             at the other end; the tester's own adapter may also take RoCE frames away before XDP \
             sees them (its RDMA driver is to be unloaded)",
            view.e.port
        )
    })
}

/// The DUT took the attributes that it was given.
fn attributes(view: &View<'_>, phase: &Phase) -> Option<String> {
    let (plan, found) = (&view.e.plan, &phase.channel.attributes);
    let mut wrong = Vec::new();
    for (what, asked, shown) in [
        (
            "retry count",
            plan.retry_count.into(),
            found.retry_count.into(),
        ),
        ("path MTU", plan.path_mtu, found.path_mtu),
        ("time-out", plan.timeout.into(), found.timeout.into()),
    ] {
        if asked != shown {
            wrong.push(format!(
                "{what} {asked} was asked for, and {shown} is shown"
            ));
        }
    }
    if found.state != State::Rts {
        let state = found.state;
        wrong.push(format!(
            "a queue pair in RTS was asked for, and {state:?} is shown"
        ));
    }
    let wrong = wrong.join("; ");
    (!wrong.is_empty()).then(|| format!("the DUT's queue pair is not as it was asked for: {wrong}"))
}
