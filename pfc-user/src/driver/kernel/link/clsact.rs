//! The queueing discipline `clsact` and its filters: where programs hang before there is tcx (Linux
//! 6.6).

use futures_util::{StreamExt, TryStreamExt};
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use rtnetlink::{Error, Handle};

use super::{LinkError, Namespace, netlink};

/// `clsact` has the number of `ingress`, so that an interface has one of the two.
const CLSACT: TcHandle = TcHandle {
    major: u16::MAX,
    minor: 0,
};

/// A filter of `clsact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The filter is for outgoing frames.
    pub egress: bool,
    /// Filters are asked in this order, lowest first.
    pub priority: u16,
    /// Number among those of its priority.
    pub handle: u32,
}

/// The filters of the interface with that index, in both directions; none where it has no `clsact`.
pub fn filters(namespace: &Namespace, index: u32) -> Result<Vec<Filter>, LinkError> {
    netlink(
        namespace,
        "cannot list the filters of clsact",
        async |handle, _| {
            let mut found = Vec::new();
            for egress in [false, true] {
                let get = handle.traffic_filter(index as i32).get();
                let get = if egress { get.egress() } else { get.ingress() };
                let messages: Vec<TcMessage> = get.execute().try_collect().await?;
                let filter = |message: &TcMessage| Filter {
                    egress,
                    priority: (message.header.info >> 16) as u16,
                    handle: message.header.handle.into(),
                };
                // The kernel also tells of each priority as such, with handle 0.
                let filters = messages.iter().map(filter);
                found.extend(filters.filter(|filter| filter.handle != 0));
            }
            Ok(found)
        },
    )
}

/// Makes the interface's `clsact`; `false` where it, or an `ingress`, is there already.
pub fn add_clsact(namespace: &Namespace, index: u32) -> Result<bool, LinkError> {
    let mut message = discipline(index);
    let kind = TcAttribute::Kind("clsact".to_owned());
    message.attributes.push(kind);
    let request = RouteNetlinkMessage::NewQueueDiscipline(message);
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    match ask(namespace, "cannot make a clsact", request, flags) {
        Ok(()) => Ok(true),
        Err(LinkError::System { source, .. }) if source.raw_os_error() == Some(libc::EEXIST) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Takes the interface's `clsact` away, with all that hangs there.
pub fn remove_clsact(namespace: &Namespace, index: u32) -> Result<(), LinkError> {
    let request = RouteNetlinkMessage::DelQueueDiscipline(discipline(index));
    ask(namespace, "cannot remove a clsact", request, 0)
}

/// Takes a filter away.
pub fn remove_filter(namespace: &Namespace, index: u32, filter: Filter) -> Result<(), LinkError> {
    let mut message = TcMessage::with_index(index as i32);
    let minor = if filter.egress {
        TcHandle::MIN_EGRESS
    } else {
        TcHandle::MIN_INGRESS
    };
    message.header.parent = TcHandle {
        major: u16::MAX,
        minor,
    };
    message.header.handle = filter.handle.into();
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    message.header.info = u32::from(filter.priority) << 16 | u32::from(protocol);
    let kind = TcAttribute::Kind("bpf".to_owned());
    message.attributes.push(kind);
    let request = RouteNetlinkMessage::DelTrafficFilter(message);
    ask(namespace, "cannot remove a filter of clsact", request, 0)
}

fn discipline(index: u32) -> TcMessage {
    let mut message = TcMessage::with_index(index as i32);
    message.header.handle = CLSACT;
    message.header.parent = TcHandle::CLSACT;
    message
}

/// Requests a change that rtnetlink has no function for.
fn ask(
    namespace: &Namespace,
    what: &str,
    request: RouteNetlinkMessage,
    flags: u16,
) -> Result<(), LinkError> {
    netlink(namespace, what, async |mut handle: Handle, _| {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut answers = handle.request(message)?;
        while let Some(answer) = answers.next().await {
            if let NetlinkPayload::Error(error) = answer.payload
                && error.code.is_some()
            {
                return Err(Error::NetlinkError(error));
            }
        }
        Ok(())
    })
}
