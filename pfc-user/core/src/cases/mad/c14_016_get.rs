//! C14_016_Get: M_Key checking of SubnGet() at each value of PortInfo:M_KeyProtectBits.

mod answer;
mod attempt;
mod judge;
mod stimulate;
mod uncounted;
mod wrong_key;

use ib_mad::mad::MKey;

use super::judge::Mad;
use super::judge::contact::PORT_STATE;
use super::judge::header::HEADER;
use super::judge::strays::SINGLE_ANSWER;
use super::{MadCase, assertion, row, row_of_set};
use crate::cases::judge::{Row, Table, words};
use crate::evidence::mad::Purpose;
use crate::plan::mad::{ATTEMPTS, MadPlan, MadStimulus};
use crate::verdict::{Case, DocumentAssertion, Step};

/// The case.
pub(super) const CASE: MadCase = MadCase {
    case: Case {
        id: "mad.c14-016-get",
        title: "14.1.4.2 M_Key checking for SubnGet()",
        requirement: "The DUT answers a Get with a wrong M_Key as its M_KeyProtectBits say, and \
            counts it only where it must not answer.",
        document: super::DOCUMENT,
        steps: STEPS,
        assertions: ASSERTIONS,
        checks: &words(&ROWS),
    },
    plan: |port| {
        let subcase = |bits| MadPlan {
            key_bits: port.key_bits.at(bits),
            ..port.repetition(format!("protect-bits-{bits}"), MadStimulus::MKeyGet(bits))
        };
        (0..=3).map(subcase).collect()
    },
    stimulate: stimulate::run,
    table: Table {
        rows: &ROWS,
        applies: None,
    },
    step: judge::step,
    resolution: judge::resolution,
};

/// The settings of the DUT that a repetition changes for its time, for people.
pub fn changes(plan: &MadPlan) -> Option<String> {
    Some(format!(
        "M_Key {}, M_KeyProtectBits {}, lease 0; M_KEY_OTHER is {}",
        MKey(plan.m_key_dut),
        plan.stimulus.protect_bits()?,
        wrong_keys(plan)
    ))
}

/// The wrong keys, the first of each kind, for people.
fn wrong_keys(plan: &MadPlan) -> String {
    let mut kinds = Vec::new();
    let bits: Vec<_> = plan.key_bits.iter().map(u8::to_string).collect();
    if !bits.is_empty() {
        kinds.push(format!(
            "M_KEY_DUT but for one of the bits {}",
            bits.join(", ")
        ));
    }
    let first = (0..plan.differences().len() as u32).map(|index| 1 + index * ATTEMPTS);
    let keys = first.map(|attempt| MKey(plan.wrong_key(attempt)).to_string());
    kinds.extend(keys.skip(bits.len()));
    kinds.join(", then ")
}

/// Steps of the document; 1.1 to 1.4 are those of PerformInitialSteps, to which step 1 refers.
const STEPS: &[Step] = &[
    Step::new(
        "init 1",
        "DUT PortInfo:PortState = Initialize, Armed, or Active; the tester's too",
    ),
    Step::new(
        "init 2",
        "DUT PortInfo:M_Key = M_KEY_DUT; with violations 0 and lease 0",
    ),
    Step::new("init 3", "DUT PortInfo:M_KeyProtectBits = <as specified>"),
    Step::new(
        "1.1",
        "SendMad( SubnGet(PortInfo) where MADHeader:M_Key=M_KEY_DUT )",
    ),
    Step::new("1.2", "SMP_DATA = ReceiveMad( SubnGetResp(PortInfo) )"),
    Step::new("1.3", "verify: PortInfo:M_Key == M_KEY_DUT"),
    Step::new(
        "1.4",
        "SendMad( SubnGet(PortInfo) where MADHeader:M_Key=M_KEY_OTHER )",
    ),
    Step::of(
        &[0, 1],
        "2",
        "SMP_DATA = ReceiveMad( SubnGetResp(PortInfo) )",
    ),
    Step::of(
        &[0],
        "3",
        "verify: PortInfo:M_Key == M_KEY_DUT, PortInfo:M_KeyViol = 0",
    ),
    Step::of(
        &[1],
        "3",
        "verify: PortInfo:M_Key == 0, PortInfo:M_KeyViol = 0",
    ),
    Step::of(
        &[0, 1],
        "4",
        "reset MKey = 0; ProtectBits = 0 and MKeyViolations = 0",
    ),
    Step::of(
        &[2, 3],
        "2",
        "VerifyNoReceiveMad( SubnGetResp( PortInfo) ) after the time-out of 13.4.6.2",
    ),
    Step::of(
        &[2, 3],
        "3",
        "SendMad( SubnGet(PortInfo) with M_Key = M_KEY_DUT )",
    ),
    Step::of(&[2, 3], "4", "SMP_DATA = ReceiveMad()"),
    Step::of(
        &[2, 3],
        "5",
        "verify IB_PORT_MKEY_VIOL == 1; where it is 0 the request may be lost, and all is \
     done again, at most twice for each way in which M_KEY_OTHER differs",
    ),
    Step::of(
        &[2, 3],
        "6",
        "reset MKey = 0; ProtectBits = 0 and MKeyViolations = 0",
    ),
    Step::of(
        &[1, 2, 3],
        "again",
        "(+) all from init 2 on, with M_KEY_OTHER that differs in one bit, for each \
     bit of the plan, in the lower half, in the upper half, and everywhere",
    ),
    Step::new(
        "end",
        "(+) M_Key, M_KeyProtectBits and M_KeyLeasePeriod as they were found",
    ),
];

/// Assertions as the comments of the steps name them; #03.01 and #04.01 stand together at the step
/// that protect bits 2 and 3 share.
const ASSERTIONS: &[DocumentAssertion] = &[
    assertion(
        "v1c14-016#01.01",
        &["protect-bits-0"],
        &[
            "own-key-answered",
            "own-key-value",
            "other-key-answered",
            "other-key-value",
        ],
    ),
    assertion(
        "v1c14-016#02.01",
        &["protect-bits-1"],
        &["other-key-answered", "other-key-value"],
    ),
    assertion("v1c14-016#03.01", &["protect-bits-2"], &["no-answer"]),
    assertion("v1c14-016#04.01", &["protect-bits-3"], &["no-answer"]),
    assertion(
        "v1c14-029#01.01",
        &[],
        &["own-key-answered", "other-key-answered", "no-violation"],
    ),
    assertion(
        "v1c14-029#01.02",
        &["protect-bits-2", "protect-bits-3"],
        &["before-wrong-key", "no-answer", "one-violation"],
    ),
];

const OWN_KEY: &[&str] = &["key-set", "own-key-answered", "own-key-value"];

const ROWS: [Row<Mad>; 17] = [
    PORT_STATE,
    row_of_set(
        "key-set",
        &["init 2", "init 3"],
        "Set(PortInfo) of M_KEY_DUT and the protect bits is answered with status 0, and a Get \
         shows both",
        &["port-state"],
        "ignores-key-set",
        judge::key_set,
    ),
    row(
        "own-key-answered",
        &["1.1", "1.2"],
        "Get(PortInfo) with M_KEY_DUT is answered with status 0",
        &[],
        "refuses-its-key",
        |view| judge::all_answered(view, Purpose::OwnKey),
    ),
    row(
        "own-key-value",
        &["1.3"],
        "the answer to M_KEY_DUT shows M_KEY_DUT",
        &["own-key-answered"],
        "forgets-key",
        judge::own_key_value,
    ),
    Row {
        applies: Some(judge::answers_other_key),
        ..row(
            "other-key-answered",
            &["1.4", "2"],
            "protect bits 0 and 1: Get(PortInfo) with each M_KEY_OTHER is answered with status 0",
            OWN_KEY,
            "refuses-other-key",
            |view| judge::all_answered(view, Purpose::OtherKey),
        )
    },
    Row {
        applies: Some(judge::answers_other_key),
        ..row(
            "other-key-value",
            &["3"],
            "protect bits 0: the answer to M_KEY_OTHER shows M_KEY_DUT; protect bits 1: it shows 0",
            &["other-key-answered"],
            "shows-key",
            judge::other_key_value,
        )
    },
    Row {
        applies: Some(judge::answers_other_key),
        ..row(
            "no-violation",
            &["3"],
            "protect bits 0 and 1: the answer to M_KEY_OTHER shows violations 0",
            &["other-key-answered"],
            "counts-good-key",
            judge::no_violation,
        )
    },
    Row {
        applies: Some(judge::refuses_other_key),
        ..row(
            "before-wrong-key",
            &["2"],
            "protect bits 2 and 3: the answer to M_KEY_DUT just before M_KEY_OTHER shows the \
             protect bits, and violations 0",
            OWN_KEY,
            "counts-own-key",
            judge::before_wrong_key,
        )
    },
    Row {
        applies: Some(judge::refuses_other_key),
        tolerance: "time-out of 13.4.6.2: 4.096 us * (2^RespTimeValue + 2 * 2^SubnetTimeOut), or \
            the testbed's if that is longer; above 10 s inconclusive",
        ..row(
            "no-answer",
            &["1.4", "2"],
            "protect bits 2 and 3: after Get(PortInfo) with each M_KEY_OTHER no \
             SubnGetResp(PortInfo) with its TID while the case runs, and none with a TID of no request within the \
             time-out; violations or trap 256 show that the Get arrived",
            OWN_KEY,
            "answers-wrong-key",
            wrong_key::no_answer,
        )
    },
    Row {
        applies: Some(judge::refuses_other_key),
        ..row(
            "dut-key-answered",
            &["3", "4"],
            "protect bits 2 and 3: after that Get(PortInfo) with M_KEY_DUT is answered with status \
             0",
            OWN_KEY,
            "locks-out",
            |view| judge::all_answered(view, Purpose::DutKey),
        )
    },
    Row {
        extra: true,
        applies: Some(judge::refuses_other_key),
        ..row(
            "dut-key-value",
            &["4"],
            "protect bits 2 and 3: that answer shows M_KEY_DUT and the protect bits",
            &["dut-key-answered"],
            "drops-protection",
            judge::dut_key_value,
        )
    },
    Row {
        applies: Some(judge::refuses_other_key),
        tolerance: "upper 99 % bound of the loss of at least 100 other requests (Clopper and \
            Pearson), and the binomial distribution",
        ..row(
            "one-violation",
            &["5"],
            "protect bits 2 and 3: that answer shows violations 1 after each M_KEY_OTHER, and 0 \
             where that was answered BUSY; with 0 all is done again, and 0 fails where trap 256 \
             names that M_KEY_OTHER or it was answered, and where loss explains the zeros of the \
             case with probability below 1e-6; else it is inconclusive",
            &["before-wrong-key", "dut-key-answered"],
            "no-violations",
            |view| Ok(wrong_key::one_violation(view)),
        )
    },
    row_of_set(
        "reset",
        &["4", "6"],
        "Set(PortInfo) of M_Key 0, protect bits 0 and violations 0 is answered with status 0, \
         and a Get shows all three",
        &[],
        "keeps-key",
        judge::reset,
    ),
    Row {
        extra: true,
        // The fate of the DUT's key is reported in any case.
        even_interrupted: true,
        ..row(
            "restored",
            &[],
            "M_Key, protect bits and lease as they were found, as a Get shows",
            &[],
            "one-key",
            judge::restored,
        )
    },
    Row {
        extra: true,
        ..row(
            "nothing-else-changed",
            &[],
            "LID, MasterSMLID, LMC, MasterSMSL, CapabilityMask and GidPrefix are as before the \
             Sets of the M_Key",
            &[],
            "changes",
            judge::nothing_else_changed,
        )
    },
    HEADER,
    SINGLE_ANSWER,
];
