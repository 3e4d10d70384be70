//! Lines of a bounded length.

/// A line in lines of at most `columns`, broken at spaces; all but the first begin with `indent`
/// spaces. What begins with a longer word stays whole.
pub fn wrapped(line: &str, columns: usize, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut rest, mut before) = (line, 0);
    while let Some(end) = last_space(rest, columns - before) {
        lines.push(format!("{:before$}{}", "", rest[..end].trim_end()));
        rest = rest[end..].trim_start();
        before = indent;
    }
    lines.push(format!("{:before$}{rest}", ""));
    lines
}

/// Place of the last space behind a word at which a line that is longer than `room` can end.
fn last_space(line: &str, room: usize) -> Option<usize> {
    if line.chars().count() <= room {
        return None;
    }
    let first_word = line.len() - line.trim_start().len();
    let characters = line.char_indices().take(room + 1);
    characters
        .filter(|(place, c)| *c == ' ' && *place > first_word)
        .last()
        .map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_the_last_space_that_leaves_them_short_enough() {
        let wrapped = |line| wrapped(line, 9, 2);
        assert_eq!(wrapped(""), [""]);
        assert_eq!(wrapped("123456789"), ["123456789"]);
        assert_eq!(wrapped("1234 6789 1"), ["1234 6789", "  1"]);
        assert_eq!(
            wrapped("1234 67890 123456"),
            ["1234", "  67890", "  123456"]
        );
        assert_eq!(
            wrapped("    5   9 11"),
            ["    5   9", "  11"],
            "spaces stay"
        );
        assert_eq!(wrapped("  long-words stay"), ["  long-words stay"]);
        assert_eq!(wrapped("größe als"), ["größe als"], "characters count");
    }
}
