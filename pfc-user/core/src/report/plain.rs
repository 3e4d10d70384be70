//! Text without control characters: names in evidence may come from anywhere, and must neither
//! steer a terminal nor break a line or an XML file.

use serde_json::Value;

use crate::verdict::CaseResult;

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

/// Results with all their texts in plain characters. Subjects of comparisons, causes and numbers,
/// which no text shows by themselves, are left out.
pub fn results(results: &[CaseResult]) -> Vec<CaseResult> {
    let plain = serde_json::to_value(results).and_then(|mut results| {
        value(&mut results);
        serde_json::from_value(results)
    });
    plain.expect("results are read as they are written")
}

fn value(found: &mut Value) {
    match found {
        Value::String(found) => *found = text(found),
        Value::Array(all) => all.iter_mut().for_each(value),
        Value::Object(fields) => fields.values_mut().for_each(value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
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
