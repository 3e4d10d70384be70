//! Neighbours of the configuration's addresses.

use prost_reflect::DynamicMessage;

use super::{Session, places, read};
use crate::error::Refusal;
use crate::model::Builder;

/// Names of one IP version in the model.
struct Version {
    choice: &'static str,
    message: &'static str,
    address: &'static str,
    ipv4: bool,
}

const VERSIONS: [Version; 2] = [
    Version {
        choice: "ipv4_neighbors",
        message: "Neighborsv4State",
        address: "ipv4_address",
        ipv4: true,
    },
    Version {
        choice: "ipv6_neighbors",
        message: "Neighborsv6State",
        address: "ipv6_address",
        ipv4: false,
    },
];

impl Session {
    /// The next hops of the addresses, one entry an address; those that have not answered have no
    /// link layer address.
    ///
    /// # Errors
    ///
    /// All that is wrong in the request.
    pub fn states(&mut self, request: &DynamicMessage) -> Result<DynamicMessage, Refusal> {
        let asked = read(request, |reader| {
            let chosen = reader.choice("ipv4_neighbors");
            let version = VERSIONS.iter().find(|version| version.choice == chosen);
            let Some(version) = version else {
                reader.refuse_choice(&chosen, "ipv4_neighbors and ipv6_neighbors are");
                return None;
            };
            let object = reader.object(&chosen);
            let mut known: Vec<&str> = Vec::new();
            for address in &self.force.addresses {
                if !known.contains(&&*address.ethernet) {
                    known.push(&address.ethernet);
                }
            }
            let found = places(&object, "ethernet_names", known.iter().copied(), "Ethernet");
            let names: Vec<String> = found.iter().map(|place| known[*place].to_owned()).collect();
            Some((version, names))
        })?;
        let Some((version, names)) = asked else {
            return Err(Refusal::internal("a request without a choice was taken"));
        };
        let neighbours = self.engine.neighbours();
        let entry = |place: usize| {
            let address = &self.force.addresses[place];
            let answered = neighbours
                .iter()
                .find(|neighbour| neighbour.interface == place)
                .and_then(|neighbour| neighbour.mac);
            Builder::new(version.message)
                .with("ethernet_name", address.ethernet.clone())
                .with(version.address, address.gateway.to_string())
                .with_some("link_layer_address", answered.map(text))
                .done()
        };
        let list = self.force.addresses.iter().enumerate();
        let list = list
            .filter(|(_, address)| {
                address.gateway.is_ipv4() == version.ipv4 && names.contains(&address.ethernet)
            })
            .map(|(place, _)| entry(place))
            .collect();
        Ok(Builder::new("StatesResponse")
            .with_name("choice", version.choice)
            .with_messages(version.choice, list)
            .done())
    }
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}
