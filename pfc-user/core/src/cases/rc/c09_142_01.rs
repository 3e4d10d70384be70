//! C09_142_01: Outstanding Request Timeout.

mod completion;
mod control;
mod figures;
mod preconditions;
mod requests;
mod resolution;
mod steps;
mod stimulate;

use preconditions::{
    ATTRIBUTES, ATTRIBUTES_OF_CONTROL, DROPS, DROPS_OF_CONTROL, NEIGHBOUR, PATH, QUALIFIER,
    RECORDS, RECORDS_OF_CONTROL,
};

use super::judge::Rc;
use super::judge::decoded::View;
use super::{RcCase, assertion};
use crate::cases::finding::Judgement;
use crate::cases::judge::{Needs, Row, Table, needs, words};
use crate::plan::rc::{RcParameters, RcPlan};
use crate::verdict::{Case, DocumentAssertion, Step, Verdict};

/// The case.
pub(super) const CASE: RcCase = RcCase {
    case: Case {
        id: "rc.c09-142-01",
        title: "V1C09-142 Outstanding Request Timeout",
        requirement: "A READ request that is not answered is retried as often as the retry count \
            says, T_tr apart, and then completes in error.",
        document: super::DOCUMENT,
        steps: STEPS,
        assertions: ASSERTIONS,
        checks: &words(&ROWS),
    },
    plan,
    stimulate: |steps, done| steps.run(done),
    table: Table {
        rows: &ROWS,
        applies: Some(|view| {
            let finding = preconditions::qualifier(view);
            match finding.verdict {
                Verdict::NotApplicable => Err(finding.reason),
                _ => Ok(()),
            }
        }),
    },
    step: steps::step,
    figures: &figures::FIGURES,
    resolution: resolution::of,
};

/// R_Key and virtual address that the document asks for in step 5.
const R_KEY: u32 = 0x1_2345;
const ADDRESS: u64 = 0x99_9000;

/// The repetition with these parameters.
fn plan(parameters: &RcParameters) -> RcPlan {
    let RcParameters {
        retry_count,
        timeout,
        path_mtu,
    } = *parameters;
    RcPlan {
        name: format!("retry {retry_count}, time-out {timeout}, PMTU {path_mtu}"),
        retry_count,
        timeout,
        path_mtu,
        r_key: R_KEY,
        address: ADDRESS,
        // One shows that a retry is answered as well as a first request; each further one takes
        // another T_tr.
        control_drops: retry_count.min(1),
    }
}

/// Steps of the document.
const STEPS: &[Step] = &[
    Step::new(
        "init 1",
        "OpenRcChannel( CC ): a queue pair of the DUT in RTS, connected to one of the tester",
    ),
    Step::new("init 2", "Set QP Retry Count = 2, or what the plan says"),
    Step::new(
        "init 3",
        "Set ACK Timeout to 18 (1.07 sec), or what the plan says",
    ),
    Step::new(
        "control",
        "(+) the DUT reaches the tester and hears it: requests are dropped, then one is \
     answered",
    ),
    Step::new("1", "Register memory region for receiving remote packets"),
    Step::new(
        "2",
        "Post one receive request for each expected packet: the tester records and drops what \
         comes for its queue pair",
    ),
    Step::new("3", "Set the retry count to a non-zero value"),
    Step::new("4", "Get the timeout value, T_tr, from the DUT"),
    Step::new(
        "5",
        "Transmit 1 RC READ WQE from DUT at size (PMTU), R_KEY = 0x12345, VA = 0x999000",
    ),
    Step::new("6", "While retry count is not zero"),
    Step::new("6.1", "Receive all expected packets"),
    Step::new("6.2", "Verify all packets were received and were valid"),
    Step::new(
        "6.3",
        "Verify each message contained a single Read Request packet",
    ),
    Step::new("6.4", "Silently drop the received packet"),
    Step::new("6.5", "Sleep for about T_tr"),
    Step::new("6.6", "Check the receive QP for a retry"),
    Step::new("6.7", "Verify that the retry count has been decremented"),
    Step::new("7", "End while retry count is not zero"),
    Step::new(
        "8",
        "Verify that the DUT retried the RDMA Read request retry count times",
    ),
    Step::new(
        "9",
        "Verify that the DUT throws the IBV_WC_RETRY_EXC_ERR (12) error",
    ),
    Step::new(
        "10",
        "Poll for completion of read request on DUT's send queue",
    ),
    Step::new(
        "11",
        "Verify exactly 1 work completion was dequeued from the send queue",
    ),
    Step::new(
        "12",
        "Verify that the status of the work completion indicates expected error status",
    ),
    Step::new(
        "13",
        "CloseRcChannel( CC ), having flushed an unacknowledged WQE",
    ),
];

/// The first is about the timer, the second about the counter and what follows when it is used up.
const ASSERTIONS: &[DocumentAssertion] = &[
    assertion(
        "V1c09-142#01",
        &[],
        &["requests", "single-packet", "same-request", "interval"],
    ),
    assertion(
        "v1c09-143#01",
        &[],
        &["requests", "retry-count", "one-completion", "status"],
    ),
];

/// Preconditions of every verdict on packets of the test.
const ON_THE_WIRE: &Needs<Rc> = needs![QUALIFIER, NEIGHBOUR, PATH, ATTRIBUTES, RECORDS, DROPS];
/// Preconditions of a verdict on what the DUT's agent says.
const IN_THE_DUT: &Needs<Rc> = needs![QUALIFIER, NEIGHBOUR, PATH, ATTRIBUTES];

const ROWS: [Row<Rc>; 11] = [
    Row {
        needs: needs![],
        even_interrupted: true,
        ..row(
            "qualifier",
            &["DUT Qualifiers"],
            "the DUT does not support Automatic Path Migration, by `apm` of the testbed or else by \
             the device's flag; where it does the case is not applicable",
            "apm",
            |view| Ok(preconditions::qualifier(view)),
        )
    },
    Row {
        extra: true,
        needs: needs![
            QUALIFIER,
            NEIGHBOUR,
            PATH,
            ATTRIBUTES_OF_CONTROL,
            RECORDS_OF_CONTROL,
            DROPS_OF_CONTROL
        ],
        ..row(
            "path-alive",
            &["control"],
            "after as many dropped requests as the plan says, which is at most the retry count, a \
             correct READ response is followed by a completion with status 0",
            "ignores-answer",
            control::path_alive,
        )
    },
    Row {
        tolerance: "a packet with the opcode and PSN of one before is a retry, however soon it comes; \
            other packets within T_tr / 16 of each other are one transmission",
        ..row(
            "requests",
            &["6.1", "6.6", "8"],
            "1 + retry count transmissions, and none in a further 4 T_tr",
            "one-retry-less",
            requests::requests,
        )
    },
    row(
        "single-packet",
        &["6.3"],
        "each transmission is one packet: opcode 0x0c with a RETH and no payload, R_Key 0x12345, \
         VA 0x999000, length = PMTU",
        "wrong-opcode",
        requests::single_packet,
    ),
    row(
        "same-request",
        &["6.2"],
        "PSN, RETH and P_Key are those of the first transmission; every packet comes from the DUT's \
         address, has transport version 0, and its ICRC is valid",
        "changes-psn",
        requests::same_request,
    ),
    Row {
        tolerance: "0.95 for kernels that count in ticks of 4 ms (measured: 250 Hz cuts off up to \
            one); 4 by 9.7.6.1.3; inconclusive where it is too short by no more than the \
            transmission before may have come in late, as the gap before it shows beside the \
            others, or the simulated DUT stood still",
        ..row(
            "interval",
            &["6.5"],
            "each transmission comes [0.95, 4] T_tr after the one before; T_tr = 4.096 us * 2^n, n \
             as read back",
            "short-timeout",
            requests::interval,
        )
    },
    Row {
        tolerance: "verbs show no counter: where the DUT does not either, it is derived from the \
            number of requests, and said so",
        depends_on: &["requests"],
        ..row(
            "retry-count",
            &["6.7", "8"],
            "before each retry the counter is decremented by one",
            "keeps-count",
            requests::retry_count,
        )
    },
    Row {
        tolerance: "0.95 as for `interval`; 4 by 9.7.6.1.3; inconclusive where it depends on how \
            long the agent's word or the last transmission took, or the simulated DUT stood still",
        ..row(
            "one-completion",
            &["9", "10", "11"],
            "exactly one completion of the READ, [0.95, 4] T_tr after the last transmission",
            "never-completes",
            completion::one_completion,
        )
    },
    Row {
        needs: IN_THE_DUT,
        ..row(
            "status",
            &["9", "12"],
            "its status is IBV_WC_RETRY_EXC_ERR (12)",
            "wrong-status",
            completion::status,
        )
    },
    Row {
        needs: IN_THE_DUT,
        ..row(
            "qp-error",
            &["13"],
            "after the completion the queue pair is in the state Error",
            "stays-in-rts",
            completion::qp_error,
        )
    },
    Row {
        needs: IN_THE_DUT,
        depends_on: &["qp-error"],
        tolerance: "bounded wait: T_tr, at least 1 s",
        ..row(
            "flush",
            &["13"],
            "one more READ that is posted completes once, with status IBV_WC_WR_FLUSH_ERR (5)",
            "no-flush",
            completion::flush,
        )
    },
];

const fn row(
    id: &'static str,
    steps: &'static [&'static str],
    passes_when: &'static str,
    fault: &'static str,
    judge: fn(&View<'_>) -> Judgement,
) -> Row<Rc> {
    Row {
        needs: ON_THE_WIRE,
        ..Row::<Rc>::new(id, steps, passes_when, fault, judge)
    }
}
