//! Comparisons are there for programs, too: each number that the text of one shows is a number, and
//! its bound says what the verdict says.

use std::collections::BTreeSet;

use validator_core::cases;
use validator_core::verdict::{Assertion, Bound, Number, Verdict};

use super::corpus;

/// Words before a number that is a name, or the value of a field, and no quantity.
const NAMES: [&str; 14] = [
    "testbed is ",
    "for block ",
    "in octet ",
    "octets ",
    "from ",
    "status ",
    "code ",
    "version ",
    "LID ",
    "refuse a ",
    "lease ",
    "bits ",
    "bits 2 or ",
    "trap ",
];

/// Says after which of these words a token is a name; empty where it is one by its form: a number
/// in hexadecimal, or a path.
fn name(before: &str, token: &str) -> Option<&'static str> {
    if token.starts_with("0x") || token.contains(',') {
        return Some("");
    }
    NAMES.into_iter().find(|name| before.ends_with(name))
}

/// The number at the begin of a text, as it is written there, and the text behind it.
fn token(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"._-,".contains(c));
    let token = &text[..end.unwrap_or(text.len())];
    let token = token.trim_end_matches(['.', '-', ',']);
    text.split_at(token.len())
}

/// The tokens of a text that begin with a digit, each with the text before it.
fn tokens(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        let (word, behind) = token(&rest[at..]);
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            found.push((&text[..text.len() - rest.len() + at], word));
        }
        rest = behind;
    }
    found
}

/// Says which number of a side is not shown, or what is shown that is neither number nor name. Adds
/// the words before names to `names`.
fn mismatch(text: &str, numbers: &[Number], names: &mut BTreeSet<&'static str>) -> Option<String> {
    let mut numbers = numbers.iter().peekable();
    for (before, word) in tokens(text) {
        match numbers.peek() {
            Some(number) if word.parse() == Ok(number.value) => {
                let behind = &text[before.len() + word.len()..];
                if !behind.trim_start().starts_with(number.unit) {
                    return Some(format!("`{}` does not follow {word}", number.unit));
                }
                numbers.next();
            }
            _ => match name(before, word) {
                Some(name) => _ = names.insert(name),
                None => return Some(format!("{word} is no number")),
            },
        }
    }
    let number = numbers.next()?;
    Some(format!("{} is not shown", number.value))
}

/// True if the first number that was found stands to the expected ones as the bound says; `None`
/// where they are of different kinds.
fn holds(made: &Assertion) -> Option<bool> {
    let (expected, found) = (&made.numbers.expected, made.numbers.actual.first()?);
    let [first, ..] = expected[..] else {
        return None;
    };
    let (limit, found) = (first.value, *found);
    (found.unit == first.unit).then_some(match made.bound? {
        Bound::Exactly => found.value == limit,
        Bound::AtMost => found.value <= limit,
        Bound::AtLeast => found.value >= limit,
        Bound::Above => found.value > limit,
        Bound::Between => (limit..=expected[1].value).contains(&found.value),
    })
}

#[test]
fn numbers_of_comparisons_are_those_that_are_shown_and_decide_them() {
    let (mut wrong, mut numbers, mut bounds) = (Vec::new(), 0, 0);
    let mut names = BTreeSet::new();
    for family in ["pfc", "mad", "rc"] {
        for line in corpus::lines(family) {
            let (devices, evidence) = corpus::parse(&line);
            let result = cases::judge_case(&evidence);
            for made in result.checks.iter().flat_map(|check| &check.assertions) {
                let sides = [
                    (&made.expected, &made.numbers.expected),
                    (&made.actual, &made.numbers.actual),
                ];
                for (text, of_side) in sides {
                    numbers += of_side.len();
                    let found = mismatch(text, of_side, &mut names);
                    wrong.extend(found.map(|why| format!("{why}: {text} ({})", made.what)));
                }
                // Numbers that are equal as they are shown may differ by less than a digit.
                let is_equal = made.numbers.expected.first() == made.numbers.actual.first();
                let agrees = match (holds(made), made.verdict) {
                    (Some(holds), Verdict::Pass) => holds,
                    (Some(holds), Verdict::Fail) => !holds || is_equal,
                    _ => continue,
                };
                bounds += 1;
                if !agrees {
                    wrong.push(format!("{}: {made:?}", devices[0]));
                }
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(
        wrong.is_empty(),
        "{}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(60)]
    );
    let unused: Vec<_> = NAMES.iter().filter(|name| !names.contains(*name)).collect();
    assert!(unused.is_empty(), "{unused:?}");
    assert!(numbers > 10_000 && bounds > 10_000, "{numbers} {bounds}");
}
