//! Exercises the reading of evidence, its judgement and its reports.

use serde_json::Value;
use validator_core::cases;
use validator_core::evidence::{Evidence, numbers, whole};
use validator_core::report::{html, json, junit, pcapng, text};
use validator_core::verdict::Exit;

/// Reads the octets as evidence without digests. What is whole is shown in every report: true where
/// it was.
pub fn exercise(octets: &[u8]) -> bool {
    let Ok(stored) = serde_json::from_slice::<Value>(octets) else {
        return false;
    };
    match whole::without_digests(&stored) {
        Ok(evidence) => {
            let mut written = serde_json::to_value(&evidence).expect("evidence is JSON");
            numbers::to_portable(&mut written);
            assert_eq!(whole::without_digests(&written), Ok(evidence.clone()));
            let is_consistent = cases::consistent(&evidence).is_ok();
            if is_consistent {
                report(&evidence);
            }
            is_consistent
        }
        // A run judges what it has recorded, whatever that is.
        Err(_) => {
            let mut stored = stored;
            numbers::from_portable(&mut stored);
            if let Ok(evidence) = serde_json::from_value(stored) {
                cases::judge(&evidence);
            }
            false
        }
    }
}

fn report(evidence: &Evidence) {
    let results = cases::judge(evidence);
    let exit = Exit::of(&results, evidence.interrupted);
    assert!(text::summary(evidence, &results, exit, true).contains("verdict"));
    text::verbose(evidence, &results, exit, false);
    html::page(evidence, &results, exit);
    json::write(Vec::new(), evidence, &results, exit).expect("memory takes it");
    junit::write(Vec::new(), evidence, &results).expect("memory takes it");
    for (_, offences) in pcapng::captures(evidence) {
        let _ = pcapng::write(Vec::new(), offences, evidence.host.clock);
    }
}
