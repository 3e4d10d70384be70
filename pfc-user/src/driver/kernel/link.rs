//! Links: their state and counters, offloads, and pairs and bridges of our own.

/// Value of the first attribute of that variant in a list.
macro_rules! attribute {
    ($list:expr, $variant:path) => {
        $list.iter().find_map(|attribute| match attribute {
            $variant(value) => Some(value),
            _ => None,
        })
    };
}

pub(in crate::driver) mod attached;
mod carrier;
mod clsact;
mod counters;
mod dcb;
pub(in crate::driver) mod ethtool;
mod ethtool_request;
mod events;
mod features;
mod genetlink;
mod links;
pub mod mac;
mod netdev;
mod netlink;
mod pause;
mod preflight;
mod property;
mod qdisc;
mod virtual_link;

use std::io;
use std::time::Duration;

use rtnetlink::Handle;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage, Stats64};
use validator_core::evidence::preflight::FeatureFact;
pub use validator_core::evidence::xdp::XdpFeatures;
pub use validator_core::nic::Feature;

pub use self::carrier::{settled_state, wait_for_carrier, wait_for_lasting_carrier};
pub use self::clsact::{Filter, add_clsact, filters, remove_clsact, remove_filter};
pub use self::counters::{drop_rises, softnet_dropped, statistics, transmitted};
pub use self::events::{Announced, LinkEvent, events};
pub use self::links::Links;
pub use self::netdev::{takes_frames, xdp_features};
pub use self::preflight::examine;
pub use self::property::{Property, set};
pub use self::qdisc::queue_drops;
pub use self::virtual_link::{End, create_bridge, create_veth};
use super::netns::{Namespace, NamespaceError};
use super::rtnl::{Events, on_runtime};

/// Errors of a link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No interface of that name.
    #[error(
        "there is no interface \"{interface}\" in {namespace}; there are: {}",
        .known.join(", ")
    )]
    Unknown {
        /// The name.
        interface: String,
        /// The namespace that was searched.
        namespace: String,
        /// The names that exist there.
        known: Vec<String>,
    },
    /// The link did not come up.
    #[error(
        "{interface} in {namespace} has no carrier that stays after {} s: is the cable in, and the \
         other end up?",
        .waited.as_secs_f64()
    )]
    NoCarrier {
        /// The interface.
        interface: String,
        /// Its namespace.
        namespace: String,
        /// Time waited.
        waited: Duration,
    },
    /// An offload that the driver does not let go of.
    #[error(
        "{interface}: the driver keeps {feature} {}; it has to be {}",
        on_off(!.wanted),
        on_off(*.wanted)
    )]
    Fixed {
        /// The interface.
        interface: String,
        /// `ethtool -k`'s name of the offload.
        feature: &'static str,
        /// The wanted state.
        wanted: bool,
    },
    /// The kernel refused.
    #[error("{what}: {source}")]
    System {
        /// The attempted action.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The namespace could not be used.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

impl LinkError {
    fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }
}

const fn on_off(value: bool) -> &'static str {
    if value { "on" } else { "off" }
}

/// State of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Index in its namespace.
    pub index: u32,
    /// Driver, such as `veth` or `mlx5_core`; empty where there is none, as for `lo`.
    pub driver: String,
    /// Kind of a software link, such as `veth`, `tun` or `bridge`; `None` for hardware.
    pub kind: Option<String>,
    /// Frames have Ethernet headers.
    pub ethernet: bool,
    /// Ethernet address.
    pub mac: [u8; 6],
    /// Largest layer-3 packet in octets.
    pub mtu: u32,
    /// The interface is set up (`ip link set up`).
    pub up: bool,
    /// There is a link to the other end.
    pub carrier: bool,
    /// Speed in bit/s as the driver reports it; `None` where unknown. Note that veth and tap
    /// report 10 Gbit/s whatever they are.
    pub speed: Option<u64>,
}

/// The state of `interface`. An error that lists what there is when it does not exist.
pub fn state(namespace: &Namespace, interface: &str) -> Result<LinkState, LinkError> {
    let states = Links::read(namespace)?.states(namespace, &[interface])?;
    Ok(states.into_iter().next().expect("one was asked for"))
}

/// The name that the interface of that index has now; `None` where it is gone.
pub fn name_at(namespace: &Namespace, index: u32) -> Result<Option<String>, LinkError> {
    let links = Links::read(namespace)?;
    let found = links.find("", |link| link.header.index == index);
    Ok(found.ok().and_then(name_in).map(str::to_owned))
}

/// The name of a link.
fn name_in(link: &LinkMessage) -> Option<&str> {
    attribute!(link.attributes, LinkAttribute::IfName).map(String::as_str)
}

/// Number of times that its carrier has come or gone.
pub fn carrier_changes(namespace: &Namespace, interface: &str) -> Result<u32, LinkError> {
    let link = find(namespace, interface)?;
    let changes = attribute!(link.attributes, LinkAttribute::CarrierChanges);
    Ok(changes.copied().unwrap_or_default())
}

/// Returns true if an offload is on.
pub fn feature(
    namespace: &Namespace,
    interface: &str,
    feature: Feature,
) -> Result<bool, LinkError> {
    let on = namespace.run(|| ethtool::feature(interface, feature))?;
    on.map_err(|error| {
        LinkError::system(
            format!("cannot read {} of {interface}", feature.name()),
            error,
        )
    })
}

/// Every offload that the kernel knows, by its name; none where the driver has no ethtool
/// operations.
pub fn features(namespace: &Namespace, interface: &str) -> Result<Vec<FeatureFact>, LinkError> {
    Ok(namespace
        .run(|| features::read(interface))?
        .unwrap_or_default())
}

/// Sets an offload and makes sure that it is so. An error that names it where the driver does not
/// let go.
pub fn set_feature(
    namespace: &Namespace,
    interface: &str,
    feature: Feature,
    on: bool,
) -> Result<(), LinkError> {
    let now = namespace.run(|| {
        ethtool::set_feature(interface, feature, on)?;
        ethtool::feature(interface, feature)
    })?;
    match now {
        Ok(now) if now == on => Ok(()),
        Ok(_) => Err(LinkError::Fixed {
            interface: interface.to_owned(),
            feature: feature.name(),
            wanted: on,
        }),
        Err(error) => Err(LinkError::system(
            format!("cannot set {} of {interface}", feature.name()),
            error,
        )),
    }
}

fn find(namespace: &Namespace, interface: &str) -> Result<LinkMessage, LinkError> {
    let links = Links::read(namespace)?;
    links.of_name(interface).cloned()
}

fn standard_counters(link: &LinkMessage) -> Stats64 {
    attribute!(link.attributes, LinkAttribute::Stats64)
        .copied()
        .unwrap_or_default()
}

/// Runs `work` with a netlink socket in `namespace` that is subscribed to changes of links.
fn netlink<T: Send>(
    namespace: &Namespace,
    what: &str,
    work: impl AsyncFnOnce(Handle, Events) -> Result<T, rtnetlink::Error> + Send,
) -> Result<T, LinkError> {
    namespace
        .run(|| on_runtime(work))?
        .map_err(|error| LinkError::system(what, error))
}
