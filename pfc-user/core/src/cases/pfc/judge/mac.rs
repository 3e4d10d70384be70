//! The witness of the DUT's PAUSE/PFC frames: the program on the port, or the port's MAC where the
//! MAC consumes those frames. The counters of a MAC support fewer conclusions: they tell no source
//! address, and many count XOFF and XON together.

use pfc_ebpf::units::Priority;

use crate::cases::value::{Value, count};
use crate::evidence::mac::{Frames, MacCounter, MacReport, Subject};
use crate::evidence::pfc::PfcEvidence;
use crate::nic::{self, Receives};

/// The witness of the DUT's PAUSE/PFC frames.
pub(super) enum Witness<'e> {
    /// The XDP program on the tx port.
    Program,
    /// The tx port's MAC.
    Mac(&'e MacReport),
}

/// Returns the witness that was shown to see PFC frames received at the tx port. An error gives the
/// reason why there is none. PAUSE frames show nothing: a MAC that obeys PFC may pass them on.
pub(super) fn witness(e: &PfcEvidence) -> Result<Witness<'_>, String> {
    if e.ports.tx.pfc_visible.is_some() || e.ports.tx.counts.pfc_frames > 0 {
        return Ok(Witness::Program);
    }
    let counters = match report(e, "tx") {
        None => "there is no reading of its counters".to_owned(),
        Some(mac) => match usable(e, mac) {
            Ok(()) => return Ok(Witness::Mac(mac)),
            Err(why) => why,
        },
    };
    let (interface, driver) = (&e.ports.tx.interface, &e.ports.tx.driver);
    let keeper = match nic::find(driver).map(|nic| &nic.receives) {
        Some(Receives::PassesOn) => format!(
            "the {driver}'s other end may be a bridge's, which keeps them (declare facts.direct \
             if it is the DUT's own)"
        ),
        Some(Receives::ByHost) => "its host may keep them".to_owned(),
        _ => "its MAC may swallow them".to_owned(),
    };
    Err(format!(
        "it was not shown that PAUSE/PFC frames reach the program on {interface}: {keeper}; and \
         {counters}"
    ))
}

/// The counters of that port's MAC.
fn report<'e>(e: &'e PfcEvidence, port: &str) -> Option<&'e MacReport> {
    e.mac.iter().find(|mac| mac.port == port)
}

/// Fails unless the readings cover the repetition and some counter was shown to count.
fn usable(e: &PfcEvidence, mac: &MacReport) -> Result<(), String> {
    covers(e, mac)?;
    if mac.counters.is_empty() {
        return Err(format!(
            "no counter of the driver {} is known that counts them",
            mac.driver
        ));
    }
    let is_alive = |counter: &MacCounter| alive(mac, counter).is_some();
    if !mac.counters.iter().any(is_alive) {
        return Err(format!(
            "none of its {} counters of such frames was shown to count",
            mac.counters.len()
        ));
    }
    Ok(())
}

fn covers(e: &PfcEvidence, mac: &MacReport) -> Result<(), String> {
    if let Some(error) = &mac.error {
        return Err(error.clone());
    }
    let (Some(first), Some(last)) = (mac.readings.first(), mac.readings.last()) else {
        return Err("its counters were not read".into());
    };
    let began = e.phases.iter().map(|span| span.from).min().unwrap_or(0);
    let ended = e.phases.iter().map(|span| span.to).max().unwrap_or(0);
    if first.time > began || last.time < ended + mac.lag {
        return Err("the readings of its counters do not cover the repetition".into());
    }
    Ok(())
}

/// The way this run showed that `counter` counts. `None` if it did not.
fn alive(mac: &MacReport, counter: &MacCounter) -> Option<String> {
    let shown = |counter: &MacCounter| match counter.rise() {
        Some(1..) => Some("it rose".to_owned()),
        _ => counter.alive.clone(),
    };
    // One array and the same PFC setting: what counts for one priority counts for another.
    let alike = |other: &&MacCounter| match (counter.subject, other.subject, mac.enabled) {
        (Subject::Priority(one), Subject::Priority(another), Some(enabled)) => {
            let bit = |priority: Priority| enabled >> priority.get() & 1;
            counter.array.is_some()
                && counter.array == other.array
                && counter.source == other.source
                && bit(one) == bit(another)
        }
        _ => false,
    };
    let by_another = || {
        let mut alike = mac.counters.iter().filter(alike);
        let another = alike.find(|other| shown(other).is_some())?;
        Some(format!("{} did, with the same PFC setting", another.name))
    };
    shown(counter).or_else(by_another)
}

/// Frames that came in and paused something.
#[derive(Debug, PartialEq)]
pub(super) enum Counted {
    /// Frames did: the counter, and by how much it rose.
    Some(Value),
    /// No frame did: the counter, and how it was shown to count.
    None(Value),
    /// Unknown, with the reason.
    Unknown(Value),
    /// Unknown, for no counter of such frames was shown to count.
    Unshown(Value),
}

/// XOFF frames for `priority` that came in.
pub(super) fn xoff(mac: &MacReport, priority: Priority) -> Counted {
    let proves = |frames| matches!(frames, Frames::Xoff | Frames::Effect);
    let name = format!("priority {priority}");
    counted(mac, Subject::Priority(priority), &name, proves)
}

/// PAUSE frames that came in, from any sender and whether or not they paused anything.
pub(super) fn pause(mac: &MacReport) -> Counted {
    counted(mac, Subject::Pause, "PAUSE", |_| true)
}

/// Frames of `subject` that came in, where a rise of a counter of frames that `proves` accepts
/// shows that one did.
fn counted(
    mac: &MacReport,
    subject: Subject,
    name: &str,
    proves: impl Fn(Frames) -> bool,
) -> Counted {
    let own = mac.counters.iter();
    let own: Vec<_> = own.filter(|counter| counter.subject == subject).collect();
    let risen: Vec<_> = own
        .iter()
        .filter_map(|counter| Some((counter.frames, rise(counter)?)))
        .collect();
    if let Some((_, proof)) = risen.iter().find(|(frames, _)| proves(*frames)) {
        return Counted::Some(proof.clone());
    }
    if let Some(reset) = own.iter().find(|counter| counter.rise().is_none()) {
        return Counted::Unknown(format!("{} was reset meanwhile", reset.name).into());
    }
    let of_xoff = own
        .iter()
        .filter(|counter| matches!(counter.frames, Frames::Xoff | Frames::Either));
    if let Some(none) = none(mac, of_xoff.copied()) {
        return Counted::None(none);
    }
    match risen.first() {
        Some((Frames::Either, both)) => {
            Counted::Unknown(both.clone() + ", which counts XOFF and XON together")
        }
        Some((_, xon)) => {
            Counted::Unknown(xon.clone() + ", and no counter of XOFF was shown to count")
        }
        None => any(mac).unwrap_or_else(|| not_shown(&own, name)),
    }
}

/// The rise of `counter`; `None` where it did not rise.
fn risen(counter: &MacCounter) -> Option<u64> {
    counter.rise().filter(|rise| *rise > 0)
}

/// The rise of `counter` in words; `None` where it did not rise.
fn rise(counter: &MacCounter) -> Option<Value> {
    let name = Value::from(counter.name.as_str());
    Some(name + " rose by " + risen(counter)?)
}

/// The first of `counters` that stayed and was shown to count.
fn none<'m>(mac: &MacReport, counters: impl Iterator<Item = &'m MacCounter>) -> Option<Value> {
    let mut stayed = counters.filter(|counter| counter.rise() == Some(0));
    stayed.find_map(|counter| {
        let alive = alive(mac, counter)?;
        Some(count(0, "") + format!(" by {}, which counts: {alive}", counter.name))
    })
}

/// Uses a counter of all MAC control frames: if it did not rise, no frame of any kind came.
fn any(mac: &MacReport) -> Option<Counted> {
    let counters = mac.counters.iter();
    let of_any = counters.filter(|counter| counter.subject == Subject::Any);
    none(mac, of_any).map(Counted::None)
}

fn not_shown(own: &[&MacCounter], subject: &str) -> Counted {
    let names: Vec<_> = own.iter().map(|counter| counter.name.as_str()).collect();
    Counted::Unshown(match names.as_slice() {
        [] => format!("no counter of {subject} is known").into(),
        names => {
            let names = names.join(", ");
            count(0, "") + format!(" by {names}, not shown to count in this run")
        }
    })
}

/// XOFF frames for `priority` that came in at the rx port.
pub(super) fn xoff_at_rx(e: &PfcEvidence, priority: Priority) -> Option<Value> {
    let mac = report(e, "rx").filter(|mac| covers(e, mac).is_ok())?;
    match xoff(mac, priority) {
        Counted::Some(found) => Some(found),
        _ => None,
    }
}

/// Looks for frames like those of the rx port's storm at the tx port. Each of the storm's frames
/// counts for all of its priorities, so that one counter that did not rise excludes them. A rise
/// proves nothing, as those frames may be the DUT's own.
pub(super) fn storm_at_tx(e: &PfcEvidence, mac: &MacReport) -> Counted {
    let mut frames = e.plan.bursts().flat_map(|burst| &burst.frames);
    if frames.any(|one| !one.frame.is_heeded()) {
        let why = "no counter is known to rise by frames that are almost PFC";
        return any(mac).unwrap_or_else(|| Counted::Unknown(why.into()));
    }
    let in_each_probe = |priority: &&Priority| {
        let mut frames = e.plan.bursts().flat_map(|burst| &burst.frames);
        frames.all(|one| one.frame.time(**priority).is_some_and(|time| time.0 > 0))
    };
    let probed: Vec<Priority> = e
        .plan
        .probed()
        .iter()
        .filter(in_each_probe)
        .copied()
        .collect();
    let storm = e.plan.storm.as_ref();
    let Some(named) = storm.map_or(Some(&probed[..]), |storm| storm.kind.named()) else {
        return pause(mac);
    };
    if named.is_empty() {
        let why = "no counter of a priority rises by frames that name none";
        return Counted::Unknown(why.into());
    }
    if storm.is_some_and(|storm| !storm.asks()) {
        let why = "it is not known if the counter of a priority rises by an XON";
        return any(mac).unwrap_or_else(|| Counted::Unknown(why.into()));
    }
    let mut why = Vec::new();
    for counted in named.iter().map(|priority| xoff(mac, *priority)) {
        match counted {
            Counted::None(how) => return Counted::None(how),
            Counted::Some(how) | Counted::Unknown(how) | Counted::Unshown(how) => why.push(how),
        }
    }
    Counted::Unknown(Value::joined(why, "; "))
}

/// Text for the report: the witness of the DUT's PAUSE/PFC frames, and its counts.
pub(super) fn figure(e: &PfcEvidence) -> Value {
    match witness(e) {
        Ok(Witness::Program) => format!("the program on {} (XDP)", e.ports.tx.interface).into(),
        Ok(Witness::Mac(mac)) => {
            let rose = mac.counters.iter().filter_map(|counter| {
                let rise = count(risen(counter)?, "");
                Some(Value::from(counter.name.as_str()) + " +" + rise)
            });
            let rose = Value::joined(rose, ", ");
            let rose = match rose.numbers() {
                [] => "none rose".into(),
                _ => rose,
            };
            Value::from(format!("the MAC of {} ({}): ", mac.interface, mac.driver)) + rose
        }
        Err(_) => "nobody was shown to".into(),
    }
}
