//! The MAD cases in virtual time: the real steps and the model of the agent, and a clock that only
//! waits move.

use std::time::Duration;

use ib_mad::mad::{Lid, MKey};
use ib_mad::requester::Requester;
use ib_mad::sma::fault::Fault;
use ib_mad::sma::{Fabric, NodeConfig, NodeKind, Sma};
use ib_mad::smp::Route;
use ib_mad::transport::Transport;
use ib_mad::transport::simulated::Simulated;
use validator::config::{MadTestbed, MadTransport};
use validator::driver::bringup::mad::{KeyJournal, Noted};
use validator_core::cases::mad::equipment::Equipment;
use validator_core::cases::mad::planning::{KeyBits, PortContext};
use validator_core::cases::mad::stimulate;
use validator_core::cases::mad::{CASES, MadCase};
use validator_core::cases::{self};
use validator_core::evidence::mad::MadEvidence;
use validator_core::evidence::pfc::Stall;
use validator_core::evidence::{CaseEvidence, Repetition};
use validator_core::m_key::Protection;
use validator_core::plan::mad::MadPlan;
use validator_core::verdict::{Event, Verdict};

pub const TABLE: &str = "mad.c14-024-10-01";
pub const KEYS: &str = "mad.c14-016-get";
pub const TIMES: &str = "mad.c13-013";
pub const TIMED: &str = "mad.c13-014-01";

pub const M_KEY_DUT: MKey = MKey(0x1122_3344_5566_7788);
pub const M_KEY_OTHER: MKey = MKey(0x99aa_bbcc_ddee_ff00);

/// Time-out of the testbed; the nodes' own times are far below.
pub const TIMEOUT: Duration = Duration::from_millis(200);

pub fn switch() -> NodeConfig {
    NodeConfig {
        kind: NodeKind::Switch(4),
        description: "DUT".into(),
        guid: 2,
        lid: Lid(2),
        master_sm_lid: Lid(1),
        port_state: 4,
        linear_fdb_cap: 0,
        random_fdb_cap: 1024,
        m_key: MKey(0),
        m_key_protect_bits: 0,
        m_key_lease_period: 0,
        response_time_value: 8,
        subnet_timeout: 8,
    }
}

pub fn adapter() -> NodeConfig {
    NodeConfig {
        kind: NodeKind::ChannelAdapter,
        ..switch()
    }
}

/// A journal of one run.
#[derive(Default)]
pub struct Kept {
    pub noted: Option<Noted>,
    /// Another tester has to do with the DUT.
    pub is_claimed: bool,
}

impl Kept {
    /// The protection to put back.
    pub fn original(&self) -> Option<Protection> {
        self.noted.map(|noted| noted.found)
    }
}

impl KeyJournal for Kept {
    fn met(&mut self, guid: u64) -> anyhow::Result<()> {
        anyhow::ensure!(!self.is_claimed, "process 7 tests node {guid}");
        Ok(())
    }
    fn remember(&mut self, noted: &Noted) -> anyhow::Result<Protection> {
        Ok(self.noted.get_or_insert(*noted).found)
    }
    fn pending(&self) -> Option<Noted> {
        self.noted
    }
    fn forget(&mut self) -> anyhow::Result<()> {
        self.noted = None;
        Ok(())
    }
}

/// A tester and its DUT.
pub struct Bench {
    pub config: MadTestbed,
    pub requester: Requester<dyn Transport>,
    pub key_bits: KeyBits,
    pub journal: Kept,
    /// The DUT's NodeGUID, once it was read.
    pub guid: Option<u64>,
    /// Times at which the simulated DUT says that it stood still.
    pub stalls: Vec<Stall>,
}

impl Bench {
    pub fn new(dut: NodeConfig, faults: &[Fault]) -> Self {
        Self::on(Box::new(simulated(dut, faults)))
    }

    pub fn on(transport: Box<dyn Transport>) -> Self {
        let config = MadTestbed {
            transport: MadTransport::Sim {
                faults: Vec::new(),
                args: Vec::new(),
            },
            route: Route::Directed("0,1".parse().unwrap()),
            m_key_current: MKey(0),
            m_key_dut: M_KEY_DUT,
            m_key_other: M_KEY_OTHER,
            timeout: TIMEOUT.as_nanos() as u64,
        };
        Self {
            config,
            requester: Requester::new(transport, 0x5eed_0000_0000_0001),
            key_bits: KeyBits::Turn(0),
            journal: Kept::default(),
            guid: None,
            stalls: Vec::new(),
        }
    }

    /// One repetition, which the user wishes to stop before the request with that index; with the
    /// bench's own journal where there is no other.
    pub fn repetition(
        &mut self,
        case: &str,
        index: usize,
        journal: Option<&mut dyn KeyJournal>,
        stop: Option<usize>,
    ) -> (MadEvidence, Vec<Event>) {
        let mut asked = 0;
        let mut interrupts = || {
            asked += 1;
            u32::from(stop.is_some_and(|stop| asked > stop))
        };
        self.with(journal, &mut interrupts, |equipment, plans| {
            stimulate::run(equipment, known(case), &plans(case)[index])
        })
    }

    /// The end of a run.
    pub fn put_back(&mut self) -> Vec<Event> {
        let key = self.config.m_key_dut;
        self.with(None, &mut || 0, |equipment, _| {
            stimulate::put_back(equipment, key)
        })
        .1
    }

    /// Result of `run` with the equipment and the plans of a case, and the events.
    pub fn with<R>(
        &mut self,
        journal: Option<&mut dyn KeyJournal>,
        interrupts: &mut dyn FnMut() -> u32,
        run: impl FnOnce(&mut Equipment<'_>, &dyn Fn(&str) -> Vec<MadPlan>) -> R,
    ) -> (R, Vec<Event>) {
        let context = self.context();
        let mut events = Vec::new();
        let stalls = &mut self.stalls;
        let mut equipment = Equipment {
            route: &self.config.route,
            requester: &mut self.requester,
            transport: "simulated fabric".into(),
            interrupted: interrupts,
            events: &mut |event| events.push(event),
            journal: Some(journal.unwrap_or(&mut self.journal)),
            guid: &mut self.guid,
            stalls: &mut || std::mem::take(stalls),
        };
        let done = run(&mut equipment, &|case| (known(case).plan)(&context));
        (done, events)
    }

    fn context(&self) -> PortContext {
        PortContext {
            key_bits: self.key_bits,
            ..PortContext::from(&self.config)
        }
    }

    fn plans(&self, case: &str) -> Vec<MadPlan> {
        (known(case).plan)(&self.context())
    }

    /// All repetitions of a case.
    pub fn case(&mut self, case: &str) -> Vec<MadEvidence> {
        (0..self.plans(case).len())
            .map(|index| self.repetition(case, index, None, None).0)
            .collect()
    }
}

pub fn simulated(dut: NodeConfig, faults: &[Fault]) -> Simulated {
    let tester = NodeConfig {
        lid: Lid(1),
        guid: 1,
        ..adapter()
    };
    let tester = Sma::new(
        NodeConfig {
            m_key: MKey(0),
            m_key_protect_bits: 0,
            port_state: dut.port_state,
            ..tester
        },
        Vec::new(),
    );
    Simulated::new(Fabric {
        tester,
        dut: Sma::new(dut, faults.to_vec()),
    })
}

/// A check's outcome: the repetition's short name and the check.
#[derive(Debug)]
pub struct Outcome {
    pub name: String,
    pub check: String,
    pub verdict: Verdict,
    pub reason: String,
}

/// The case of that id.
pub fn known(id: &str) -> &'static MadCase {
    CASES.iter().find(|known| known.case.id == id).unwrap()
}

/// Judges repetitions of a case; the outcomes after a round trip through JSON are the same.
pub fn outcomes(case: &str, repetitions: &[MadEvidence]) -> Vec<Outcome> {
    let known = known(case);
    let all: Vec<_> = repetitions.iter().collect();
    let judged = |(index, evidence): (usize, &MadEvidence)| {
        let judged = known.judge_among(&all, index);
        // That case has megabytes of it, and a test of its own.
        if case != TABLE {
            let again: MadEvidence =
                serde_json::from_str(&serde_json::to_string(evidence).unwrap()).unwrap();
            let mut others = all.clone();
            others[index] = &again;
            let rejudged = known.judge_among(&others, index);
            assert_eq!((&again, &rejudged), (evidence, &judged));
        }
        judged.checks
    };
    let name = |repetition: &str| {
        repetition
            .replace("blocks-0-to-767", "table")
            .replace("protect-bits", "bits")
    };
    let checks = repetitions.iter().enumerate().flat_map(judged);
    checks
        .map(|check| Outcome {
            name: name(&check.repetition),
            check: check.check,
            verdict: check.verdict,
            reason: check.reason,
        })
        .collect()
}

/// The whole case's verdict, with its assertions.
pub fn result(case: &str, repetitions: &[MadEvidence]) -> validator_core::verdict::CaseResult {
    let repetitions = repetitions
        .iter()
        .map(|evidence| Repetition::Mad(Box::new(evidence.clone())))
        .collect();
    cases::judge_case(&CaseEvidence::of(case, repetitions))
}

/// All cases, each on a DUT that has just been switched on.
pub fn each_case(dut: &NodeConfig, m_key_current: MKey, faults: &[Fault]) -> Vec<Outcome> {
    let mut all = Vec::new();
    for case in [TABLE, KEYS, TIMES, TIMED] {
        let mut bench = Bench::new(dut.clone(), faults);
        bench.config.m_key_current = m_key_current;
        all.extend(outcomes(case, &bench.case(case)));
    }
    all
}
