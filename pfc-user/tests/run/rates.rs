//! The planned frame rate decides how frames are counted, and the report says so.

use pfc_ebpf::abi::account::Clock;
use pfc_ebpf::stamp::is_sampled;
use validator_core::evidence::pfc::PfcEvidence;

use crate::run::external::measured;
use crate::run::lab::{Lab, of_repository, plan};
use crate::run::outcome::Outcome;

const FIGURE: &str = "accounting at this rate";

/// Runs a case with frames of `length` octets at that speed of the links. Returns its outcome and
/// its evidence.
fn run(test: &str, line_rate: &str, length: usize) -> Option<(Outcome, PfcEvidence)> {
    let lab = Lab::new(test)?;
    let text = plan("150ms", &[("pause-lossy", "lossless = [3]")]);
    let plan = lab.file("plan.toml", &format!("{text}[traffic]\nframe = {length}\n"));
    let testbed = of_repository("configs/testbeds/sim.toml");
    // The testbed has 1G already.
    let set = match line_rate {
        "1G" => String::new(),
        other => format!(" --set testbed.ports.line_rate=\"{other}\""),
    };
    let run = lab.start(&format!("--testbed {testbed} --plan {plan}{set}"));
    let ended = Outcome::of(run.wait_with_output().unwrap());
    let evidence = measured(&lab).remove(0);
    lab.assert_nothing_is_left();
    Some((ended, evidence))
}

/// Returns the number of frames received, and the number of verified checksums. Verified are only
/// frames in the sample of one in `every` sent, and all of these if nothing was lost.
fn verified(evidence: &PfcEvidence, every: u64) -> (u64, u64) {
    let mut sum = (0, 0);
    for flow in &evidence.received {
        // Sequence numbers continue from phase to phase.
        let mut phases: Vec<_> = evidence
            .sender
            .flows
            .iter()
            .filter(|sent| sent.flow == flow.flow)
            .collect();
        phases.sort_by_key(|sent| sent.first);
        let place = phases
            .iter()
            .position(|sent| sent.phase == flow.phase)
            .unwrap();
        let first: u64 = phases[..place].iter().map(|sent| sent.frames).sum();
        let sample = (first..first + phases[place].frames)
            .filter(|sequence| is_sampled(*sequence, every))
            .count() as u64;
        let verified = flow.verified.unwrap();
        assert!(verified <= sample, "{flow:?} {:?}: {sample}", phases[place]);
        if flow.frames == phases[place].frames {
            assert_eq!(verified, sample, "{flow:?}");
        }
        sum = (sum.0 + flow.frames, sum.1 + verified);
    }
    sum
}

#[test]
fn root_at_a_low_rate_every_frame_has_its_time_and_its_checksum_verified() {
    let Some((ended, evidence)) = run(
        "root_at_a_low_rate_every_frame_has_its_time_and_its_checksum_verified",
        "1G",
        1024,
    ) else {
        return;
    };
    assert_eq!(
        (evidence.counting.clock, evidence.counting.verify_every),
        (Clock::Exact, 1)
    );
    let (frames, verified) = verified(&evidence, 1);
    assert!(frames > 0 && verified == frames, "{verified} of {frames}");
    assert!(!ended.stdout.contains(FIGURE), "{}", ended.stdout);
}

#[test]
fn root_above_three_million_frames_a_second_a_sample_is_verified_and_the_report_says_so() {
    let name =
        "root_above_three_million_frames_a_second_a_sample_is_verified_and_the_report_says_so";
    // 5 Gbit/s of frames of 71 octets are 6.6 million per second; the result does not depend on the
    // machine's ability to send them.
    let Some((ended, evidence)) = run(name, "5G", 71) else {
        return;
    };
    assert_eq!(
        (evidence.counting.clock, evidence.counting.verify_every),
        (Clock::Batched, 16)
    );
    let (frames, verified) = verified(&evidence, 16);
    assert!(
        frames > 0 && verified > 0 && verified < frames,
        "{verified} of {frames}"
    );
    // The report wraps long lines.
    let words: Vec<_> = ended.stdout.split_whitespace().collect();
    let expected = format!(
        "{FIGURE} one reading of the clock for up to 8 frames, octets verified of one frame in 16"
    );
    assert!(words.join(" ").contains(&expected), "{}", ended.stdout);
}
