//! Attaching the program for tc: at tcx (Linux 6.6) by bpf_link, beside other programs and gone
//! with the process; on older kernels as a filter of `clsact` (see [`super::clsact`]).

use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions};
use aya::programs::{LinkOrder, SchedClassifier};

use super::clsact::Clsact;
use super::direction::Direction;
use crate::driver::bpf::XdpError;
use crate::driver::kernel::link::LinkError;
use crate::driver::kernel::netns::Namespace;

/// A program that is attached for tc. Dropping it detaches it; at tcx so does the end of the
/// process.
pub enum Attached {
    /// At tcx.
    Tcx(
        Direction,
        #[expect(dead_code, reason = "detaches when dropped")] SchedClassifierLink,
    ),
    /// A filter of `clsact`.
    Clsact(Direction, Clsact),
}

impl Attached {
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

    /// `tcx ingress`, `tc egress` and the like.
    pub fn place(&self) -> &'static str {
        match self {
            Self::Tcx(Direction::Ingress, _) => "tcx ingress",
            Self::Tcx(Direction::Egress, _) => "tcx egress",
            Self::Clsact(Direction::Ingress, _) => "tc ingress",
            Self::Clsact(Direction::Egress, _) => "tc egress",
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Self::Clsact(direction, clsact) = self {
            // An interface that is gone took its filters along; what stays is for the next `watch`.
            let _ = clsact.detach(*direction);
        }
    }
}
