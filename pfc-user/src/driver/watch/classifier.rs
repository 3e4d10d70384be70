//! The program for tcx (Linux 6.6), by bpf_link: beside other programs, and gone with the process.

use aya::maps::{Map, MapError};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType, TestRun};
use aya::util::KernelVersion;
use aya::{Ebpf, EbpfLoader, TestRunOptions};

use crate::driver::xdp::object::{open, take, verified, words};
use crate::driver::xdp::words::Words;
use crate::driver::xdp::{TestResult, XdpError};

/// The program in the object.
const NAME: &str = "watch_tc";
/// Octets of `struct __sk_buff` of `linux/bpf.h`, and where its `gso_size` stands.
const CONTEXT: usize = 192;
const GSO_SIZE: usize = 176;

/// Which way frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Behind XDP, before any other program at tcx.
    Ingress,
    /// What the other programs at tcx let pass, before the queueing discipline.
    Egress,
}

/// A program at tcx. Dropping it detaches it; so does the end of the process.
pub struct Classifier {
    object: Ebpf,
    attached: Option<Direction>,
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
        })
    }

    /// Attaches it to `interface` of the calling thread's network namespace, beside whatever is there.
    pub fn attach(&mut self, interface: &str, direction: Direction) -> Result<(), XdpError> {
        if KernelVersion::current().is_ok_and(|version| version < KernelVersion::new(6, 6, 0)) {
            return Err(XdpError::Kernel {
                lacks: "tcx (Linux 6.6)",
            });
        }
        let program: &mut SchedClassifier = self
            .object
            .program_mut(NAME)
            .ok_or(XdpError::Missing(NAME))?
            .try_into()?;
        let (kind, order) = match direction {
            Direction::Ingress => (TcAttachType::Ingress, LinkOrder::first()),
            Direction::Egress => (TcAttachType::Egress, LinkOrder::last()),
        };
        program.attach_with_options(interface, kind, TcAttachOptions::TcxOrder(order))?;
        self.attached = Some(direction);
        Ok(())
    }

    /// `tcx ingress` or `tcx egress`; `none` where it is not attached.
    pub fn place(&self) -> &'static str {
        match self.attached {
            Some(Direction::Ingress) => "tcx ingress",
            Some(Direction::Egress) => "tcx egress",
            None => "none",
        }
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

    /// Runs the program `repeat` times on `frame`, which the stack is to cut into frames of `gso_size` octets of payload; 0: is one.
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
