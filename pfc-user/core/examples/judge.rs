//! Judges the evidence that `validator run --out DIR` stored, and prints the report: what
//! `validator judge DIR` does, with this crate alone. It needs no root, and no Linux.
//!
//! ```text
//! cargo run -p validator-core --example judge -- DIR
//! ```

use std::path::Path;
use std::process::ExitCode;
use std::{env, io};

use validator_core::verdict::Exit;
use validator_core::{cases, report};

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [directory] = &arguments[..] else {
        eprintln!("judge: expected one directory, found {}", arguments.len());
        return ExitCode::from(Exit::Usage as u8);
    };
    match report::read_evidence(Path::new(directory)) {
        Ok(evidence) => {
            let results = cases::judge(&evidence);
            let exit = Exit::of(&results, evidence.interrupted);
            let colour = report::colour(&io::stdout());
            print!(
                "{}",
                report::text::summary(&evidence, &results, exit, colour)
            );
            ExitCode::from(exit as u8)
        }
        Err(error) => {
            eprintln!("judge: {error}");
            ExitCode::from(Exit::Usage as u8)
        }
    }
}
