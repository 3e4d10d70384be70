//! An attached program. The program for tc is at tcx (Linux 6.6) by bpf_link, beside other programs
//! and gone with the process; on older kernels it is a filter of `clsact` (see [`super::clsact`]).

use std::os::fd::OwnedFd;

use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions};
use aya::programs::{LinkOrder, SchedClassifier};

use super::clsact::Clsact;
use super::direction::Direction;
use crate::driver::bpf::XdpError;
use crate::driver::bpf::xdp_link::Hook;
use crate::driver::kernel::link::LinkError;
use crate::driver::kernel::netns::Namespace;

/// An entry that is attached. Dropping it detaches it; unless it is at `clsact`, so does the end of
/// the process.
pub enum Link {
    /// XDP, as long as the descriptor is open.
    Xdp(
        #[expect(dead_code, reason = "detaches when closed")] OwnedFd,
        Hook,
    ),
    /// At tcx.
    Tcx(
        Direction,
        #[expect(dead_code, reason = "detaches when dropped")] SchedClassifierLink,
    ),
    /// A filter of `clsact`.
    Clsact(Direction, Clsact),
}

impl Link {
    /// Attaches a program at tcx to `interface` of the calling thread's network namespace, beside
    /// whatever is there.
    pub fn at_tcx(
        program: &mut SchedClassifier,
        interface: &str,
        direction: Direction,
    ) -> Result<Self, XdpError> {
        let order = match direction {
            Direction::Ingress => LinkOrder::first(),
            Direction::Egress => LinkOrder::last(),
        };
        let options = TcAttachOptions::TcxOrder(order);
        let link = program.attach_with_options(interface, direction.into(), options)?;
        Ok(Self::Tcx(direction, program.take_link(link)?))
    }

    /// Attaches the program by a filter of `clsact`, which this makes where it is not there. The
    /// program answers TCX_NEXT, which is TC_ACT_UNSPEC: the next filter decides.
    pub fn at_clsact(
        program: &mut SchedClassifier,
        interface: &str,
        direction: Direction,
    ) -> Result<Self, XdpError> {
        let namespace = Namespace::current().map_err(LinkError::from)?;
        let clsact = Clsact::ready(namespace, interface)?;
        let (priority, handle) = clsact.filter(direction);
        let options = TcAttachOptions::Netlink(NlOptions {
            priority,
            handle: handle.into(),
            ..NlOptions::default()
        });
        let link = program.attach_with_options(interface, direction.into(), options)?;
        // Its end would take the filter away in whatever namespace the thread is in by then.
        std::mem::forget(program.take_link(link)?);
        Ok(Self::Clsact(direction, clsact))
    }

    /// Place of the attachment, such as `driver` or `tc egress`.
    pub fn place(&self) -> &'static str {
        match self {
            Self::Xdp(_, hook) => hook.word(),
            Self::Tcx(Direction::Ingress, _) => "tcx ingress",
            Self::Tcx(Direction::Egress, _) => "tcx egress",
            Self::Clsact(Direction::Ingress, _) => "tc ingress",
            Self::Clsact(Direction::Egress, _) => "tc egress",
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Self::Clsact(direction, clsact) = self {
            // An interface that is gone took its filters along; what stays is for the next `watch`.
            let _ = clsact.detach(*direction);
        }
    }
}
