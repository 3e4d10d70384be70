//! Errors as messages.

use crate::report::plain;

/// Joins an error with its causes, without control characters, for files may be quoted. A cause
/// already contained in the message is left out.
pub fn in_words(error: &anyhow::Error) -> String {
    let words = error
        .chain()
        .fold(String::new(), |text, cause| match cause.to_string() {
            cause if text.is_empty() => cause,
            cause if text.ends_with(&cause) => text,
            cause => format!("{text}: {cause}"),
        });
    plain::lines(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_said_once() {
        let cause = std::io::Error::from_raw_os_error(libc::ENETDOWN);
        let error = anyhow::Error::from(crate::driver::kernel::link::LinkError::System {
            what: "cannot list".into(),
            source: cause,
        });
        assert_eq!(
            in_words(&error.context("no port")),
            "no port: cannot list: Network is down (os error 100)"
        );
    }
}
