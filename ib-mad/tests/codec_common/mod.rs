//! Shared by the codec's tests.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;

/// True if `tool` is in `PATH`. Otherwise reports `test` as skipped, in the file named by
/// `VALIDATOR_SKIPS`, which `cargo xtask test` counts, or on the output.
pub fn need_tool(test: &str, tool: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    if !found {
        let line = format!("{test}: needs {tool}, which `cargo xtask setup` installs\n");
        match env::var_os("VALIDATOR_SKIPS") {
            // One write in append mode keeps the lines of parallel tests apart.
            Some(file) => OpenOptions::new()
                .create(true)
                .append(true)
                .open(&file)
                .and_then(|mut file| file.write_all(line.as_bytes()))
                .unwrap_or_else(|error| {
                    panic!("VALIDATOR_SKIPS names {}: {error}", file.display())
                }),
            None => print!("skipped: {line}"),
        }
    }
    found
}

/// Pseudo-random octets (xorshift64*), the same in every run.
pub struct Random(pub u64);

impl Random {
    /// Returns 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns `N` octets.
    pub fn octets<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| (self.next() >> 56) as u8)
    }
}

// Each test file compiles this module anew, and few use all of it.
const _: fn(&str, &str) -> bool = need_tool;
const _: fn(&mut Random) -> [u8; 1] = Random::octets;
