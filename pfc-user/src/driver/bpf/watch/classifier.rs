//! The program for tc: at tcx (Linux 6.6) by bpf_link, beside other programs and gone with the
//! process; on older kernels as a filter of `clsact` (see [`super::clsact`]).

use aya::maps::{Map, MapError};
use aya::programs::tc::{NlOptions, TcAttachOptions};
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType, TestRun};
use aya::{Ebpf, EbpfLoader, TestRunOptions};

use super::clsact::Clsact;
use crate::driver::bpf::mmap::Words;
use crate::driver::bpf::object::{open, take, verified, words};
use crate::driver::bpf::trace::{Trace, TraceOutput};
use crate::driver::bpf::{TestResult, XdpError};
use crate::driver::kernel::link::LinkError;
use crate::driver::kernel::netns::Namespace;

/// The program in the object.
const NAME: &str = "watch_tc";
/// Octets of `struct __sk_buff` of `linux/bpf.h`, and where its `gso_size` stands.
const CONTEXT: usize = 192;
const GSO_SIZE: usize = 176;

/// Direction of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Behind XDP, before any other program at tcx.
    Ingress,
    /// Frames on their way out that the other programs at tcx let pass, before the queueing
    /// discipline.
    Egress,
}

/// A program for tc. Dropping it detaches it; at tcx so does the end of the process.
pub struct Classifier {
    object: Ebpf,
    attached: Option<Attached>,
    trace: Option<Trace>,
}

enum Attached {
    Tcx(Direction),
    Clsact(Direction, Clsact),
}

impl Classifier {
    /// Loads the program of an object, which has to be built with that version of its maps.
    pub fn load(octets: &[u8], abi: u32, loader: &mut EbpfLoader<'_>) -> Result<Self, XdpError> {
        let mut object = open(octets, abi, loader)?;
        let program: &mut SchedClassifier = object
            .program_mut(NAME)
            .ok_or(XdpError::Missing(NAME))?
            .try_into()?;
        verified(|| program.load())?;
        Ok(Self {
            object,
            attached: None,
            trace: None,
        })
    }

    /// Begins with the lines of a traced object; each gets the name of its `port`.
    pub fn trace(&mut self, port: &str, output: &TraceOutput) -> Result<(), XdpError> {
        self.trace = Some(Trace::begin(&mut self.object, port, output)?);
        Ok(())
    }

    /// Attaches it to `interface` of the calling thread's network namespace, beside whatever is
    /// there.
    pub fn attach(&mut self, interface: &str, direction: Direction) -> Result<(), XdpError> {
        let program = self.program()?;
        let (kind, order) = match direction {
            Direction::Ingress => (TcAttachType::Ingress, LinkOrder::first()),
            Direction::Egress => (TcAttachType::Egress, LinkOrder::last()),
        };
        program.attach_with_options(interface, kind, TcAttachOptions::TcxOrder(order))?;
        self.attached = Some(Attached::Tcx(direction));
        Ok(())
    }

    /// The same by a filter of `clsact`, which this makes where it is not there. The program
    /// answers TCX_NEXT, which is TC_ACT_UNSPEC: the next filter decides.
    pub fn attach_to_clsact(
        &mut self,
        interface: &str,
        direction: Direction,
    ) -> Result<(), XdpError> {
        let namespace = Namespace::current().map_err(LinkError::from)?;
        let clsact = Clsact::ready(namespace, interface)?;
        let kind = match direction {
            Direction::Ingress => TcAttachType::Ingress,
            Direction::Egress => TcAttachType::Egress,
        };
        let (priority, handle) = clsact.filter(direction);
        let options = NlOptions {
            priority,
            handle: handle.into(),
            ..NlOptions::default()
        };
        let program = self.program()?;
        let link =
            program.attach_with_options(interface, kind, TcAttachOptions::Netlink(options))?;
        // Its end would take the filter away in whatever namespace the thread is in by then.
        std::mem::forget(program.take_link(link)?);
        self.attached = Some(Attached::Clsact(direction, clsact));
        Ok(())
    }

    /// Place of the attachment: `tcx ingress`, `tc egress` and the like, or `none`.
    pub fn place(&self) -> &'static str {
        match &self.attached {
            Some(Attached::Tcx(Direction::Ingress)) => "tcx ingress",
            Some(Attached::Tcx(Direction::Egress)) => "tcx egress",
            Some(Attached::Clsact(Direction::Ingress, _)) => "tc ingress",
            Some(Attached::Clsact(Direction::Egress, _)) => "tc egress",
            None => "none",
        }
    }

    fn program(&mut self) -> Result<&mut SchedClassifier, XdpError> {
        let program = self.object.program_mut(NAME);
        Ok(program.ok_or(XdpError::Missing(NAME))?.try_into()?)
    }

    /// Takes a map out of the object, typed.
    pub fn map<M: TryFrom<Map, Error = MapError>>(
        &mut self,
        name: &'static str,
    ) -> Result<M, XdpError> {
        take(&mut self.object, name)
    }

    /// Maps the first `length` words of an array into memory.
    pub fn words(&mut self, name: &'static str, length: usize) -> Result<Words, XdpError> {
        words(&self.object, name, length)
    }

    /// Runs the program `repeat` times on `frame`, which the stack is to cut into frames of
    /// `gso_size` octets of payload; 0: is one.
    pub fn test_run(
        &self,
        frame: &[u8],
        repeat: u32,
        gso_size: u32,
    ) -> Result<TestResult, XdpError> {
        let program: &SchedClassifier = self
            .object
            .program(NAME)
            .ok_or(XdpError::Missing(NAME))?
            .try_into()?;
        let mut context = [0; CONTEXT];
        context[GSO_SIZE..GSO_SIZE + 4].copy_from_slice(&gso_size.to_ne_bytes());
        let options = TestRunOptions {
            data_in: Some(frame),
            ctx_in: Some(&context),
            repeat,
            ..TestRunOptions::new()
        };
        let result = program.test_run(options)?;
        Ok(TestResult {
            action: result.return_value,
            duration: result.duration,
        })
    }
}

impl Drop for Classifier {
    fn drop(&mut self) {
        if let Some(Attached::Clsact(direction, clsact)) = &self.attached {
            // An interface that is gone took its filters along; what stays is for the next `watch`.
            let _ = clsact.detach(*direction);
        }
    }
}
