//! Requests to the kernel by rtnetlink, for callers without a runtime.

use std::io;

use futures_util::stream::{LocalBoxStream, StreamExt};
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::{Handle, MulticastGroup};

/// Changes of links, as the kernel announces them.
pub type Events = LocalBoxStream<'static, NetlinkPayload<RouteNetlinkMessage>>;

/// Runs `work` with a netlink socket in the calling thread's namespace that is subscribed to
/// changes of links.
pub fn on_runtime<T>(
    work: impl AsyncFnOnce(Handle, Events) -> Result<T, rtnetlink::Error>,
) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (connection, handle, events) =
            rtnetlink::new_multicast_connection(&[MulticastGroup::Link])?;
        tokio::spawn(connection);
        let events = events.map(|(message, _)| message.payload).boxed_local();
        work(handle, events).await.map_err(|error| match error {
            rtnetlink::Error::NetlinkError(message) => message.to_io(),
            other => io::Error::other(other),
        })
    })
}
