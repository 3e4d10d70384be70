//! A program in the kernel: its object loaded, its maps, where it is attached.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aya::maps::{Array, Map, MapData, MapError, PerCpuArray, PerCpuValues};
use aya::programs::{ProgramError, ProgramFd, TestRun, Xdp};
use aya::util::{KernelVersion, nr_cpus};
use aya::{Ebpf, EbpfLoader, Pod, TestRunOptions};
use nix::net::if_::if_nametoindex;
use pfc_ebpf::abi::ABI_SECTION;
use validator_core::preflight::kernel;

use super::mmap::Words;
use super::pod::Plain;
use super::trace::{Trace, TraceOutput};
use super::xdp_link;
use super::{TestResult, XdpError, XdpMode};
use crate::driver::kernel::link::ethtool;

/// An XDP program in the kernel. Dropping it detaches it; so does the end of the process.
pub struct Program {
    /// The object, with its other programs.
    pub object: Ebpf,
    name: &'static str,
    /// Attached as long as this is open.
    link: Option<(OwnedFd, xdp_link::Hook)>,
    /// The interface had one receive queue when the program was attached.
    one_queue: bool,
    /// Last, so that the lines of the last frames are taken when nothing more comes.
    trace: Option<Trace>,
}

/// An interface that a program is to be attached to.
pub struct Interface<'a> {
    name: &'a str,
    index: u32,
}

impl<'a> Interface<'a> {
    /// Finds an interface in the calling thread's network namespace.
    pub fn find(name: &'a str) -> Result<Self, XdpError> {
        let index =
            if_nametoindex(name).map_err(|_| XdpError::UnknownInterface(name.to_owned()))?;
        Ok(Self { name, index })
    }
}

impl Program {
    /// Loads the program `name` of an object, which has to be built with that version of its maps.
    pub fn load(
        octets: &[u8],
        name: &'static str,
        abi: u32,
        loader: &mut EbpfLoader<'_>,
    ) -> Result<Self, XdpError> {
        let mut object = open(octets, abi, loader)?;
        let program: &mut Xdp = object
            .program_mut(name)
            .ok_or(XdpError::Missing(name))?
            .try_into()?;
        verified(|| program.load())?;
        Ok(Self {
            object,
            name,
            link: None,
            one_queue: false,
            trace: None,
        })
    }

    /// Attaches it to an interface that has no program.
    pub fn attach(&mut self, interface: &Interface, mode: XdpMode) -> Result<(), XdpError> {
        self.link = Some(attach(self.fd()?.as_fd(), interface, mode)?);
        self.one_queue = ethtool::receive_queues(interface.name) == Some(1);
        Ok(())
    }

    /// Detaches it, where it is attached.
    pub fn detach(&mut self) {
        self.link = None;
    }

    /// `driver` or `skb`; `none` where it is not attached.
    pub fn mode(&self) -> &'static str {
        self.link.as_ref().map_or("none", |(_, mode)| mode.word())
    }

    /// True if only one CPU at a time can run it: in the driver, on the one receive queue of an
    /// interface, where the kernel polls a queue on one CPU at a time. Not behind a tun or tap,
    /// whose writers run it.
    ///
    /// Sampled at attach time; adding queues later invalidates the counts.
    pub fn runs_on_one_cpu_at_a_time(&self) -> bool {
        self.link
            .as_ref()
            .is_some_and(|(.., mode)| *mode == xdp_link::Hook::Driver)
            && self.one_queue
    }

    /// Takes a map out of the object, typed.
    pub fn map<M: TryFrom<Map, Error = MapError>>(
        &mut self,
        name: &'static str,
    ) -> Result<M, XdpError> {
        take(&mut self.object, name)
    }

    /// Maps the first `length` words of an array into memory. The array stays with the object, for
    /// programs that are loaded later.
    pub fn words(&self, name: &'static str, length: usize) -> Result<Words, XdpError> {
        words(&self.object, name, length)
    }

    /// Its descriptor.
    pub fn fd(&self) -> Result<&ProgramFd, XdpError> {
        Ok(self.program()?.fd()?)
    }

    /// Runs the program `repeat` times on `frame`.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestResult, XdpError> {
        let result = self.program()?.test_run(TestRunOptions {
            data_in: Some(frame),
            repeat,
            ..TestRunOptions::new()
        })?;
        Ok(TestResult {
            action: result.return_value,
            duration: result.duration,
        })
    }

    /// Begins with the lines of a traced object; each gets the name of its `port`.
    pub fn trace(&mut self, port: &str, output: &TraceOutput) -> Result<(), XdpError> {
        self.trace = Some(Trace::begin(&mut self.object, port, output)?);
        Ok(())
    }

    fn program(&self) -> Result<&Xdp, XdpError> {
        Ok(self
            .object
            .program(self.name)
            .ok_or(XdpError::Missing(self.name))?
            .try_into()?)
    }
}

/// Attaches an XDP program to an interface that has none.
pub fn attach(
    program: BorrowedFd,
    interface: &Interface,
    mode: XdpMode,
) -> Result<(OwnedFd, xdp_link::Hook), XdpError> {
    let attach = |hook: xdp_link::Hook| {
        xdp_link::create(program, interface.index, hook)
            .map(|link| (link, hook))
            .map_err(|error| XdpError::of_attach(interface.name, interface.index, hook, error))
    };
    match mode {
        XdpMode::Driver => attach(xdp_link::Hook::Driver),
        XdpMode::Skb => attach(xdp_link::Hook::Skb),
        XdpMode::Auto => match attach(xdp_link::Hook::Driver) {
            Err(XdpError::Refused { .. }) => attach(xdp_link::Hook::Skb),
            link => link,
        },
    }
}

/// Tries before [`verified`] believes an EAGAIN, as many as in libbpf.
const TRIES: usize = 5;

/// Loads a program. The verifier ends with EAGAIN where a signal is pending (`do_check` of
/// kernel/bpf/verifier.c), as system calls do with EINTR: that says nothing of the program.
pub fn verified(mut load: impl FnMut() -> Result<(), ProgramError>) -> Result<(), ProgramError> {
    for _ in 1..TRIES {
        match load() {
            Err(ProgramError::LoadError { io_error, .. })
                if io_error.raw_os_error() == Some(libc::EAGAIN) => {}
            loaded => return loaded,
        }
    }
    load()
}

/// Takes a map out of an object, typed.
pub fn take<M: TryFrom<Map, Error = MapError>>(
    object: &mut Ebpf,
    name: &'static str,
) -> Result<M, XdpError> {
    Ok(object
        .take_map(name)
        .ok_or(XdpError::Missing(name))?
        .try_into()?)
}

/// Maps the first `length` words of an array of an object into memory.
pub fn words(object: &Ebpf, name: &'static str, length: usize) -> Result<Words, XdpError> {
    match object.map(name) {
        Some(Map::Array(array)) => {
            Words::map(array.fd().as_fd(), length).map_err(|error| XdpError::Memory { name, error })
        }
        _ => Err(XdpError::Missing(name)),
    }
}

/// Oldest kernel on which `cargo xtask lab kernel` shows that the programs load and count.
const OLDEST: KernelVersion = KernelVersion::new(kernel::OLDEST.0, kernel::OLDEST.1, 0);

/// Loads the maps of an object, which has to be built with that version of them, and none of its
/// programs yet.
pub fn open(octets: &[u8], abi: u32, loader: &mut EbpfLoader<'_>) -> Result<Ebpf, XdpError> {
    if octets.is_empty() {
        return Err(XdpError::NotBuilt);
    }
    if KernelVersion::current().is_ok_and(|version| version < OLDEST) {
        return Err(XdpError::Kernel {
            lacks: "BPF features of Linux 6.1, the oldest that the programs are tested on \
                    (bpf_xdp_load_bytes and live frames are of 5.18)",
        });
    }
    let object = loader.load(octets)?;
    check_abi(&object, abi)?;
    Ok(object)
}

/// The object says which layout of the maps it was built with.
fn check_abi(object: &Ebpf, expected: u32) -> Result<(), XdpError> {
    let found = match object.map(ABI_SECTION) {
        Some(map) => Some(Array::<_, u32>::try_from(map)?.get(&0, 0)?),
        None => None,
    };
    if found == Some(expected) {
        Ok(())
    } else {
        Err(XdpError::Abi { found, expected })
    }
}

/// Number of CPUs that there may be, for each of which a map by CPU has a value.
pub fn cpus() -> Result<usize, XdpError> {
    Ok(nr_cpus().map_err(|(_, error)| MapError::from(error))?)
}

/// The values of all CPUs at that place of an array, put together.
pub fn over_cpus<T: Copy>(
    array: &PerCpuArray<MapData, Plain<T>>,
    place: u32,
    zero: T,
    merge: impl Fn(&mut T, &T),
) -> Result<T, XdpError>
where
    Plain<T>: Pod,
{
    let mut sum = zero;
    for cpu in array.get(&place, 0)?.iter() {
        merge(&mut sum, &cpu.0);
    }
    Ok(sum)
}

/// The value of each CPU.
pub fn by_cpu<T: Copy>(value: impl Fn(usize) -> T) -> Result<PerCpuValues<Plain<T>>, XdpError>
where
    Plain<T>: Pod,
{
    let values: Vec<_> = (0..cpus()?).map(|cpu| Plain(value(cpu))).collect();
    Ok(PerCpuValues::try_from(values).map_err(MapError::from)?)
}
