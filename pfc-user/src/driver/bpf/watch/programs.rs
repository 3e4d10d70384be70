//! The programs of `watch` in the kernel: verified once for many ports, and an entry for each port.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::thread;

use aya::maps::{MapData, ProgramArray};
use aya::programs::{Program, ProgramFd, TestRun};
use aya::{Ebpf, TestRunOptions};
use pfc_ebpf::abi::watch::name;

use super::Point;
use super::link::Link;
use crate::driver::bpf::object::{self, Interface, take, verified};
use crate::driver::bpf::{TestResult, XdpError};

/// Octets of `struct __sk_buff` of `linux/bpf.h`, and where its `gso_segs` and `gso_size` stand.
const CONTEXT: usize = 192;
const GSO_SEGS: usize = 164;
const GSO_SIZE: usize = 176;

/// Hook for which there is a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// XDP.
    Xdp,
    /// tcx, or a filter of `clsact`.
    Tc,
}

impl Kind {
    /// The programs in the object that all ports share, by their place in the kind's array. The
    /// first counts, and hands some frames on to the others.
    const fn shared(self) -> &'static [&'static str] {
        match self {
            Self::Xdp => &name::XDP_PROGRAMS,
            Self::Tc => &name::TC_PROGRAMS,
        }
    }

    /// The program in the object that is attached to a port.
    fn entry(self, port: u32) -> String {
        format!("{}_{port}", self.shared()[0])
    }
}

impl From<Point> for Kind {
    fn from(point: Point) -> Self {
        match point {
            Point::Xdp(_) => Self::Xdp,
            Point::Tcx(_) | Point::Clsact(_) => Self::Tc,
        }
    }
}

/// The object and what is loaded of it.
pub struct Programs {
    /// Kept for the maps that belong to no program alone.
    pub object: Ebpf,
    /// Arrays by which the entries hand on, by kind.
    // The kernel empties an array of programs when its last descriptor is closed.
    arrays: [ProgramArray<MapData>; 2],
    /// Kinds of which all shared programs are in their array.
    complete: Vec<Kind>,
}

impl Programs {
    /// Returns the programs of an object whose maps are loaded, and no program yet.
    pub fn new(mut object: Ebpf) -> Result<Self, XdpError> {
        Ok(Self {
            arrays: [take(&mut object, name::XDP)?, take(&mut object, name::TC)?],
            complete: Vec::new(),
            object,
        })
    }

    /// Loads the programs of that kind where no port has them yet, and the port's entry.
    pub fn ready(&mut self, kind: Kind, port: u32) -> Result<(), XdpError> {
        self.load(&[kind], |_| ())?;
        let entry = program(&mut self.object, kind, &kind.entry(port))?;
        loaded(entry, kind).map(drop)
    }

    /// Loads the shared programs of these kinds, unless they are complete, side by side; meanwhile
    /// does something with the entries. After an error a second call begins anew: an uncounted
    /// frame would go unnoticed.
    fn load<T>(
        &mut self,
        kinds: &[Kind],
        meanwhile: impl FnOnce(&mut HashMap<&str, &mut Program>) -> T,
    ) -> Result<T, XdpError> {
        let mut programs: HashMap<&str, &mut Program> = self.object.programs_mut().collect();
        let lacking = kinds.iter().filter(|kind| !self.complete.contains(kind));
        let lacking: Vec<Kind> = lacking.copied().collect();
        let mut wanted = Vec::new();
        for kind in &lacking {
            for (place, name) in kind.shared().iter().enumerate() {
                let program = programs.remove(name).ok_or(XdpError::Missing(name))?;
                wanted.push((*kind, place as u32, program));
            }
        }
        let done = thread::scope(|scope| {
            let load = |(kind, place, program)| {
                let verified = scope.spawn(move || loaded(program, kind));
                (kind, place, verified)
            };
            let loading: Vec<_> = wanted.into_iter().map(load).collect();
            let done = meanwhile(&mut programs);
            // The first program, which hands on to the others, comes last.
            for (kind, place, verified) in loading.into_iter().rev() {
                let verified = verified.join();
                let program = verified.unwrap_or_else(|panic| resume_unwind(panic))?;
                self.arrays[kind as usize].set(place, program, 0)?;
            }
            Ok::<_, XdpError>(done)
        })?;
        self.complete.extend(lacking);
        Ok(done)
    }

    /// Attaches entries in the calling thread's network namespace. All of a kind count once all of
    /// them are attached; a result for each.
    ///
    /// The kernel waits some milliseconds at each port, and meanwhile verifies what counts.
    pub fn attach(
        &mut self,
        places: &[Place<'_>],
    ) -> Result<Vec<Result<Link, XdpError>>, XdpError> {
        let wants = |kind| places.iter().any(|place| Kind::from(place.point) == kind);
        let kinds: Vec<_> = [Kind::Xdp, Kind::Tc]
            .into_iter()
            .filter(|kind| wants(*kind))
            .collect();
        self.load(&kinds, |programs| {
            places.iter().map(|place| place.attach(programs)).collect()
        })
    }

    /// Runs a port's entry `repeat` times on `frame`, with `gso_size` and `gso_segs` beside it (0:
    /// it is one frame). XDP knows no such thing.
    pub fn test_run(
        &mut self,
        kind: Kind,
        port: u32,
        frame: &[u8],
        repeat: u32,
        [gso_size, gso_segs]: [u32; 2],
    ) -> Result<TestResult, XdpError> {
        self.ready(kind, port)?;
        let mut context = [0; CONTEXT];
        for (at, value) in [(GSO_SIZE, gso_size), (GSO_SEGS, gso_segs)] {
            context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat,
            ..TestRunOptions::new()
        };
        let result = match program(&mut self.object, kind, &kind.entry(port))? {
            Program::Xdp(entry) => entry.test_run(options)?,
            Program::SchedClassifier(entry) => entry.test_run(TestRunOptions {
                ctx_in: Some(&context),
                ..options
            })?,
            _ => return Err(XdpError::Missing(kind.shared()[0])),
        };
        Ok(TestResult {
            action: result.return_value,
            duration: result.duration,
        })
    }
}

/// A port's entry and where it is to be attached.
pub struct Place<'a> {
    /// Port of the entry.
    pub port: u32,
    /// Interface in the calling thread's network namespace.
    pub interface: &'a str,
    /// Place there.
    pub point: Point,
}

impl Place<'_> {
    fn attach(&self, programs: &mut HashMap<&str, &mut Program>) -> Result<Link, XdpError> {
        let found = Interface::find(self.interface)?;
        let kind = Kind::from(self.point);
        let entry = programs.get_mut(kind.entry(self.port).as_str());
        let entry = entry.ok_or(XdpError::Missing(kind.shared()[0]))?;
        let descriptor = loaded(entry, kind)?;
        match self.point {
            Point::Xdp(mode) => {
                let (link, hook) = object::attach(descriptor.as_fd(), &found, mode)?;
                Ok(Link::Xdp(link, hook))
            }
            Point::Tcx(direction) => Link::at_tcx((*entry).try_into()?, self.interface, direction),
            Point::Clsact(direction) => {
                Link::at_clsact((*entry).try_into()?, self.interface, direction)
            }
        }
    }
}

fn program<'a>(object: &'a mut Ebpf, kind: Kind, name: &str) -> Result<&'a mut Program, XdpError> {
    object
        .program_mut(name)
        .ok_or(XdpError::Missing(kind.shared()[0]))
}

/// The program's descriptor, once it is loaded.
fn descriptor(program: &Program) -> Option<&ProgramFd> {
    match program {
        Program::Xdp(program) => program.fd().ok(),
        Program::SchedClassifier(program) => program.fd().ok(),
        _ => None,
    }
}

/// The descriptor of a program, which is loaded where it is not.
fn loaded(program: &mut Program, kind: Kind) -> Result<&ProgramFd, XdpError> {
    if descriptor(program).is_none() {
        match program {
            Program::Xdp(program) => verified(|| program.load())?,
            Program::SchedClassifier(program) => verified(|| program.load())?,
            _ => {}
        }
    }
    descriptor(program).ok_or(XdpError::Missing(kind.shared()[0]))
}
