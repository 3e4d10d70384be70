//! C14_024_10_01: LinearForwardingTable of a switch that has none.

mod judge;
mod stimulate;

use super::MadCase;
use super::judge::Mad;
use super::judge::contact::{LINK_IS_UP, M_KEY_IS_KNOWN, PORT_STATE};
use super::judge::decoded::View;
use super::judge::header::HEADER;
use super::judge::strays::SINGLE_ANSWER;
use crate::case::{Case, DocumentAssertion};
use crate::cases::finding::Finding;
use crate::cases::judge::{Needs, Row, Table, needs, words};
use crate::plan::mad::MadStimulus;

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
    changes: |_| None,
    tries_wrong_keys: false,
    stimulate: stimulate::run,
    table: Table {
        rows: &ROWS,
        applies: Some(judge::applies),
    },
    step: judge::step,
    resolution: judge::resolution,
};

/// Steps of the document: number, two spaces, what it asks.
const STEPS: &[&str] = &[
    "init 1  PortInfo:PortState is Initialized, Armed or Active for both MADTester and DUT",
    "1  SendMad (SubnGet(NodeInfo))",
    "2  NUM_PORTS = ReceiveMad (SubnGetResp(NodeInfo):NumPorts)",
    "3  SendMad (SubnGet(SwitchInfo)) to get LinearFDBCap and RandomFDBCap",
    "4  SMP_DATA = ReceiveMad (SubnGetResp(SwitchInfo))",
    "5  DUT_FDB_LIN_CAP = SMP_DATA:LinearFDBCap",
    "6  DUT_FDB_RANDOM_CAP = SMP_DATA:RandomFDBCap",
    "7  if LinearFDBCap != 0, the test is NA",
    "8  verify that RandomFDBCap is greater than zero",
    "9  repeat steps 10 to 12 for attribute modifiers 0 to 767",
    "10  SendMad (SubnSet(LinearForwardingTable)); the data are 64 octets 0xff",
    "11  SMP_DATA = ReceiveMad (SubnGetResp(LinearForwardingTable))",
    "12  verify: AttributeID == LinearForwardingTable, AttributeModifier as sent, Status.code == 7",
    "13  repeat steps 14 to 16 for attribute modifiers 0 to 767",
    "14  SendMad (SubnGet(LinearForwardingTable))",
    "15  SMP_DATA = ReceiveMad (SubnGetResp(LinearForwardingTable))",
    "16  verify: AttributeID == LinearForwardingTable, AttributeModifier as sent, Status.code == \
     7, data == 0",
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
    assertion("v1c13-024#07", &["set-status", "get-status"]),
    assertion("v1c14-024.1.1#10.01", &[]),
    assertion("v1c14-024.1.1#10.02", &[]),
    assertion("v1c14-024.1.1#10.03", GET_ANSWER),
    assertion("v1c14-024.1.1#10.04", SET_ANSWER),
    assertion("v1c14-024.1.1#10.05", &[]),
    assertion("v1c14-024.1.1#10.06", &[]),
];

const fn assertion(id: &'static str, checks: &'static [&'static str]) -> DocumentAssertion {
    DocumentAssertion {
        id,
        repetitions: &[],
        checks,
    }
}

const SET: &[&str] = &["set-answered"];
const GET: &[&str] = &["get-answered"];
const PORT: &[&str] = &["port-state"];
const INFO: &Needs<Mad> = needs![LINK_IS_UP];
const TABLE: &Needs<Mad> = needs![LINK_IS_UP, M_KEY_IS_KNOWN];

const ROWS: [Row<Mad>; 15] = [
    PORT_STATE,
    row(
        "node-info",
        "1, 2",
        "Get(NodeInfo) is answered with status 0 and NodeInfo",
        INFO,
        PORT,
        "silent=node-info",
        judge::node_info,
    ),
    row(
        "switch-info",
        "3 to 6",
        "Get(SwitchInfo) is answered with status 0 and SwitchInfo",
        INFO,
        &["node-info"],
        "silent=switch-info",
        judge::switch_info,
    ),
    row(
        "random-fdb-cap",
        "8",
        "SwitchInfo:RandomFDBCap is greater than 0",
        INFO,
        &["switch-info"],
        "no-random-fdb",
        judge::random_fdb_cap,
    ),
    row(
        "set-answered",
        "11",
        "each of the 768 Sets is answered",
        TABLE,
        &["switch-info"],
        "silent=linear-forwarding-table",
        judge::set_answered,
    ),
    row(
        "set-attribute",
        "12",
        "each answer to a Set has AttributeID LinearForwardingTable",
        TABLE,
        SET,
        "lft-attribute",
        judge::set_attribute,
    ),
    row(
        "set-modifier",
        "12",
        "each answer to a Set has the modifier of its request",
        TABLE,
        SET,
        "lft-modifier",
        judge::set_modifier,
    ),
    row(
        "set-status",
        "12",
        "bits 4:2 of the status of each answer to a Set are 7",
        TABLE,
        SET,
        "lft-set-status",
        judge::set_status,
    ),
    row(
        "get-answered",
        "15",
        "each of the 768 Gets is answered",
        TABLE,
        &["switch-info"],
        "silent=linear-forwarding-table",
        judge::get_answered,
    ),
    row(
        "get-attribute",
        "16",
        "each answer to a Get has AttributeID LinearForwardingTable",
        TABLE,
        GET,
        "lft-attribute",
        judge::get_attribute,
    ),
    row(
        "get-modifier",
        "16",
        "each answer to a Get has the modifier of its request",
        TABLE,
        GET,
        "lft-modifier",
        judge::get_modifier,
    ),
    row(
        "get-status",
        "16",
        "bits 4:2 of the status of each answer to a Get are 7",
        TABLE,
        GET,
        "lft-get-status",
        judge::get_status,
    ),
    row(
        "get-data",
        "16",
        "all 64 octets of data of each answer to a Get are 0",
        TABLE,
        GET,
        "lft-data",
        judge::get_data,
    ),
    HEADER,
    SINGLE_ANSWER,
];

const fn row(
    id: &'static str,
    step: &'static str,
    passes_when: &'static str,
    needs: &'static Needs<Mad>,
    depends_on: &'static [&'static str],
    fault: &'static str,
    judge: fn(&View<'_>) -> Finding,
) -> Row<Mad> {
    Row {
        needs,
        depends_on,
        ..Row::<Mad>::new(id, step, passes_when, fault, judge)
    }
}
