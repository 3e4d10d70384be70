//! Text for people: lines of at most 100 columns, with or without colour.

use std::env;
use std::io::IsTerminal;

use crate::verdict::Verdict;

/// Columns of a line.
const WIDTH: usize = 100;

/// True if `stream` takes colour: it is a terminal, and `NO_COLOR` is unset or empty
/// (<https://no-color.org>).
pub fn colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns `text` in the colour of `verdict`.
pub fn paint(text: &str, verdict: Verdict, colour: bool) -> String {
    let code = match verdict {
        Verdict::Pass => "32",
        Verdict::Fail => "1;31",
        Verdict::Inconclusive => "33",
        Verdict::Error => "35",
        Verdict::NotApplicable | Verdict::Skipped => "2",
    };
    if colour {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// Appends `text` broken at spaces; the first line begins with `label`, the others are indented by
/// its width.
pub fn paragraph(out: &mut String, label: &str, text: &str) {
    let indent = label.chars().count();
    let mut column = indent;
    out.push_str(label);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        }
        if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
}

/// Appends a paragraph in whose label `word` has the colour of `verdict`.
pub fn verdict_paragraph(
    out: &mut String,
    label: &str,
    (word, verdict, colour): (&str, Verdict, bool),
    text: &str,
) {
    let mut plain = String::new();
    paragraph(&mut plain, label, text);
    // Without colours, of which no line knows where to break.
    *out += &plain.replacen(word, &paint(word, verdict, colour), 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_and_indented() {
        let mut out = String::new();
        paragraph(&mut out, "  label ", &"word ".repeat(40));
        let lines: Vec<_> = out.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
        assert!(lines[0].starts_with("  label word") && lines[1].starts_with("        word"));
        assert_eq!(out.matches("word").count(), 40);
    }

    #[test]
    fn words_longer_than_a_line_are_kept_whole() {
        let mut out = String::new();
        paragraph(&mut out, "", &format!("a {} b", "x".repeat(200)));
        assert_eq!(out, format!("a\n{}\nb\n", "x".repeat(200)));
    }
}
