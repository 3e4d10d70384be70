use super::*;
use Verdict::{Error, Fail, Inconclusive, NotApplicable, Pass, Skipped};

/// Evidence whose parts a test sets one by one.
#[derive(Default)]
struct Tiny {
    is_interrupted: bool,
    failure: Option<&'static str>,
    not_applicable: bool,
    without_subject: bool,
    is_noisy: bool,
    link_was_down: bool,
    first: Option<Verdict>,
    second: Option<Verdict>,
    certain: bool,
}

struct Sample;

impl Family for Sample {
    type View<'e> = Tiny;
    type Outcome = Finding;

    fn is_interrupted(view: &Tiny) -> bool {
        view.is_interrupted
    }

    fn failure(view: &Tiny) -> Option<&str> {
        view.failure
    }
}

fn found(verdict: Option<Verdict>, certain: bool) -> Finding {
    Finding {
        verdict: verdict.unwrap_or(Pass),
        reason: "as found".into(),
        certain,
        ..compared()
    }
}

/// A pass that rests on a comparison.
fn compared() -> Finding {
    let mut finding = Finding::new();
    finding.equal("frames", 1, 1);
    finding
}

fn unless(wrong: bool, reason: &str) -> Result<(), String> {
    if wrong { Err(reason.into()) } else { Ok(()) }
}

const QUIET: Precondition<Sample> =
    Precondition::<Sample>::new("quiet", "", |tiny| unless(tiny.is_noisy, "3 frames lost"));
const LINK: Precondition<Sample> = Precondition {
    explains_certain: true,
    ..Precondition::<Sample>::new("link", "", |tiny| unless(tiny.link_was_down, "it was down"))
};

const ROWS: [Row<Sample>; 3] = [
    Row::<Sample>::new("first", &["1"], "always", "none", |tiny| {
        found(tiny.first, tiny.certain)
    }),
    Row {
        needs: needs![QUIET, LINK],
        depends_on: &["first"],
        applies: Some(|tiny| unless(tiny.without_subject, "nothing to look at")),
        ..Row::<Sample>::new("second", &["2"], "always", "none", |tiny| {
            found(tiny.second, tiny.certain)
        })
    },
    Row {
        even_interrupted: true,
        depends_on: &["second"],
        ..Row::<Sample>::new("third", &["3"], "always", "none", |_| compared())
    },
];
const TABLE: Table<Sample> = Table {
    rows: &ROWS,
    applies: Some(|tiny| unless(tiny.not_applicable, "it is no switch")),
};

/// Verdict and reason of each row.
fn judged(tiny: Tiny) -> [(Verdict, String); 3] {
    let results = TABLE.judge("one", Ok(&tiny));
    assert!(results.iter().all(|result| result.repetition == "one"));
    let checks = results.iter().map(|result| &result.check);
    assert!(checks.eq(["first", "second", "third"]));
    let outcomes = results
        .into_iter()
        .map(|result| (result.verdict, result.reason));
    outcomes.collect::<Vec<_>>().try_into().unwrap()
}

fn verdicts(tiny: Tiny) -> [Verdict; 3] {
    judged(tiny).map(|(verdict, _)| verdict)
}

#[test]
fn a_finding_stands_where_nothing_is_against_it() {
    let [first, second, third] = judged(Tiny {
        second: Some(Inconclusive),
        ..Tiny::default()
    });
    assert_eq!(first, (Pass, "as found".into()));
    assert_eq!(second, (Inconclusive, "as found".into()));
    assert_eq!(third, (Pass, String::new()));
}

#[test]
fn contradictions_come_before_everything() {
    for result in TABLE.judge("one", Err("two ends")) {
        assert_eq!(result.verdict, Error);
        assert_eq!(result.reason, "the evidence contradicts itself: two ends");
    }
}

#[test]
fn a_document_that_does_not_apply_comes_before_an_interruption() {
    for (verdict, reason) in judged(Tiny {
        not_applicable: true,
        is_interrupted: true,
        first: Some(Fail),
        ..Tiny::default()
    }) {
        assert_eq!((verdict, &*reason), (NotApplicable, "it is no switch"));
    }
}

#[test]
fn a_check_without_a_subject_is_neither_interrupted_nor_skipped() {
    let tiny = |is_interrupted| Tiny {
        without_subject: true,
        is_interrupted,
        first: Some(Fail),
        ..Tiny::default()
    };
    assert_eq!(verdicts(tiny(false)), [Fail, NotApplicable, Pass]);
    assert_eq!(verdicts(tiny(true)), [Inconclusive, NotApplicable, Pass]);
}

#[test]
fn an_interruption_leaves_only_what_is_judged_even_then() {
    let [first, second, third] = judged(Tiny {
        is_interrupted: true,
        failure: Some("the link went away"),
        first: Some(Fail),
        ..Tiny::default()
    });
    assert_eq!(
        first,
        (Inconclusive, "the repetition was interrupted".into())
    );
    assert_eq!(second, first);
    assert_eq!(third, (Pass, String::new()));
}

#[test]
fn a_check_that_depends_on_a_failed_or_skipped_one_is_skipped() {
    let [_, second, third] = judged(Tiny {
        first: Some(Fail),
        second: Some(NotApplicable),
        is_noisy: true,
        ..Tiny::default()
    });
    let on = |check: &str| format!("it depends on `{check}`, which did not pass");
    assert_eq!(second, (Skipped, on("first")));
    assert_eq!(third, (Skipped, on("second")));
    for verdict in [Pass, Inconclusive, NotApplicable] {
        let tiny = Tiny {
            first: Some(verdict),
            ..Tiny::default()
        };
        assert_eq!(verdicts(tiny), [verdict, Pass, Pass]);
    }
}

#[test]
fn an_unmet_precondition_leaves_a_check_open_but_not_one_with_nothing_to_judge() {
    let tiny = |second| Tiny {
        second: Some(second),
        is_noisy: true,
        link_was_down: true,
        ..Tiny::default()
    };
    for verdict in [Pass, Fail, Inconclusive] {
        let [_, second, _] = judged(tiny(verdict));
        let reasons = "quiet: 3 frames lost; link: it was down";
        assert_eq!(second, (Inconclusive, reasons.into()), "{verdict}");
    }
    assert_eq!(verdicts(tiny(NotApplicable)), [Pass, NotApplicable, Pass]);
}

#[test]
fn a_certain_failure_stands_against_all_but_what_explains_it() {
    let tiny = |link_was_down| Tiny {
        second: Some(Fail),
        certain: true,
        is_noisy: true,
        link_was_down,
        ..Tiny::default()
    };
    assert_eq!(verdicts(tiny(false)), [Pass, Fail, Skipped]);
    let [_, second, _] = judged(tiny(true));
    assert_eq!(second, (Inconclusive, "link: it was down".into()));
}

#[test]
fn a_failure_of_the_tester_is_told_where_a_check_is_left_open() {
    let [first, second, third] = judged(Tiny {
        failure: Some("the link went away"),
        first: Some(Inconclusive),
        is_noisy: true,
        ..Tiny::default()
    });
    assert_eq!(first.1, "the link went away; as found");
    assert_eq!(second.1, "the link went away; quiet: 3 frames lost");
    assert_eq!(third.1, "");
}

#[test]
fn words_name_the_preconditions() {
    let words = words(&ROWS);
    assert_eq!(
        words.each_ref().map(|check| check.id),
        ["first", "second", "third"]
    );
    assert_eq!(words[1].preconditions, ["quiet", "link"]);
    assert_eq!(words[1].depends_on, ["first"]);
}

const DISTURBED: Precondition<Sample> =
    Precondition::<Sample>::of_tester("quiet", "", |tiny| unless(tiny.is_noisy, "3 frames lost"));

/// The result of one check, and its id if measuring again may decide it.
fn only(
    needs: &'static Needs<Sample>,
    judge: fn(&Tiny) -> Finding,
    tiny: &Tiny,
) -> (Vec<CheckResult>, Vec<&'static str>) {
    let row = Row {
        needs,
        ..Row::<Sample>::new("only", &["1"], "always", "none", judge)
    };
    let table = Table {
        rows: Box::leak(Box::new([row])),
        applies: None,
    };
    table.judge_attempt("one", Ok(tiny))
}

#[test]
fn measuring_again_may_decide_what_the_tester_alone_left_open() {
    let noisy = |link_was_down| Tiny {
        is_noisy: true,
        link_was_down,
        ..Tiny::default()
    };
    let pass = |_: &Tiny| compared();
    assert_eq!(only(needs![DISTURBED], pass, &noisy(false)).1, ["only"]);
    assert_eq!(only(needs![DISTURBED], pass, &Tiny::default()).1, [""; 0]);
    // One that stays unmet is enough: measuring again cannot decide it.
    assert_eq!(only(needs![DISTURBED, LINK], pass, &noisy(true)).1, [""; 0]);
    let undecided = |undecidable: bool| {
        let mut finding = compared();
        finding.undecided("lateness", "none", "3 ms");
        if undecidable {
            finding.undecidable("a hook", "one", "none");
        }
        finding
    };
    let tiny = Tiny::default();
    assert_eq!(
        only(needs![], |_| Finding::inconclusive("cut"), &tiny).1,
        [""; 0]
    );
    assert_eq!(undecided(false).again, Again::MayDecide);
    assert_eq!(undecided(true).again, Again::CannotDecide);
}

#[test]
fn a_pass_that_compared_nothing_is_inconclusive() {
    let (results, _) = only(needs![], |_| Finding::new(), &Tiny::default());
    assert_eq!(results[0].verdict, Inconclusive);
    assert_eq!(results[0].reason, "nothing was compared");
}
