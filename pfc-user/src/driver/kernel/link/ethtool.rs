//! The functions of `ethtool`, for an interface of the calling thread's namespace. Private counters
//! of drivers are reached by the SIOCETHTOOL ioctl alone, so everything uses it. Layouts are those
//! of linux/ethtool.h.

use std::io;
use std::os::fd::AsRawFd;

pub(in crate::driver) use super::ethtool_request::interface_request;
use validator_core::evidence::preflight::{Driver, Queues};
use validator_core::nic::{self, Feature};

use super::ethtool_request::{Request, strings, text};
use super::features;

const GSET: u32 = 0x01;
const GDRVINFO: u32 = 0x03;
const GLINK: u32 = 0x0a;
const GSTATS: u32 = 0x1d;
const GFLAGS: u32 = 0x25;
const SFLAGS: u32 = 0x26;
const GCHANNELS: u32 = 0x3c;
/// `ETH_SS_STATS`: the names of GSTATS' values.
const NAMES_OF_STATS: u32 = 1;

/// Means of reading and setting a feature.
enum Access {
    /// One bit of GFLAGS and SFLAGS.
    Flag(u32),
    /// A command that gets a value of 0 or 1. The next one sets it.
    Command(u32),
    /// A bit that only its name tells.
    Named,
}

const fn access(feature: Feature) -> Access {
    match feature {
        Feature::TxVlan => Access::Flag(1 << 7),
        Feature::RxVlan => Access::Flag(1 << 8),
        Feature::Gro => Access::Command(0x2b),
        Feature::Gso => Access::Command(0x23),
        Feature::Tso => Access::Command(0x1e),
        Feature::TxChecksum => Access::Command(0x16),
        Feature::Lro => Access::Flag(1 << 15),
        Feature::GroHardware | Feature::RxAll => Access::Named,
    }
}

/// Returns true if `feature` is on.
pub fn feature(interface: &str, feature: Feature) -> io::Result<bool> {
    match access(feature) {
        Access::Flag(bit) => Ok(value(interface, GFLAGS, 0)? & bit != 0),
        Access::Command(get) => Ok(value(interface, get, 0)? != 0),
        Access::Named => Ok(features::read(interface)?
            .iter()
            .any(|bit| Some(bit.name.as_str()) == feature.kernel_name() && bit.on)),
    }
}

/// Sets `feature` on or off. The kernel may take it and yet leave a fixed feature as it was: read
/// it back.
pub fn set_feature(interface: &str, feature: Feature, on: bool) -> io::Result<()> {
    match access(feature) {
        Access::Flag(bit) => {
            let flags = value(interface, GFLAGS, 0)?;
            value(
                interface,
                SFLAGS,
                if on { flags | bit } else { flags & !bit },
            )?;
        }
        Access::Command(get) => {
            value(interface, get + 1, on.into())?;
        }
        Access::Named => features::set(interface, feature.kernel_name().unwrap_or_default(), on)?,
    }
    Ok(())
}

/// True if the driver says that there is a link. `socket` is any one of the interface's namespace.
pub fn has_link(socket: &impl AsRawFd, interface: &str) -> nix::Result<bool> {
    let mut request = Request::new(GLINK, 8);
    request.send_on(socket, interface)?;
    Ok(request.word(4) != 0)
}

/// Name of the driver.
pub fn driver(interface: &str) -> io::Result<String> {
    Ok(identity(interface)?.name)
}

/// Name, version and place of a driver and its device, as the driver reports them.
pub fn identity(interface: &str) -> io::Result<Driver> {
    let info = driver_info(interface)?;
    // struct ethtool_drvinfo: driver, version, firmware and bus of 32 octets each, behind the
    // command.
    let field = |at: usize| text(&info.octets()[at..at + 32]);
    Ok(Driver {
        name: field(4),
        version: field(36),
        firmware: field(68),
        bus: field(100),
    })
}

/// Queues in use.
pub fn queues(interface: &str) -> io::Result<Queues> {
    // struct ethtool_channels: four limits behind the command, then rx, tx, other, combined.
    let mut channels = Request::new(GCHANNELS, 36);
    channels.send(interface)?;
    Ok(read_queues(&channels))
}

/// Drivers count queues that receive and send apart (vmxnet3) or as pairs (virtio_net, igb).
fn read_queues(channels: &Request) -> Queues {
    let combined = channels.word(32);
    Queues {
        rx: channels.word(20) + combined,
        tx: channels.word(24) + combined,
    }
}

/// Queues on which the driver receives, each polled on one CPU at a time; `None` where it does not
/// say, as e1000 and e1000e, or has no such queues. To be asked once a program is attached:
/// virtio_net then adds a pair for each CPU, where its device has them, and may receive on them
/// too.
pub fn receive_queues(interface: &str) -> Option<u32> {
    if !nic::of(&driver(interface).ok()?).polls_queues {
        return None;
    }
    Some(queues(interface).ok()?.rx)
}

/// Speed in bit/s; `None` where the driver does not know it, as without carrier.
pub fn speed(interface: &str) -> io::Result<Option<u64>> {
    // struct ethtool_cmd: the low half of the Mbit/s is at 12, the high half at 28.
    let mut settings = Request::new(GSET, 44);
    settings.send(interface)?;
    let half = |at: usize| {
        u32::from(u16::from_ne_bytes([
            settings.octets()[at],
            settings.octets()[at + 1],
        ]))
    };
    let megabits = half(28) << 16 | half(12);
    // SPEED_UNKNOWN is all ones, of which drivers with 16 bits leave the low half.
    Ok((!matches!(megabits, 0 | 0xffff | u32::MAX)).then(|| u64::from(megabits) * 1_000_000))
}

/// The driver's private counters, as `ethtool -S` shows them, if it has any.
pub fn counters(interface: &str) -> io::Result<Vec<(String, u64)>> {
    match own_counters(interface) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(Vec::new()),
        counters => counters,
    }
}

fn own_counters(interface: &str) -> io::Result<Vec<(String, u64)>> {
    // struct ethtool_drvinfo: n_stats is at 180.
    let count = driver_info(interface)?.word(180) as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    // The kernel writes as many as there are at the second request: a change of the queues in
    // between must find room.
    let room = 2 * count + 4096;
    let (names_found, names) = strings(interface, NAMES_OF_STATS, room)?;
    let mut values = Request::new(GSTATS, 8 + room * 8);
    values.send(interface)?;
    let values_found = values.word(4);
    if names_found != values_found {
        return Err(io::Error::other(format!(
            "{interface} changed its counters from {names_found} to {values_found} while they \
             were read"
        )));
    }
    let values = values.octets()[8..]
        .as_chunks()
        .0
        .iter()
        .map(|octets| u64::from_ne_bytes(*octets));
    Ok(names
        .into_iter()
        .zip(values)
        .take(values_found as usize)
        .collect())
}

fn driver_info(interface: &str) -> io::Result<Request> {
    let mut info = Request::new(GDRVINFO, 196);
    info.send(interface)?;
    Ok(info)
}

/// A struct ethtool_value: command and value.
fn value(interface: &str, command: u32, value: u32) -> io::Result<u32> {
    let mut request = Request::new(command, 8);
    request.set_word(4, value);
    request.send(interface)?;
    Ok(request.word(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_summed_however_a_driver_counts_them() {
        // struct ethtool_channels: the limits, then rx, tx, other, combined.
        let queues = |rx, tx, combined| {
            let mut channels = Request::new(GCHANNELS, 36);
            for (at, count) in [(4, 8), (8, 8), (12, 1), (16, 8)] {
                channels.set_word(at, count);
            }
            for (at, count) in [(20, rx), (24, tx), (28, 1), (32, combined)] {
                channels.set_word(at, count);
            }
            read_queues(&channels)
        };
        let expected = |rx, tx| Queues { rx, tx };
        assert_eq!(queues(2, 1, 0), expected(2, 1), "vmxnet3");
        assert_eq!(queues(0, 0, 4), expected(4, 4), "virtio_net");
        assert_eq!(queues(1, 0, 3), expected(4, 3), "both");
    }
}
