//! Exercises what the hooks of a DUT say: its counters, and the last lines of one that failed.

use validator_core::evidence::hooks::{HookOutput, changes};

/// Takes the text up to the first NUL for the counters before a repetition, and the rest for those
/// after it. Returns how many changed.
pub fn exercise(octets: &[u8]) -> usize {
    let text: &str = &String::from_utf8_lossy(octets);
    let (before, after) = text.split_once('\0').unwrap_or((text, text));
    let forward = changes(&[output("before", before, 0), output("after", after, 0)]);
    let backward = changes(&[output("before", after, 0), output("after", before, 0)]);
    assert_eq!(forward.len(), backward.len());
    for (forward, backward) in forward.iter().zip(&backward) {
        assert_eq!(forward.counter, backward.counter);
        assert_eq!(
            (forward.before, forward.after),
            (backward.after, backward.before)
        );
        assert_eq!(forward.change()[1..], backward.change()[1..]);
        assert_ne!(forward.change(), backward.change());
    }
    let failure = output("after", text, 1).failure().expect("it failed");
    assert!(failure.lines().count() == 1 && failure.contains("exit status 1: "));
    forward.len()
}

fn output(when: &str, stdout: &str, status: i32) -> HookOutput {
    HookOutput {
        hook: "counters".into(),
        when: when.into(),
        command: String::new(),
        status,
        stdout: stdout.into(),
        stderr: String::new(),
    }
}
