//! All links of a namespace as they are at one moment.

use futures_util::stream::TryStreamExt;
use rtnetlink::packet_route::link::{
    LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage, Prop,
};

use super::{LinkError, LinkState, ethtool, name_in, netlink};
use crate::driver::kernel::netns::Namespace;

/// The links of a namespace. The kernel tells all at once: who asks for many interfaces reads them
/// once.
pub struct Links {
    namespace: String,
    links: Vec<LinkMessage>,
}

impl Links {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// The namespace cannot be entered, or the kernel does not tell.
    pub fn read(namespace: &Namespace) -> Result<Self, LinkError> {
        let links = netlink(
            namespace,
            "cannot list the interfaces",
            async |handle, _| handle.link().get().execute().try_collect().await,
        )?;
        Ok(Self {
            namespace: namespace.to_string(),
            links,
        })
    }

    /// The name of the interface that goes by `name`, which may be one of its alternative names.
    ///
    /// # Errors
    ///
    /// No interface goes by `name`; the error lists those that there are.
    pub fn name_of(&self, name: &str) -> Result<&str, LinkError> {
        let link = self.find(name, |link| names(link).any(|known| known == name))?;
        Ok(name_in(link).unwrap_or_default())
    }

    /// The states of these interfaces of `namespace`, which is the one that was read.
    ///
    /// # Errors
    ///
    /// An interface does not exist; the error lists those that do.
    pub fn states(
        &self,
        namespace: &Namespace,
        interfaces: &[&str],
    ) -> Result<Vec<LinkState>, LinkError> {
        // Each entry into a namespace takes a thread.
        let read = namespace.run(|| {
            let of_ethtool =
                |interface: &&str| (ethtool::driver(interface), ethtool::speed(interface));
            interfaces.iter().map(of_ethtool).collect::<Vec<_>>()
        })?;
        let states = interfaces.iter().zip(read);
        states
            .map(|(interface, (driver, speed))| {
                let mut state = of_link(self.of_name(interface)?);
                // Not every link has ethtool operations; that is no error.
                state.driver = driver.unwrap_or_default();
                state.speed = speed.unwrap_or_default();
                Ok(state)
            })
            .collect()
    }

    /// The link of that very name.
    pub(super) fn of_name(&self, interface: &str) -> Result<&LinkMessage, LinkError> {
        self.find(interface, |link| name_in(link) == Some(interface))
    }

    /// The first link that `is_it`; an error that names `interface` where none is.
    pub(super) fn find(
        &self,
        interface: &str,
        is_it: impl Fn(&LinkMessage) -> bool,
    ) -> Result<&LinkMessage, LinkError> {
        let found = self.links.iter().find(|link| is_it(link));
        found.ok_or_else(|| LinkError::Unknown {
            interface: interface.to_owned(),
            namespace: self.namespace.clone(),
            known: self
                .links
                .iter()
                .filter_map(name_in)
                .map(str::to_owned)
                .collect(),
        })
    }
}

/// Returns a link's state as far as its own message tells.
fn of_link(link: &LinkMessage) -> LinkState {
    let address = attribute!(link.attributes, LinkAttribute::Address);
    let infos = attribute!(link.attributes, LinkAttribute::LinkInfo);
    LinkState {
        index: link.header.index,
        driver: String::new(),
        kind: infos.and_then(|infos| attribute!(infos, LinkInfo::Kind).map(ToString::to_string)),
        ethernet: matches!(
            link.header.link_layer_type,
            LinkLayerType::Ether | LinkLayerType::Loopback
        ),
        mac: address
            .and_then(|address| address.as_slice().try_into().ok())
            .unwrap_or_default(),
        mtu: attribute!(link.attributes, LinkAttribute::Mtu)
            .copied()
            .unwrap_or_default(),
        up: link.header.flags.contains(LinkFlags::Up),
        carrier: attribute!(link.attributes, LinkAttribute::Carrier).is_some_and(|on| *on != 0),
        speed: None,
    }
}

/// The name of a link, and its alternative names.
fn names(link: &LinkMessage) -> impl Iterator<Item = &str> {
    let properties = attribute!(link.attributes, LinkAttribute::PropList);
    let alternative = properties.into_iter().flatten().filter_map(|property| {
        if let Prop::AltIfName(name) = property {
            Some(name.as_str())
        } else {
            None
        }
    });
    name_in(link).into_iter().chain(alternative)
}
