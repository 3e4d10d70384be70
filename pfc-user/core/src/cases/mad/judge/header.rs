//! The headers of answers and traps.

use ib_mad::attr::{Attribute, PortInfo};
use ib_mad::mad::{MKey, Method};
use ib_mad::smp::Smp;

use super::Mad;
use super::contact::LINK_IS_UP;
use super::decoded::{Asked, View};
use super::strays::unseen;
use crate::case::Verdict;
use crate::cases::finding::Finding;
use crate::cases::judge::{Row, needs};
use crate::evidence::mad::Purpose;
use crate::plan::mad::MadStimulus;
use crate::quantity::ms;

/// The row of every table.
pub(in crate::cases::mad) const HEADER: Row<Mad> = Row {
    extra: true,
    needs: needs![LINK_IS_UP],
    ..Row::<Mad>::new(
        "header",
        "-",
        "each answer has class version 1, attribute, modifier (where the request's is not 0), TID \
         (all of it where the transport leaves it alone) and path of its request, and the D bit of \
         a directed route; at protect bits 1 to 3 neither a trap nor an answer to M_KEY_OTHER \
         holds M_KEY_DUT in any octet",
        "header=class-version",
        header,
    )
};

/// Defect of one part of an answer: the expected value, and the one that was found.
type Wrong = Option<(String, String)>;

/// Name of a part of the header, and what is wrong with it in an answer.
type Part = (&'static str, fn(&View<'_>, &Asked, &Smp) -> Wrong);

/// Parts of a header.
const PARTS: [Part; 5] = [
    ("class version", |_, _, answer| {
        differs(1, answer.class_version())
    }),
    ("attribute", |_, asked, answer| {
        let expected = asked.request.attribute();
        // Checks of their own judge those of the table.
        (!is_of_table(asked) && answer.attribute() != expected)
            .then(|| (expected.to_string(), answer.attribute().to_string()))
    }),
    ("modifier", |_, asked, answer| {
        let is_judged = asked.request.modifier() != 0 && !is_of_table(asked);
        differs(asked.request.modifier(), answer.modifier()).filter(|_| is_judged)
    }),
    ("D bit", |_, asked, answer| {
        differs(asked.request.is_directed(), answer.is_returning())
    }),
    ("path", |_, asked, answer| {
        let path = |smp: &Smp| smp.path().map(|path| path.to_string()).unwrap_or_default();
        let (expected, found) = (path(&asked.request), path(answer));
        (expected != found).then_some((expected, found))
    }),
];

fn differs<T: PartialEq + ToString>(expected: T, found: T) -> Wrong {
    (expected != found).then(|| (expected.to_string(), found.to_string()))
}

fn is_of_table(asked: &Asked) -> bool {
    matches!(asked.purpose, Purpose::SetBlock | Purpose::GetBlock)
}

fn header(view: &View<'_>) -> Finding {
    let answered = view
        .asked
        .iter()
        .filter(|asked| asked.purpose != Purpose::TesterPort)
        .filter_map(|asked| asked.answer.as_ref().map(|(_, answer)| (asked, answer)));
    let answered: Vec<_> = answered.collect();
    if answered.is_empty() {
        return Finding::inconclusive("nothing was answered");
    }
    let mut finding = Finding::new();
    for (part, judge) in PARTS {
        let mut wrong = answered.iter().filter_map(|(asked, answer)| {
            let (expected, found) = judge(view, asked, answer)?;
            Some((*asked, expected, found))
        });
        if let Some((asked, expected, found)) = wrong.next() {
            let found = format!(
                "{found}; wrong in {} of {} answers",
                1 + wrong.count(),
                answered.len()
            );
            let what = format!("{part} of the answer to {}", asked.name());
            finding.expect(what, expected, found, false);
        }
    }
    tids(view, &answered, &mut finding);
    hidden_key(view, &answered, &mut finding);
    if finding.assertions.is_empty() {
        let found = format!("so in {} answers", answered.len());
        finding.expect("headers", "as the requests ask for them", found, true);
    }
    finding
}

/// Records an answer whose TID is not the request's, where the transport leaves all of it alone.
fn tids(view: &View<'_>, answered: &[(&Asked, &Smp)], finding: &mut Finding) {
    let mut wrong = answered
        .iter()
        .filter(|(asked, answer)| asked.request.tid() != answer.tid());
    let Some((asked, answer)) = wrong.next() else {
        return;
    };
    let what = format!("TID of the answer to {}", asked.name());
    let (count, of) = (1 + wrong.count(), answered.len());
    let found = format!("{}; wrong in {count} of {of} answers", answer.tid());
    match view.e.keeps_tids {
        Some(true) => finding.expect(what, asked.request.tid(), found, false),
        Some(false) => {}
        None => {
            let found = format!("{found}; the evidence does not say if the transport changes TIDs");
            finding.undecided(what, asked.request.tid(), found);
        }
    }
}

/// Records where M_KEY_DUT is shown to those who did not send it.
fn hidden_key(view: &View<'_>, answered: &[(&Asked, &Smp)], finding: &mut Finding) {
    if !matches!(view.e.plan.stimulus, MadStimulus::MKeyGet(1..)) {
        return;
    }
    let key = view.dut_key();
    // With few octets that are not 0, other values may look like it.
    let is_rare = key
        .0
        .to_be_bytes()
        .iter()
        .filter(|octet| **octet != 0)
        .count()
        >= 3;
    let mut shown = |what: String, at: usize| {
        let expected = "M_KEY_DUT nowhere";
        match is_rare {
            true => finding.expect(what, expected, format!("in octet {at}"), false),
            false => {
                let found = format!("in octet {at}; a key with fewer octets 0 would decide");
                finding.undecided(what, expected, found);
            }
        }
    };
    let found = view.port();
    for (asked, answer) in answered {
        if asked.purpose != Purpose::OtherKey {
            continue;
        }
        // What stood there before the DUT had the key, or is an echo, is not the key.
        let before = |at: usize| {
            let data = found
                .as_ref()
                .filter(|_| answer.attribute() == PortInfo::ID);
            let data = data.and_then(|port| port.data().get(at.checked_sub(DATA)?..)?.get(..KEY));
            data == Some(&answer.octets()[at..at + KEY])
        };
        let echo = |at: usize| asked.request.octets()[at..at + KEY] == key.0.to_be_bytes();
        // The steps that read PortInfo:M_Key judge it.
        let is_judged = |at: usize| at == DATA && answer.attribute() == PortInfo::ID;
        let mut places = places(answer, key);
        if let Some(at) = places.find(|at| !before(*at) && !echo(*at) && !is_judged(*at)) {
            let what = format!("answer to {} with M_KEY_OTHER", asked.name());
            shown(what, at);
        }
    }
    for stray in &view.strays {
        let trap = stray.smp.as_ref();
        if let Some(trap) = trap.filter(|smp| smp.method() == Method::TRAP)
            && let Some(at) = places(trap, key).next()
        {
            shown(format!("trap at {}", ms(stray.at)), at);
        }
    }
    if finding.verdict == Verdict::Pass
        && let Some(unseen) = unseen(view)
    {
        finding.undecided("M_KEY_DUT in traps", "nowhere", unseen);
    }
}

/// Octets of a key.
const KEY: usize = 8;
/// The M_Key of the header.
const HEADER_KEY: usize = 24;
/// First octet of the data.
const DATA: usize = 64;
/// Octets before the paths of a directed route.
const BEFORE_PATHS: usize = 128;

/// Each octet at which `key` begins, in the header from its M_Key on and in the data.
fn places(smp: &Smp, key: MKey) -> impl Iterator<Item = usize> {
    let key = key.0.to_be_bytes();
    let octets = smp.octets();
    (HEADER_KEY..=BEFORE_PATHS - KEY).filter(move |at| octets[*at..*at + KEY] == key)
}
