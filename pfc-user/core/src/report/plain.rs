//! Text without control characters: names in evidence may come from anywhere, and must neither
//! steer a terminal nor break a line or an XML file.

use crate::case::{
    Assertion, AssertionResult, AttemptResult, CaseResult, CheckResult, Figure, StepResult,
};

/// Returns `text` on one line. White space becomes a space, and each control character and each
/// that changes the direction of writing becomes U+FFFD.
pub fn text(text: &str) -> String {
    lines(text).replace(['\n', '\t'], " ")
}

/// Returns `text` with its line feeds and tabs kept, and other characters replaced as by `text()`.
pub fn lines(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\r' => ' ',
            // Embeddings, overrides and isolates (Unicode Standard Annex 9).
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

/// Results with all their texts in plain characters.
pub fn results(results: &[CaseResult]) -> Vec<CaseResult> {
    results.iter().map(case).collect()
}

fn case(result: &CaseResult) -> CaseResult {
    CaseResult {
        case: text(&result.case),
        verdict: result.verdict,
        reason: text(&result.reason),
        checks: result.checks.iter().map(check).collect(),
        attempts: result.attempts.iter().map(attempt).collect(),
        assertions: result.assertions.iter().map(assertion).collect(),
        steps: result.steps.iter().map(step).collect(),
        figures: result.figures.iter().map(figure).collect(),
    }
}

fn check(result: &CheckResult) -> CheckResult {
    CheckResult {
        check: text(&result.check),
        repetition: text(&result.repetition),
        verdict: result.verdict,
        reason: text(&result.reason),
        assertions: result.assertions.iter().map(comparison).collect(),
    }
}

fn attempt(made: &AttemptResult) -> AttemptResult {
    AttemptResult {
        repetition: text(&made.repetition),
        attempt: made.attempt,
        checks: made.checks.iter().map(check).collect(),
    }
}

fn comparison(made: &Assertion) -> Assertion {
    Assertion {
        what: text(&made.what),
        expected: text(&made.expected),
        actual: text(&made.actual),
        verdict: made.verdict,
        about: made.about.clone(),
    }
}

fn assertion(result: &AssertionResult) -> AssertionResult {
    AssertionResult {
        id: text(&result.id),
        verdict: result.verdict,
        checks: result.checks.iter().map(|id| text(id)).collect(),
        comparisons: result.comparisons.iter().map(comparison).collect(),
    }
}

fn step(result: &StepResult) -> StepResult {
    StepResult {
        repetition: text(&result.repetition),
        step: text(&result.step),
        what: text(&result.what),
        found: text(&result.found),
        verdict: result.verdict,
    }
}

fn figure(figure: &Figure) -> Figure {
    Figure {
        repetition: text(&figure.repetition),
        name: text(&figure.name),
        value: text(&figure.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_of_plain_characters() {
        let hostile = "a\x1b[2J\u{9b}31m\x07\u{7f}\0 b\r\nc\td\u{202e}e, é";
        let plain = "a\u{fffd}[2J\u{fffd}31m\u{fffd}\u{fffd}\u{fffd} b  c d\u{fffd}e, é";
        assert_eq!(text(hostile), plain);
        assert_eq!(lines("a\x1b\n\tb"), "a\u{fffd}\n\tb");
    }
}
