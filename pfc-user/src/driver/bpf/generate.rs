//! The program `generate` of the objects `account` and `flow`: load, keep ready, run; its maps.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};

use aya::programs::{ProgramError, RawTracePoint, Xdp};
use aya::{EbpfLoader, Pod};
use nix::net::if_::if_nametoindex;
use pfc_ebpf::abi::generate::{BATCH, Flow, Settings, Worker, name};

use super::XdpError;
use super::mmap::Words;
use super::object::{Program, cpus, verified};
use super::pod::Plain;
use super::{prog_run, xdp_link};
use crate::driver::kernel::netns::Namespace;

const NAME: &str = "generate";
const CONSTANT: &str = "generate_constant";

/// Tracepoints at which the kernel tells the fate of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracepoints {
    /// Frames were handed to a device, which took them or did not.
    pub delivered: &'static str,
    /// A frame could not be handed to a device.
    pub refused: &'static str,
}

impl Default for Tracepoints {
    fn default() -> Self {
        Self {
            delivered: "xdp_devmap_xmit",
            refused: "xdp_redirect_err",
        }
    }
}

/// The loaded program with its maps, and those that its object alone has. Callers ensure that no
/// two of them run it for different bursts.
pub struct Generator<Own> {
    program: Runner,
    /// Settings of all workers.
    pub settings: Table<Settings>,
    /// Flows, by worker.
    pub flows: Table<Flow>,
    /// Workers, by CPU.
    pub workers: Table<Worker>,
    /// Maps of the object.
    pub own: Own,
    uncounted: Option<String>,
}

/// An array in memory.
pub struct Table<T> {
    words: Words,
    entries: usize,
    values: PhantomData<T>,
}

/// A program that runs on frames of our own.
struct Runner {
    program: OwnedFd,
    /// Attachment of the program, as long as this is open, to the loopback interface of a network
    /// namespace without any traffic. For a program that is attached nowhere the kernel remakes its
    /// dispatcher at each call, and waits for all CPUs to notice.
    _attached: OwnedFd,
    _namespace: Namespace,
}

/// Sets the number of entries of the maps that both objects have.
pub(super) fn size(loader: &mut EbpfLoader<'_>, flows: u32) -> Result<(), XdpError> {
    loader
        .map_max_entries(name::FLOWS, flows)
        .map_max_entries(name::WORKERS, cpus()? as u32);
    Ok(())
}

impl<T: Copy> Table<T>
where
    Plain<T>: Pod,
{
    const WORDS: usize = size_of::<T>() / size_of::<u64>();

    pub(super) fn open(
        program: &Program,
        name: &'static str,
        entries: usize,
    ) -> Result<Self, XdpError> {
        Ok(Self {
            words: program.words(name, entries * Self::WORDS)?,
            entries,
            values: PhantomData,
        })
    }

    /// Entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Place of a word of the value at `index`.
    fn place(&self, index: usize, word: usize) -> usize {
        assert!(
            word < Self::WORDS && index < self.entries,
            "the map has {} entries of {} words, found word {word} of {index}",
            self.entries,
            Self::WORDS
        );
        index * Self::WORDS + word
    }

    /// The value at `index`; not one of a single moment while a program writes it.
    ///
    /// # Panics
    /// From [`Self::entries`] on.
    pub fn get(&self, index: usize) -> T {
        self.words.value(self.place(index, 0))
    }

    /// The word at `word` of the value at `index`.
    ///
    /// # Panics
    /// From [`Self::entries`] on, or beyond the value.
    pub fn word(&self, index: usize, word: usize) -> u64 {
        self.words.load(self.place(index, word))
    }

    /// Writes the value at `index`.
    ///
    /// # Panics
    /// From [`Self::entries`] on.
    pub fn set(&self, index: usize, value: &T) {
        self.words.set(self.place(index, 0), value);
    }
}

impl Runner {
    fn load(program: &mut Program, name: &'static str) -> Result<Self, XdpError> {
        let loaded: &mut Xdp = program
            .object
            .program_mut(name)
            .ok_or(XdpError::Missing(name))?
            .try_into()?;
        verified(|| loaded.load())?;
        let failed = |what| move |error| XdpError::LiveFrames { what, error };
        let own = loaded
            .fd()?
            .as_fd()
            .try_clone_to_owned()
            .map_err(failed("no second descriptor of the program"))?;
        let place = |error| {
            failed("no network namespace to attach the program in")(io::Error::other(error))
        };
        let namespace = Namespace::new().map_err(place)?;
        let attach = || {
            let loopback = if_nametoindex("lo")?;
            xdp_link::create(own.as_fd(), loopback, xdp_link::Hook::Skb)
        };
        let attached = namespace
            .run(attach)
            .map_err(place)?
            .map_err(failed("the loopback interface takes no program"))?;
        Ok(Self {
            program: own,
            _attached: attached,
            _namespace: namespace,
        })
    }

    fn run(&self, port: u32, frame: &[u8], runs: u32, batch: u32) -> Result<(), XdpError> {
        prog_run::run(self.program.as_fd(), port, frame, runs, batch).map_err(|error| {
            XdpError::LiveFrames {
                what: "the kernel does not run the program",
                error,
            }
        })
    }
}

/// Sends constant frames without pause: the reference of the benchmarks.
pub struct Constant(Runner);

impl Constant {
    pub(super) fn load(program: &mut Program) -> Result<Self, XdpError> {
        Runner::load(program, CONSTANT).map(Self)
    }

    /// Runs the program on `runs` frames, as [`Generator::run`] does, in batches of [`BATCH`].
    pub fn run(&self, port: u32, frame: &[u8], runs: u32) -> Result<(), XdpError> {
        self.0.run(port, frame, runs, BATCH)
    }
}

impl<Own> Generator<Own> {
    pub(super) fn load(
        program: &mut Program,
        flows: u32,
        own: Own,
        tracepoints: Tracepoints,
    ) -> Result<Self, XdpError> {
        let generate = Runner::load(program, NAME)?;
        let uncounted = count(program, tracepoints).err();
        Ok(Self {
            settings: Table::open(program, name::SETTINGS, 1)?,
            flows: Table::open(program, name::FLOWS, flows as usize)?,
            workers: Table::open(program, name::WORKERS, cpus()?)?,
            own,
            program: generate,
            uncounted,
        })
    }

    /// Runs the program on `runs` frames, each as long as `frame` and like it behind the headers.
    /// `port` is the index of an interface in the calling thread's network namespace. Frames that
    /// the program lets go leave at the end of a `batch` (that of its [`Worker::batch_runs`]) at
    /// the latest. A signal may end the call sooner.
    pub fn run(&self, port: u32, frame: &[u8], runs: u32, batch: u32) -> Result<(), XdpError> {
        self.program.run(port, frame, runs, batch)
    }

    /// The reason why the fate of the frames is not counted; `None` where it is.
    pub fn uncounted(&self) -> Option<&str> {
        self.uncounted.as_deref()
    }

    /// Lets nothing more go in this burst.
    pub fn stop(&self) {
        self.settings
            .words
            .store(std::mem::offset_of!(Settings, stop) / size_of::<u64>(), 1);
    }
}

/// Attaches to the tracepoints that tell the fate of the frames; an error names the one that is
/// missing.
fn count(program: &mut Program, tracepoints: Tracepoints) -> Result<(), String> {
    for (name, tracepoint) in [
        ("generate_delivered", tracepoints.delivered),
        ("generate_refused", tracepoints.refused),
    ] {
        attach(program, name, tracepoint).map_err(|error| {
            let reason = match error {
                ProgramError::SyscallError(error) => error.io_error.to_string(),
                error => XdpError::from(error).to_string(),
            };
            format!("tracepoint {tracepoint}: {reason}")
        })?;
    }
    Ok(())
}

fn attach(program: &mut Program, name: &'static str, tracepoint: &str) -> Result<(), ProgramError> {
    let program: &mut RawTracePoint = program
        .object
        .program_mut(name)
        .ok_or(ProgramError::NotLoaded)?
        .try_into()?;
    verified(|| program.load())?;
    program.attach(tracepoint).map(drop)
}
