//! Neighbours of the configuration's addresses.

use prost_reflect::DynamicMessage;

use super::{Session, places, read};
use crate::error::Refusal;
use crate::model::Builder;

impl Session {
    /// The next hops of the addresses, one entry an address; those that have not answered have no
    /// link layer address.
    ///
    /// # Errors
    ///
    /// All that is wrong in the request.
    pub fn states(&mut self, request: &DynamicMessage) -> Result<DynamicMessage, Refusal> {
        let (chosen, names) = read(request, |reader| {
            let chosen = reader.choice("ipv4_neighbors");
            if !["ipv4_neighbors", "ipv6_neighbors"].contains(&&*chosen) {
                return reader.refuse_choice(&chosen, "ipv4_neighbors and ipv6_neighbors are");
            }
            let object = reader.object(&chosen);
            let mut known: Vec<&str> = Vec::new();
            for address in &self.force.addresses {
                if !known.contains(&&*address.ethernet) {
                    known.push(&address.ethernet);
                }
            }
            let found = places(&object, "ethernet_names", known.iter().copied(), "Ethernet");
            let names: Vec<String> = found.iter().map(|place| known[*place].to_owned()).collect();
            Some((chosen, names))
        })?;
        let is_ipv4 = chosen == "ipv4_neighbors";
        let (message, field) = if is_ipv4 {
            ("Neighborsv4State", "ipv4_address")
        } else {
            ("Neighborsv6State", "ipv6_address")
        };
        let neighbours = self.engine.neighbours();
        let list = self.force.addresses.iter().enumerate();
        let list = list.filter(|(_, address)| {
            address.gateway.is_ipv4() == is_ipv4 && names.contains(&address.ethernet)
        });
        let list = list.map(|(place, address)| {
            let answered = neighbours
                .iter()
                .find(|neighbour| neighbour.interface == place)
                .and_then(|neighbour| neighbour.mac);
            Builder::new(message)
                .with("ethernet_name", address.ethernet.clone())
                .with(field, address.gateway.to_string())
                .with_some("link_layer_address", answered.map(text))
                .done()
        });
        Ok(Builder::new("StatesResponse")
            .with_name("choice", &chosen)
            .with_messages(&chosen, list.collect())
            .done())
    }
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}
