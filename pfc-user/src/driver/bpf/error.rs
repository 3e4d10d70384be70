//! Errors of BPF programs, each with its remedy.

use std::path::Path;
use std::{fs, io};

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use pfc_ebpf::units::OutOfRange;
use thiserror::Error;

use super::verifier_log::VerifierLog;
use super::xdp_link;
use crate::driver::kernel::link::LinkError;
use crate::driver::kernel::link::attached::{self, Attached};

/// Errors of loading, attaching, configuring and reading a program.
#[derive(Debug, Error)]
pub enum XdpError {
    /// The interface does not exist.
    #[error("no interface `{0}` in this network namespace; `ip link` lists those there are")]
    UnknownInterface(String),
    /// The tool was built without its eBPF object.
    #[error("this build has no XDP program in it; run `cargo xtask build-ebpf`, then build again")]
    NotBuilt,
    /// The object and the tool are of different versions.
    #[error(
        "the XDP program has ABI {}, expected {expected}; run `cargo xtask build-ebpf`, then build \
         again",
        .found.map_or("none".to_owned(), |found| found.to_string())
    )]
    Abi {
        /// The object's.
        found: Option<u32>,
        /// The tool's.
        expected: u32,
    },
    /// A map or the program is not in the object.
    #[error("the XDP object has no `{0}`; run `cargo xtask build-ebpf`, then build again")]
    Missing(&'static str),
    /// A number outside its range.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// A `verify_every` that is no power of two, which the mask of the sample has to be.
    #[error(
        "one frame in `verify_every` has its checksum verified, which must be a power of two, \
         found {0}"
    )]
    NoPowerOfTwo(u64),
    /// The process lacks a privilege.
    #[error(
        "not permitted to {0}: run as root, or with the capabilities CAP_BPF, CAP_PERFMON and \
         CAP_NET_ADMIN"
    )]
    NotPermitted(&'static str),
    /// The kernel refuses the program to a process that may not read its memory.
    #[error(
        "not permitted to load an XDP program: this process has CAP_BPF and lacks CAP_PERFMON, \
         without which the kernel's verifier refuses programs that compare addresses and measure \
         time; run as root, or add CAP_PERFMON"
    )]
    NoPerfmon,
    /// The kernel lacks a feature.
    #[error("this kernel lacks {lacks}")]
    Kernel {
        /// The feature.
        lacks: &'static str,
    },
    /// The interface has another program already, which is left alone.
    #[error(
        "`{interface}` already has an XDP program, {program}, which is not replaced; detach it, \
         for example by `ip link set dev {interface} xdp off`"
    )]
    Occupied {
        /// Interface.
        interface: String,
        /// The other program.
        program: Attached,
    },
    /// The interface does not take a program in this mode.
    #[error("`{interface}` takes no XDP program in {mode} mode: {error}")]
    Refused {
        /// Interface.
        interface: String,
        /// `driver` or `skb`.
        mode: &'static str,
        /// The kernel's reason.
        error: io::Error,
    },
    /// A map could not be mapped into memory.
    #[error("the map {name} cannot be mapped into memory: {error}")]
    Memory {
        /// Map.
        name: &'static str,
        /// The kernel's reason.
        error: io::Error,
    },
    /// A record in a ring buffer is not what the program writes.
    #[error(
        "the XDP program wrote a record of {found} octets, expected {expected}; run `cargo xtask \
         build-ebpf`, then build again"
    )]
    Record {
        /// Octets.
        expected: usize,
        /// Octets.
        found: usize,
    },
    /// Windows ended while they were read, time and again.
    #[error(
        "a window ended at each of {readings} readings of all windows, expected none to end \
         during one of them; stop the traffic first, or use wider windows"
    )]
    Restless {
        /// Number of readings.
        readings: u32,
    },
    /// Counts could not be zeroed.
    #[error(
        "the counts of the XDP program cannot be zeroed (BPF_MAP_UPDATE_BATCH on arrays by CPU, \
         Linux 5.13): {0}"
    )]
    Clear(io::Error),
    /// Records could not be waited for.
    #[error("cannot wait for records of the XDP program: {0}")]
    Wait(io::Error),
    /// The kernel's verifier refused the program.
    #[error(
        "the kernel refuses the XDP program ({error}): a bug of this tool; please report it with \
         the output of `uname -r` and the verifier's log, {log}"
    )]
    Rejected {
        /// Reason of the system call.
        error: io::Error,
        /// Log of the verifier.
        log: VerifierLog,
    },
    /// The object could not be loaded.
    #[error("the XDP program could not be loaded: {0}")]
    Load(Box<dyn std::error::Error + Send + Sync>),
    /// The program for live frames could not be made ready or run.
    #[error("live frames (BPF_PROG_RUN, Linux 5.18) cannot be made: {what}: {error}")]
    LiveFrames {
        /// The action that failed.
        what: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// The link could not be asked, or its filters not be changed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A map could not be read or written.
    #[error("a map of the XDP program could not be used: {0}")]
    Map(#[source] MapError),
}

/// Bits of `linux/capability.h`.
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;

/// The error that the errno of a failed bpf system call stands for. EACCES is not among them: it is
/// the verifier's refusal.
fn known(error: &io::Error, action: &'static str) -> Option<XdpError> {
    match error.raw_os_error()? {
        libc::EPERM => Some(XdpError::NotPermitted(action)),
        libc::ENOSYS => Some(XdpError::Kernel {
            lacks: "the system call bpf (CONFIG_BPF_SYSCALL)",
        }),
        _ => None,
    }
}

/// True if the kernel was built without its own types. The verifier needs them for our global
/// functions, to know what their context is. Without sysfs the answer is unknown.
fn lacks_types(sys: &Path) -> bool {
    sys.join("kernel").is_dir() && !sys.join("kernel/btf/vmlinux").exists()
}

/// True unless this process lacks CAP_PERFMON, which CAP_SYS_ADMIN stands in for.
fn may_read_memory() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    // Without a reading the verifier's own words are shown.
    capabilities(&status).is_none_or(|held| held & (PERFMON | SYS_ADMIN) != 0)
}

/// The effective capabilities in `/proc/self/status`.
fn capabilities(status: &str) -> Option<u64> {
    let held = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(held.trim(), 16).ok()
}

impl XdpError {
    /// The error of attaching to an interface.
    pub(super) fn of_attach(
        interface: &str,
        index: u32,
        mode: xdp_link::Hook,
        error: io::Error,
    ) -> Self {
        let interface = interface.to_owned();
        if let Some(known) = known(&error, "attach an XDP program") {
            return known;
        }
        // The kernel says so for a program of the same mode and of the other one.
        if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
            && let Ok(Some(program)) = attached::program(index)
        {
            return Self::Occupied { interface, program };
        }
        Self::Refused {
            interface,
            mode: mode.word(),
            error,
        }
    }
}

impl From<EbpfError> for XdpError {
    fn from(error: EbpfError) -> Self {
        match error {
            EbpfError::MapError(error) => error.into(),
            EbpfError::ProgramError(error) => error.into(),
            error => Self::Load(Box::new(error)),
        }
    }
}

impl From<ProgramError> for XdpError {
    fn from(error: ProgramError) -> Self {
        let number = match &error {
            ProgramError::LoadError { io_error, .. } => Some(io_error),
            ProgramError::SyscallError(error) => Some(&error.io_error),
            _ => None,
        };
        if let Some(known) = number.and_then(|error| known(error, "load an XDP program")) {
            return known;
        }
        match error {
            ProgramError::LoadError { .. } if !may_read_memory() => Self::NoPerfmon,
            ProgramError::LoadError { .. } if lacks_types(Path::new("/sys")) => Self::Kernel {
                lacks: "its own types (CONFIG_DEBUG_INFO_BTF), by which its verifier checks the \
                        functions of our programs",
            },
            ProgramError::LoadError {
                io_error,
                verifier_log,
            } => Self::Rejected {
                error: io_error,
                log: VerifierLog::keep(&verifier_log.to_string()),
            },
            error => Self::Load(Box::new(error)),
        }
    }
}

impl From<MapError> for XdpError {
    fn from(error: MapError) -> Self {
        let number = match &error {
            MapError::CreateError { io_error, .. } => Some(io_error),
            MapError::SyscallError(error) => Some(&error.io_error),
            _ => None,
        };
        number
            .and_then(|error| known(error, "make a BPF map"))
            .unwrap_or(Self::Map(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_call(number: i32) -> XdpError {
        let io_error = io::Error::from_raw_os_error(number);
        XdpError::from(MapError::CreateError {
            name: "PORT".to_owned(),
            io_error,
        })
    }

    #[test]
    fn missing_capabilities_are_named() {
        let message = of_call(libc::EPERM).to_string();
        assert_eq!(
            message,
            "not permitted to make a BPF map: run as root, or with the capabilities CAP_BPF, \
             CAP_PERFMON and CAP_NET_ADMIN"
        );
    }

    #[test]
    fn effective_capabilities_are_read() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t0000004000003000\n";
        assert_eq!(capabilities(status), Some(PERFMON | 0x3000));
        assert_eq!(capabilities("Name:\tx\n"), None);
    }

    #[test]
    fn a_kernel_without_bpf_is_named() {
        assert_eq!(
            of_call(libc::ENOSYS).to_string(),
            "this kernel lacks the system call bpf (CONFIG_BPF_SYSCALL)"
        );
    }

    #[test]
    fn types_of_the_kernel_are_in_sysfs() {
        let sys = tempfile::tempdir().unwrap();
        assert!(!lacks_types(sys.path()), "no sysfs");
        fs::create_dir_all(sys.path().join("kernel/btf")).unwrap();
        assert!(lacks_types(sys.path()));
        fs::write(sys.path().join("kernel/btf/vmlinux"), "").unwrap();
        assert!(!lacks_types(sys.path()));
    }

    #[test]
    fn the_verifiers_refusal_is_no_lack_of_permission() {
        assert!(matches!(of_call(libc::EACCES), XdpError::Map(_)));
    }

    #[test]
    fn an_abi_mismatch_says_what_to_do() {
        let message = |found| XdpError::Abi { found, expected: 2 }.to_string();
        assert_eq!(
            message(Some(1)),
            "the XDP program has ABI 1, expected 2; run `cargo xtask build-ebpf`, then build again"
        );
        assert!(message(None).contains("ABI none"));
    }
}
