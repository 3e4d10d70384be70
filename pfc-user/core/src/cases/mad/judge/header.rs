//! The headers of answers and traps.

use ib_mad::smp::Smp;

use super::Mad;
use super::contact::LINK_IS_UP;
use super::decoded::{Asked, View};
use super::hidden_key;
use crate::cases::finding::{Finding, Judgement, Undecided};
use crate::cases::judge::{Row, needs};
use crate::cases::value::{Value, count};
use crate::evidence::mad::Purpose;

/// The row of every table.
pub const HEADER: Row<Mad> = Row {
    extra: true,
    needs: needs![LINK_IS_UP],
    ..Row::<Mad>::new(
        "header",
        &[],
        "each answer has class version 1, attribute, modifier (where the request's is not 0), TID \
         (all of it where the transport leaves it alone) and path of its request, and the D bit of \
         a directed route; at protect bits 1 to 3 no octet of a trap, or of an answer to a request \
         without M_KEY_DUT, shows M_KEY_DUT",
        "header=class-version",
        header,
    )
};

/// Defect of one part of an answer: the expected value, and the one that was found.
type Wrong = Option<(Value, Value)>;

/// Name of a part of the header, and what is wrong with it in an answer.
type Part = (&'static str, fn(&View<'_>, &Asked, &Smp) -> Wrong);

/// Parts of a header.
const PARTS: [Part; 6] = [
    ("class version", |_, _, answer| {
        differs(1, answer.class_version())
    }),
    ("attribute", |_, asked, answer| {
        let expected = asked.request.attribute();
        // Checks of their own judge those of the table.
        words_differ(expected, answer.attribute()).filter(|_| !is_of_table(asked))
    }),
    ("modifier", |_, asked, answer| {
        let is_judged = asked.request.modifier() != 0 && !is_of_table(asked);
        differs(asked.request.modifier(), answer.modifier()).filter(|_| is_judged)
    }),
    ("D bit", |_, asked, answer| {
        words_differ(asked.request.is_directed(), answer.is_returning())
    }),
    ("path", |_, asked, answer| {
        let path = |smp: &Smp| smp.path().map(|path| path.to_string()).unwrap_or_default();
        words_differ(path(&asked.request), path(answer))
    }),
    ("TID", |view, asked, answer| {
        words_differ(asked.request.tid(), answer.tid()).filter(|_| view.e.keeps_tids)
    }),
];

fn differs<T: PartialEq + Into<Value>>(expected: T, found: T) -> Wrong {
    (expected != found).then(|| (expected.into(), found.into()))
}

fn words_differ<T: ToString>(expected: T, found: T) -> Wrong {
    differs(expected.to_string(), found.to_string())
}

fn is_of_table(asked: &Asked) -> bool {
    matches!(asked.purpose, Purpose::SetBlock | Purpose::GetBlock)
}

fn header(view: &View<'_>) -> Judgement {
    let answered = view
        .of_dut()
        .filter_map(|asked| asked.answer.as_ref().map(|(_, answer)| (asked, answer)));
    let answered: Vec<_> = answered.collect();
    if answered.is_empty() {
        return Err(Undecided::not_reached("nothing was answered"));
    }
    let mut finding = Finding::new();
    for (part, judge) in PARTS {
        let wrong = answered.iter().filter_map(|(asked, answer)| {
            let (expected, found) = judge(view, asked, answer)?;
            Some((*asked, expected, found))
        });
        let wrong: Vec<_> = wrong.collect();
        if let Some((asked, expected, found)) = wrong.first() {
            let answers = count(answered.len() as u64, "answers");
            let found = found.clone() + "; wrong in " + wrong.len() + " of " + answers;
            let what = format!("{part} of the answer to {}", asked.name());
            let subjects = wrong.iter().map(|(asked, ..)| asked.subject());
            finding.expect_about(subjects, what, expected.clone(), found, false);
        }
    }
    hidden_key::judge(view, &mut finding);
    if finding.assertions.is_empty() {
        let found = "so in " + count(answered.len() as u64, "answers");
        finding.expect("headers", "as the requests ask for them", found, true);
    }
    Ok(finding)
}
