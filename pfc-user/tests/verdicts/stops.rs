//! A tester and a simulated device that stand still for a while, as a signal or a busy host makes
//! them: a good device never fails for it.

use validator_core::evidence::pfc::Stall;
use validator_core::plan::Nanos;
use validator_core::verdict::Verdict;

use crate::bench::{self, BEGIN, Process, Stopped};

const MS: Nanos = 1_000_000;
/// Shorter than a pause of the storm, longer, and longer than any wait.
const SPANS: [Nanos; 3] = [60 * MS, 300 * MS, 2000 * MS];
/// Parts of a repetition, at the begin of each of which a process stops.
const PARTS: Nanos = 20;

/// Case, lossless priorities, and the storm where it is not on all of them.
type Repetition = (&'static str, &'static [u8], Option<&'static [u8]>);

/// Stops the process at each part of the repetition, for each of the spans. Most of the stops leave
/// a trace: none is seen where the process has nothing to do, or after the end.
fn never_fails(process: Process, (id, lossless, storm): Repetition) {
    let plan = bench::plan(id, lossless, storm);
    let whole = bench::run(&plan, &[]);
    let end = whole.waits.iter().map(|wait| wait.to).max().unwrap();
    let mut seen = 0;
    for span in SPANS {
        for part in 0..PARTS {
            let from = BEGIN + (end - BEGIN) * part / PARTS;
            let to = from + span;
            let evidence = bench::run_stopped(&plan, Stopped { process, from, to });
            let dut = evidence.dut.as_ref().unwrap();
            let storm = evidence.storm.as_ref().unwrap();
            let stalls = match process {
                Process::Tester => [&evidence.sender.stalls[..], &storm.stalls].concat(),
                Process::Device => dut.stalls.clone(),
            };
            let is_it = |stall: &Stall| stall.from < to && stall.to > from;
            seen += usize::from(stalls.iter().any(is_it));
            let checks = bench::case(id).judge(&evidence).checks;
            let bad = |verdict| matches!(verdict, Verdict::Fail | Verdict::Error);
            let failed: Vec<_> = checks.iter().filter(|check| bad(check.verdict)).collect();
            assert!(
                failed.is_empty(),
                "{id}, {process:?} stopped for {} ms at {part}/{PARTS}: {failed:#?}",
                span / MS
            );
        }
    }
    let all = SPANS.len() * PARTS as usize;
    assert!(
        seen > all / 2,
        "{id}, {process:?}: {seen} stops of {all} left a trace"
    );
}

macro_rules! never_fails {
    ($($name:ident: $process:ident, $repetition:expr;)*) => {
        $(
            #[test]
            fn $name() {
                never_fails(Process::$process, $repetition);
            }
        )*
    };
}

never_fails! {
    a_stopped_tester_fails_no_device_in_case_1: Tester, ("pfc.pause-single-lossless", &[3], None);
    a_stopped_device_is_not_failed_in_case_1: Device, ("pfc.pause-single-lossless", &[3], None);
    a_stopped_tester_fails_no_device_in_case_2: Tester,
        ("pfc.pause-multi-lossless", &[3, 4], Some(&[3]));
    a_stopped_device_is_not_failed_in_case_2: Device,
        ("pfc.pause-multi-lossless", &[3, 4], Some(&[3]));
    a_stopped_tester_fails_no_device_in_case_3: Tester, ("pfc.pause-lossy", &[3], None);
    a_stopped_device_is_not_failed_in_case_3: Device, ("pfc.pause-lossy", &[3], None);
    a_stopped_tester_fails_no_device_in_case_4: Tester, ("pfc.global-pause", &[3, 4], None);
    a_stopped_device_is_not_failed_in_case_4: Device, ("pfc.global-pause", &[3, 4], None);
}
