//! A program that the kernel's verifier refuses: its whole log is in a file.

use std::fs;

use validator::driver::bpf::{AccountProgram, Sizes, XdpError};

/// As the tool has it in itself.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/account"));
/// The call of the helper `bpf_ktime_get_ns`, as an instruction.
const CALL: [u8; 8] = [0x85, 0, 0, 0, 5, 0, 0, 0];
/// The same for a helper that no kernel has.
const NO_HELPER: [u8; 8] = [0x85, 0, 0, 0, 0xff, 0xff, 0, 0];

/// The object with one call of a helper made to one that there is not. The verifier comes to that
/// call after hundreds of instructions, each of which is a line of its log.
fn refused() -> Vec<u8> {
    let mut object = OBJECT.to_vec();
    let instructions = || OBJECT.chunks_exact(CALL.len());
    let is_call = |instruction: &&[u8]| *instruction == CALL;
    let calls = instructions().filter(is_call).count();
    let mut places = (0..)
        .zip(instructions())
        .filter(|(_, found)| is_call(found));
    // The first calls come too soon, and the last is in another program of the object.
    let (place, _) = places
        .nth(calls * 2 / 3)
        .expect("the program asks for the time");
    object[place * CALL.len()..][..CALL.len()].copy_from_slice(&NO_HELPER);
    object
}

#[test]
fn root_the_whole_log_of_the_verifier_is_in_a_file_that_the_message_names() {
    let sizes = Sizes {
        flows: 1,
        windows: 1,
    };
    let error = match AccountProgram::load_object(&refused(), sizes) {
        Ok(_) => panic!("the kernel has a helper of number 65535"),
        Err(error) => error,
    };
    assert!(matches!(error, XdpError::Rejected { .. }), "{error}");
    let message = error.to_string();
    let file = message
        .split_whitespace()
        .map(|word| word.trim_end_matches([',', ':']))
        .find(|word| word.contains("validator-verifier-"))
        .unwrap_or_else(|| panic!("no file is named: {message}"));
    let log = fs::read_to_string(file).unwrap();
    fs::remove_file(file).unwrap();
    // From the first instruction, which shorter logs of newer kernels leave out, to the last.
    assert!(log.lines().any(|line| line.starts_with("0: (")), "{log}");
    assert!(log.contains("invalid func unknown#65535"), "{log}");
    assert!(log.len() > 10 * 1024, "longer than the first buffer: {log}");
    let end = log.trim_end().lines().next_back().unwrap();
    assert!(message.contains(end), "{message}");
}
