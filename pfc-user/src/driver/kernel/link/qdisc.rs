//! Drops of an interface's queueing disciplines.

use futures_util::TryStreamExt;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};

use super::{LinkError, Namespace, find, netlink};

/// The frames that each queueing discipline of `interface` has dropped on the way out since it was
/// set up, by its kind and handle.
///
/// Only those directly at the interface: they count what those below them drop as well.
pub fn queue_drops(
    namespace: &Namespace,
    interface: &str,
) -> Result<Vec<(String, u64)>, LinkError> {
    let index = find(namespace, interface)?.header.index;
    let what = format!("cannot list the queueing disciplines of {interface}");
    let all: Vec<TcMessage> = netlink(namespace, &what, async |handle, _| {
        handle
            .qdisc()
            .get()
            .index(index as i32)
            .execute()
            .try_collect()
            .await
    })?;
    Ok(all
        .iter()
        .filter(|qdisc| qdisc.header.index == index as i32)
        .filter_map(drops)
        .collect())
}

fn drops(qdisc: &TcMessage) -> Option<(String, u64)> {
    let kind = attribute!(qdisc.attributes, TcAttribute::Kind)?;
    // `clsact` has programs of both ways in; `ingress` none of those on the way out.
    if kind == "ingress" || ![TcHandle::ROOT, TcHandle::INGRESS].contains(&qdisc.header.parent) {
        return None;
    }
    let statistics = attribute!(qdisc.attributes, TcAttribute::Stats2)?;
    let queue = attribute!(statistics, TcStats2::Queue)?;
    Some((
        format!("qdisc {kind} {:x}: drops", qdisc.header.handle.major),
        u64::from(queue.drops),
    ))
}
