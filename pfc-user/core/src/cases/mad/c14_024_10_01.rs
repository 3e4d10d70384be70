//! C14_024_10_01: LinearForwardingTable of a switch that has none.

mod judge;
mod stimulate;

use super::judge::Mad;
use super::judge::contact::PORT_STATE;
use super::judge::header::HEADER;
use super::judge::strays::SINGLE_ANSWER;
use super::{MadCase, assertion, row, row_of_set};
use crate::cases::judge::{Row, Table, words};
use crate::evidence::mad::Purpose;
use crate::plan::mad::MadStimulus;
use crate::verdict::{Case, DocumentAssertion, Step};

/// The case.
pub(super) const CASE: MadCase = MadCase {
    case: Case {
        id: "mad.c14-024-10-01",
        title: "24.1.5.13.1 Linear forwarding table test for unsupported attribute",
        requirement: "A switch without a linear forwarding table answers Set and Get of each of \
            its blocks with status code 7.",
        document: super::DOCUMENT,
        steps: STEPS,
        assertions: ASSERTIONS,
        checks: &words(&ROWS),
    },
    plan: |port| {
        let stimulus = MadStimulus::LinearForwardingTable;
        vec![port.repetition("blocks-0-to-767", stimulus)]
    },
    stimulate: stimulate::run,
    table: Table {
        rows: &ROWS,
        applies: Some(judge::applies),
    },
    step: judge::step,
    resolution: judge::resolution,
};

/// Steps of the document.
const STEPS: &[Step] = &[
    Step::new(
        "init 1",
        "PortInfo:PortState is Initialized, Armed or Active for both MADTester and DUT",
    ),
    Step::new("1", "SendMad (SubnGet(NodeInfo))"),
    Step::new(
        "2",
        "NUM_PORTS = ReceiveMad (SubnGetResp(NodeInfo):NumPorts)",
    ),
    Step::new(
        "3",
        "SendMad (SubnGet(SwitchInfo)) to get LinearFDBCap and RandomFDBCap",
    ),
    Step::new("4", "SMP_DATA = ReceiveMad (SubnGetResp(SwitchInfo))"),
    Step::new("5", "DUT_FDB_LIN_CAP = SMP_DATA:LinearFDBCap"),
    Step::new("6", "DUT_FDB_RANDOM_CAP = SMP_DATA:RandomFDBCap"),
    Step::new("7", "if LinearFDBCap != 0, the test is NA"),
    Step::new("8", "verify that RandomFDBCap is greater than zero"),
    Step::new(
        "9",
        "repeat steps 10 to 12 for attribute modifiers 0 to 767",
    ),
    Step::new(
        "10",
        "SendMad (SubnSet(LinearForwardingTable)); the data are 64 octets 0xff",
    ),
    Step::new(
        "11",
        "SMP_DATA = ReceiveMad (SubnGetResp(LinearForwardingTable))",
    ),
    Step::new(
        "12",
        "verify: AttributeID == LinearForwardingTable, AttributeModifier as sent, Status.code == 7",
    ),
    Step::new(
        "13",
        "repeat steps 14 to 16 for attribute modifiers 0 to 767",
    ),
    Step::new("14", "SendMad (SubnGet(LinearForwardingTable))"),
    Step::new(
        "15",
        "SMP_DATA = ReceiveMad (SubnGetResp(LinearForwardingTable))",
    ),
    Step::new(
        "16",
        "verify: AttributeID == LinearForwardingTable, AttributeModifier as sent, Status.code == \
     7, data == 0",
    ),
];

const SET_ANSWER: &[&str] = &[
    "set-answered",
    "set-attribute",
    "set-modifier",
    "set-status",
];
const GET_ANSWER: &[&str] = &[
    "get-answered",
    "get-attribute",
    "get-modifier",
    "get-status",
    "get-data",
];

/// Only 10.03, 10.04 and v1c13-024#07 are named at a step.
const ASSERTIONS: &[DocumentAssertion] = &[
    assertion("v1c13-024#07", &[], &["set-status", "get-status"]),
    assertion("v1c14-024.1.1#10.01", &[], &[]),
    assertion("v1c14-024.1.1#10.02", &[], &[]),
    assertion("v1c14-024.1.1#10.03", &[], GET_ANSWER),
    assertion("v1c14-024.1.1#10.04", &[], SET_ANSWER),
    assertion("v1c14-024.1.1#10.05", &[], &[]),
    assertion("v1c14-024.1.1#10.06", &[], &[]),
];

const SET: &[&str] = &["set-answered"];
const GET: &[&str] = &["get-answered"];

const ROWS: [Row<Mad>; 15] = [
    PORT_STATE,
    row(
        "node-info",
        &["1", "2"],
        "Get(NodeInfo) is answered with status 0 and NodeInfo",
        &["port-state"],
        "silent=node-info",
        |view| judge::info(view, Purpose::NodeInfo),
    ),
    row(
        "switch-info",
        &["3", "4", "5", "6"],
        "Get(SwitchInfo) is answered with status 0 and SwitchInfo",
        &["node-info"],
        "silent=switch-info",
        |view| judge::info(view, Purpose::SwitchInfo),
    ),
    row(
        "random-fdb-cap",
        &["8"],
        "SwitchInfo:RandomFDBCap is greater than 0",
        &["switch-info"],
        "no-random-fdb",
        judge::random_fdb_cap,
    ),
    row_of_set(
        "set-answered",
        &["11"],
        "each of the 768 Sets is answered",
        &["switch-info"],
        "silent=linear-forwarding-table",
        |view| judge::all_answered(view, Purpose::SetBlock),
    ),
    row_of_set(
        "set-attribute",
        &["12"],
        "each answer to a Set has AttributeID LinearForwardingTable",
        SET,
        "lft-attribute",
        |view| judge::attribute(view, Purpose::SetBlock),
    ),
    row_of_set(
        "set-modifier",
        &["12"],
        "each answer to a Set has the modifier of its request",
        SET,
        "lft-modifier",
        |view| judge::modifier(view, Purpose::SetBlock),
    ),
    row_of_set(
        "set-status",
        &["12"],
        "bits 4:2 of the status of each answer to a Set are 7",
        SET,
        "lft-set-status",
        |view| judge::status(view, Purpose::SetBlock),
    ),
    row_of_set(
        "get-answered",
        &["15"],
        "each of the 768 Gets is answered",
        &["switch-info"],
        "silent=linear-forwarding-table",
        |view| judge::all_answered(view, Purpose::GetBlock),
    ),
    row_of_set(
        "get-attribute",
        &["16"],
        "each answer to a Get has AttributeID LinearForwardingTable",
        GET,
        "lft-attribute",
        |view| judge::attribute(view, Purpose::GetBlock),
    ),
    row_of_set(
        "get-modifier",
        &["16"],
        "each answer to a Get has the modifier of its request",
        GET,
        "lft-modifier",
        |view| judge::modifier(view, Purpose::GetBlock),
    ),
    row_of_set(
        "get-status",
        &["16"],
        "bits 4:2 of the status of each answer to a Get are 7",
        GET,
        "lft-get-status",
        |view| judge::status(view, Purpose::GetBlock),
    ),
    row_of_set(
        "get-data",
        &["16"],
        "all 64 octets of data of each answer to a Get are 0",
        GET,
        "lft-data",
        judge::get_data,
    ),
    HEADER,
    SINGLE_ANSWER,
];
