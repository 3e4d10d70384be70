//! Exercises the server's understanding of requests.

use prost_reflect::DynamicMessage;
use validator_core::engine::plan::{FlowIndex, Plan, PortIndex};
use validator_core::engine::snapshot::{FlowCounts, Neighbour, PortCounts, Snapshot};
use validator_core::engine::{Captured, Change, Engine, Order, Problem, Warning};
use validator_otg::api::{Answer, OPERATIONS, Operation};
use validator_otg::error::Refusal;
use validator_otg::session::Session;
use validator_otg::{Places, grpc, json};

/// Carries out the requests of one client. Each has a line: the number of the operation, and `j`
/// with JSON, or in hexadecimal, `p` with protobuf's encoding, `g` with a request of gRPC, or `s`
/// with one in pieces.
pub fn exercise(octets: &[u8]) {
    let places = Places::new(Vec::new());
    let mut session = Session::new(Box::<Idle>::default(), places, |_| {});
    for line in octets.split(|octet| *octet == b'\n').take(20) {
        let [number, encoding, body @ ..] = line else {
            continue;
        };
        let operation = &OPERATIONS[usize::from(*number) % OPERATIONS.len()];
        let argument = match encoding {
            b'p' => operation.argument(|kind| {
                DynamicMessage::decode(kind, &*unhex(body))
                    .map_err(|error| Refusal::validation(error.to_string()))
            }),
            b'g' => grpc::argument(operation, &unhex(body), true),
            b's' => in_pieces(operation, &unhex(body)),
            _ => operation.argument(|kind| json::parse(kind.name(), body)),
        };
        let Ok(argument) = argument else {
            continue;
        };
        match (operation.perform)(&mut session, argument) {
            Ok(Answer::Message(message)) => drop(json::text(&message)),
            Ok(Answer::File(file)) => file.for_each(drop),
            Err(refusal) => assert!(!refusal.errors.is_empty()),
        }
    }
}

/// The argument of an operation in pieces, each behind the octet of its length.
fn in_pieces(operation: &Operation, octets: &[u8]) -> Result<DynamicMessage, Refusal> {
    let (mut whole, mut rest) = (Vec::new(), octets);
    while let [length, more @ ..] = rest {
        let (piece, more) = more.split_at(usize::from(*length).min(more.len()));
        rest = more;
        grpc::add_piece(&mut whole, piece)?;
    }
    grpc::argument(operation, &whole, false)
}

/// The octets of hexadecimal digits; what is none counts as 0.
fn unhex(digits: &[u8]) -> Vec<u8> {
    let digit = |octet: &u8| char::from(*octet).to_digit(16).unwrap_or(0) as u8;
    let (pairs, _) = digits.as_chunks::<2>();
    pairs
        .iter()
        .map(|[high, low]| digit(high) << 4 | digit(low))
        .collect()
}

/// An engine that does as it is told and sends nothing.
#[derive(Default)]
struct Idle(Plan);

impl Engine for Idle {
    fn configure(&mut self, plan: Plan) -> Result<Vec<Warning>, Vec<Problem>> {
        self.0 = plan;
        Ok(Vec::new())
    }

    fn transmit(&mut self, flows: &[FlowIndex], _: Order) -> Result<(), Vec<Problem>> {
        assert!(flows.iter().all(|flow| flow.0 < self.0.flows.len()));
        Ok(())
    }

    fn update(&mut self, changes: &[(FlowIndex, Change)]) -> Result<Vec<Warning>, Vec<Problem>> {
        assert!(changes.iter().all(|(flow, _)| flow.0 < self.0.flows.len()));
        Ok(Vec::new())
    }

    fn link(&mut self, port: PortIndex, _: bool) -> Result<(), Problem> {
        assert!(port.0 < self.0.ports.len());
        Ok(())
    }

    fn capture(&mut self, ports: &[PortIndex], _: bool) -> Result<(), Problem> {
        assert!(ports.iter().all(|port| port.0 < self.0.ports.len()));
        Ok(())
    }

    fn captured(&mut self, port: PortIndex) -> Result<Option<Captured>, Problem> {
        assert!(port.0 < self.0.ports.len());
        Ok(Some(Captured::default()))
    }

    fn neighbours(&mut self) -> Vec<Neighbour> {
        Vec::new()
    }

    fn snapshot(&mut self) -> Result<Snapshot, Problem> {
        Ok(Snapshot {
            at: 0,
            ports: vec![PortCounts::default(); self.0.ports.len()],
            flows: vec![FlowCounts::default(); self.0.flows.len()],
        })
    }
}
