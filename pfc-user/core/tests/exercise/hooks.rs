//! Exercises what the hooks of a DUT say: its counters, and the last lines of one that failed.

use validator_core::evidence::hooks::{HookOutput, changes};

/// Takes the text up to the first NUL for the counters before a repetition, and the rest for those
/// after it. Returns how many changed.
pub fn exercise(octets: &[u8]) -> usize {
    let text: &str = &String::from_utf8_lossy(octets);
    let (before, after) = text.split_once('\0').unwrap_or((text, text));
    let there = changes(&[said("before", before, 0), said("after", after, 0)]);
    let back = changes(&[said("before", after, 0), said("after", before, 0)]);
    assert_eq!(there.len(), back.len());
    for (there, back) in there.iter().zip(&back) {
        assert_eq!(there.counter, back.counter);
        assert_eq!((there.before, there.after), (back.after, back.before));
        assert_eq!(there.change()[1..], back.change()[1..]);
        assert_ne!(there.change(), back.change());
    }
    let failure = said("after", text, 1).failure().expect("it failed");
    assert!(failure.lines().count() == 1 && failure.contains("exit status 1: "));
    there.len()
}

fn said(when: &str, stdout: &str, status: i32) -> HookOutput {
    HookOutput {
        hook: "counters".into(),
        when: when.into(),
        command: String::new(),
        status,
        stdout: stdout.into(),
        stderr: String::new(),
    }
}
