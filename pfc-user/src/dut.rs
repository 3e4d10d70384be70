//! Simulated devices under test: the processes around their models.

pub mod requester;
pub mod sma;
mod stamping;
pub mod stop;
pub mod switch;

/// Reads the arguments of a device from a command line.
#[cfg(test)]
fn parsed<T: clap::Args>(line: &str) -> Result<T, String> {
    let command = T::augment_args(clap::Command::new("device"));
    let found = command.try_get_matches_from(line.split_whitespace());
    let read = found.and_then(|found| T::from_arg_matches(&found));
    read.map_err(|error| error.to_string())
}
