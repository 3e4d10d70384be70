//! The real steps and the model of the requester, and a clock that only waits move.

use std::net::{IpAddr, Ipv4Addr};

use pfc_ebpf::abi::responder::SNAP_LEN;
use pfc_ebpf::wire::roce;
use validator::agent::protocol::{
    self, Channel, Failure, FailureKind, OpenChannel, QueuePair, Read,
};
use validator::dut::requester::model::{Adapter, Model};
use validator_core::cases::rc::CASES;
use validator_core::cases::rc::stimulate::{self, Bench, Losses, PortContext, Stop, answer_to};
use validator_core::evidence::rc::{Packet, RcEvidence};
use validator_core::fault::requester::Fault;
use validator_core::plan::Nanos;
use validator_core::plan::rc::{RcParameters, RcPlan};
use validator_core::verdict::{Case, CheckResult, Judged, Verdict};

pub const TESTER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Duration of a question to the agent.
const EXCHANGE: Nanos = 5_000;

pub fn case() -> &'static Case {
    &CASES[0].case
}

pub fn plan(retry_count: u8, timeout: u8, path_mtu: u16) -> RcPlan {
    (CASES[0].plan)(&RcParameters {
        retry_count,
        timeout,
        path_mtu,
    })
}

/// The document's own.
pub fn of_document() -> RcPlan {
    plan(2, 18, 1024)
}

/// Point at which the tester or the agent stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The agent waits for completions; it tells what came meanwhile.
    Polling,
    /// The agent's answer is fixed and has not come in.
    Answered,
    /// The agent has not posted the READ.
    Posting,
    /// The agent has posted the READ, and has not said so.
    Posted,
}

impl At {
    pub const ALL: [Self; 4] = [Self::Polling, Self::Answered, Self::Posting, Self::Posted];
}

/// A tester and its DUT, and what goes wrong between them.
pub struct Virtual {
    pub now: Nanos,
    model: Model,
    listening: Option<u32>,
    packets: Vec<Packet>,
    last_request: Option<Packet>,
    /// Packets since it listens.
    seen: usize,
    lost: u64,
    /// Number of channels that were opened, and of those given back.
    pub opened: usize,
    pub closed: usize,
    pub announced: Vec<&'static str>,
    pub apm: Option<bool>,
    /// The device has no flag of its own.
    pub no_flag: bool,
    /// Packets for which there is no record, by their number in the test (the second channel), from
    /// 1.
    pub unrecorded: Vec<usize>,
    /// Drops during the test by the counters of the link.
    pub drops: Vec<(String, u64)>,
    /// No packet reaches the tester.
    pub receives_nothing: bool,
    /// The tester's answers go astray.
    pub mute: bool,
    /// The DUT does not show its counter.
    pub hides_counter: bool,
    /// Time at which the user stops the run.
    pub stop_at: Option<Nanos>,
    /// Questions for completions until the connection to the agent breaks.
    pub breaks_after: Option<usize>,
    /// The tester or the agent stands still at this, at this time or later, for so long.
    pub stall: Option<(At, Nanos, Nanos)>,
    /// The packet of that number in the test, from 1, takes so long to the tester.
    pub late: Option<(usize, Nanos)>,
    /// Records of the test come in an order of their own: that packet's comes with the next one's,
    /// and after it.
    pub record_late: Option<usize>,
    /// A record of the control comes in the test.
    pub record_of_control: bool,
    /// The DUT completes the READ of the test so long after the packet of that number left, and not
    /// when it should.
    pub early: Option<(usize, Nanos)>,
    /// Time of that completion.
    early_at: Option<Nanos>,
    /// Delay until the DUT shows a completion.
    pub completion_takes: Nanos,
    /// Completions that it does not show yet, each with the time from which it does.
    hidden: Vec<(Nanos, protocol::Completion)>,
    /// The DUT never gives up: after its last retry it sends the request again and again, this far
    /// apart.
    pub endless: Option<Nanos>,
    /// The agent refuses a READ on a queue pair in error.
    pub refuses_flush: bool,
    /// Changes the attributes that the DUT shows after it was opened.
    pub shows: Option<fn(&mut QueuePair)>,
}

impl Virtual {
    pub fn new(faults: &[&str]) -> Self {
        let faults: Vec<Fault> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let adapter = Adapter {
            name: "sim0".into(),
            mac: [2, 0, 0, 0, 0, 2],
            peer_mac: [2, 0, 0, 0, 0, 1],
            address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
            active_mtu: 4096,
        };
        Self {
            now: 1_000_000_000_000,
            model: Model::new(adapter, &faults),
            listening: None,
            packets: Vec::new(),
            last_request: None,
            seen: 0,
            lost: 0,
            opened: 0,
            closed: 0,
            announced: Vec::new(),
            apm: None,
            no_flag: false,
            unrecorded: Vec::new(),
            drops: Vec::new(),
            receives_nothing: false,
            mute: false,
            hides_counter: false,
            stop_at: None,
            breaks_after: None,
            stall: None,
            late: None,
            record_late: None,
            record_of_control: false,
            early: None,
            early_at: None,
            completion_takes: 0,
            hidden: Vec::new(),
            endless: None,
            refuses_flush: false,
            shows: None,
        }
    }

    pub fn try_run(&mut self, plan: &RcPlan) -> anyhow::Result<RcEvidence> {
        let mut device = self.model.device();
        device.apm = device.apm.filter(|_| !self.no_flag);
        let port = PortContext {
            device,
            apm: self.apm,
            port: "veth0 (driver)".into(),
            tester: TESTER,
            seed: 7,
        };
        let evidence = stimulate::run(self, &CASES[0], plan, port);
        assert_eq!(self.opened, self.closed, "each channel is given back");
        evidence
    }

    pub fn run(&mut self, plan: &RcPlan) -> RcEvidence {
        self.try_run(plan).unwrap()
    }

    fn in_test(&self) -> bool {
        self.opened == 2
    }

    /// Frames that leave now.
    fn pump(&mut self) {
        while let Some(frame) = self.model.poll_transmit(self.now) {
            let destination = roce::parse(&*frame).map(|packet| packet.bth.destination);
            if self.receives_nothing || destination != self.listening {
                continue;
            }
            self.seen += 1;
            if self.in_test() && self.unrecorded.contains(&self.seen) {
                self.lost += 1;
                continue;
            }
            let of_test = self.in_test().then_some(self.seen);
            let takes = |(number, takes)| if of_test == Some(number) { takes } else { 0 };
            let arrives = self.now + self.late.map_or(0, takes);
            let packet = Packet::new(
                arrives,
                frame.len() as u32,
                &frame[..frame.len().min(SNAP_LEN)],
            );
            self.last_request = Some(packet.clone());
            self.packets.push(packet);
            if let Some((number, after)) = self.early
                && of_test == Some(number)
            {
                self.early_at = Some(self.now + after);
            }
        }
    }

    /// Adds the completions of the DUT that are due now.
    fn complete(&mut self) {
        let mut completions = self.model.completions(self.now);
        if self.early.is_some() {
            completions.retain(|completion| completion.status != 12);
            let early = self.early_at.take_if(|at| *at <= self.now);
            completions.extend(early.map(|_| protocol::Completion {
                work_request: 1,
                status: 12,
                vendor_error: 0,
            }));
        }
        let shown_at = self.now + self.completion_takes;
        self.hidden.extend(
            completions
                .into_iter()
                .map(|completion| (shown_at, completion)),
        );
    }

    /// Stands still, if it is to at this.
    fn stand_still(&mut self, at: At) {
        if let Some((_, _, length)) = self
            .stall
            .take_if(|(when, from, _)| *when == at && self.now >= *from)
        {
            let end = self.now + length;
            self.pump();
            self.complete();
            while let Some(next) = self.model.next_event().filter(|next| *next <= end) {
                self.now = self.now.max(next);
                self.pump();
                self.complete();
            }
            self.now = end;
        }
    }

    fn taken(&mut self) -> Vec<protocol::Completion> {
        self.complete();
        let shown = self
            .hidden
            .extract_if(.., |(time, _)| *time <= self.now)
            .map(|(_, completion)| completion);
        let completions: Vec<protocol::Completion> = shown.collect();
        // A DUT that never gives up has none but of what was answered.
        completions
            .into_iter()
            .filter(|completion| self.endless.is_none() || completion.status == 0)
            .collect()
    }

    /// Lets time pass until `end`, or the first completion.
    fn pass(&mut self, end: Nanos) -> Vec<protocol::Completion> {
        loop {
            self.pump();
            let completions = self.taken();
            let next = self
                .model
                .next_event()
                .into_iter()
                .chain(self.early_at)
                .chain(self.hidden.iter().map(|(time, _)| *time))
                .min()
                .filter(|next| *next <= end);
            if !completions.is_empty() || next.is_none() {
                if completions.is_empty() {
                    self.now = end;
                }
                return completions;
            }
            self.now = self.now.max(next.unwrap_or(end));
        }
    }
}

impl Bench for Virtual {
    fn now(&self) -> Nanos {
        self.now
    }

    fn listen(&mut self, queue_pair: u32) -> Result<(), Stop> {
        self.listening = Some(queue_pair);
        self.packets.clear();
        if self.record_of_control {
            self.packets.extend(self.last_request.clone());
        }
        (self.seen, self.lost) = (0, 0);
        Ok(())
    }

    fn packets(&mut self) -> Result<Vec<Packet>, Stop> {
        self.pump();
        let late = self.record_late.filter(|_| self.in_test());
        if late.is_some_and(|late| self.seen == late) {
            return Ok(Vec::new());
        }
        let arrived = self
            .packets
            .extract_if(.., |packet| packet.time <= self.now);
        let mut arrived: Vec<Packet> = arrived.collect();
        if late.is_some_and(|late| self.seen > late) {
            arrived.reverse();
        }
        Ok(arrived)
    }

    fn losses(&mut self) -> Result<Losses, Stop> {
        let drops = if self.in_test() {
            self.drops.clone()
        } else {
            Vec::new()
        };
        Ok(Losses {
            records: self.lost,
            drops,
        })
    }

    fn answer(&mut self, request: &Packet, queue_pair: u32) -> Result<Option<Packet>, Stop> {
        let Some(answer) = answer_to(request, queue_pair) else {
            return Ok(None);
        };
        if !self.mute {
            self.model.receive(self.now, &answer);
        }
        Ok(Some(Packet::new(self.now, answer.len() as u32, &answer)))
    }

    fn open(&mut self, channel: &OpenChannel) -> Result<Channel, Stop> {
        self.now += EXCHANGE;
        let mut opened = self.model.open(self.now, channel).map_err(Stop::Refused)?;
        self.opened += 1;
        if self.hides_counter {
            opened.attributes.retries_left = None;
        }
        if let Some(shows) = self.shows {
            shows(&mut opened.attributes);
        }
        Ok(opened)
    }

    fn post_read(&mut self, read: &Read) -> Result<(), Stop> {
        self.now += EXCHANGE;
        self.stand_still(At::Posting);
        if self.refuses_flush && read.work_request == 2 {
            return Err(Stop::Refused(Failure {
                kind: FailureKind::Verbs,
                message: "ibv_post_send: invalid argument".into(),
            }));
        }
        self.model
            .post_read(self.now, read)
            .map_err(Stop::Refused)?;
        self.pump();
        self.stand_still(At::Posted);
        Ok(())
    }

    fn poll(&mut self, wait: Nanos) -> Result<Vec<protocol::Completion>, Stop> {
        if self.stop_at.is_some_and(|stop| self.now >= stop) {
            return Err(Stop::Interrupted);
        }
        if let Some(left) = &mut self.breaks_after {
            *left = left.checked_sub(1).ok_or_else(|| {
                Stop::Failed(anyhow::anyhow!(
                    "the agent gave no answer: connection reset"
                ))
            })?;
        }
        self.now += EXCHANGE;
        let mut completions = self.pass(self.now + wait);
        self.stand_still(At::Polling);
        completions.extend(self.taken());
        self.stand_still(At::Answered);
        if let Some(period) = self.endless
            && self.in_test()
            && let Some(last) = self.last_request.clone()
            && self.now >= last.time + period
        {
            let again = Packet {
                time: last.time + period,
                ..last
            };
            self.last_request = Some(again.clone());
            self.packets.push(again);
        }
        Ok(completions)
    }

    fn query(&mut self) -> Result<QueuePair, Stop> {
        self.now += EXCHANGE;
        let mut attributes = self.model.query().map_err(Stop::Refused)?;
        if self.hides_counter {
            attributes.retries_left = None;
        }
        Ok(attributes)
    }

    fn close(&mut self) -> Result<(), Stop> {
        self.model.close();
        self.hidden.clear();
        self.closed += 1;
        Ok(())
    }

    fn announce(&mut self, phase: &'static str) {
        self.announced.push(phase);
    }
}

/// Judges; stored evidence gives the same verdicts again.
pub fn judged(evidence: &RcEvidence) -> Judged {
    let judged = CASES[0].judge(evidence);
    let again: RcEvidence =
        serde_json::from_str(&serde_json::to_string(evidence).unwrap()).unwrap();
    assert_eq!((&again, &CASES[0].judge(&again)), (evidence, &judged));
    assert_eq!(judged.steps.len(), case().steps.len());
    judged
}

pub fn with(checks: &[CheckResult], verdict: Verdict) -> Vec<&str> {
    checks
        .iter()
        .filter(|result| result.verdict == verdict)
        .map(|result| result.check.as_str())
        .collect()
}

pub fn check<'j>(judged: &'j Judged, id: &str) -> &'j CheckResult {
    judged
        .checks
        .iter()
        .find(|result| result.check == id)
        .unwrap()
}
