//! Answers to a DUT that asks for the ports' addresses.

use anyhow::Result;
use validator_core::neighbour::Station;

use super::TesterPort;
use crate::config::{Addresses, Destination};
use crate::driver::neighbour::Responder;

/// Answers for the addresses of the test frames: the source's at the tx port, the destination's at
/// the rx port.
pub(super) fn answer(
    addresses: &Addresses,
    tx: &TesterPort,
    rx: &TesterPort,
) -> Result<Vec<Responder>> {
    let of_tx = Station {
        mac: addresses.source_mac.unwrap_or(tx.state.mac),
        ip: addresses.source_ip,
    };
    let of_rx = Station {
        mac: match addresses.destination {
            Destination::Mac(mac) => mac,
            Destination::RxPort | Destination::Gateway(_) => rx.state.mac,
        },
        ip: addresses.destination_ip,
    };
    [(tx, of_tx), (rx, of_rx)]
        .into_iter()
        .map(|(port, station)| Responder::start(&port.namespace, &port.interface, station))
        .collect()
}
