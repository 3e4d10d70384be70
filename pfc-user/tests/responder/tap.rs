//! On a tap, behind which a virtual machine may be. Its frames take another path through the kernel
//! than a veth's, and those larger than a page yet another one.

use std::fs::File;
use std::io::Write;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use pfc_ebpf::abi::responder::Counters;
use validator::driver::bpf::XdpMode;
use validator::driver::bpf::responder::Responder;
use validator::driver::kernel::netns::Namespace;

use crate::common::{need_root, skip};
use crate::responder::QUEUE_PAIR;
use crate::responder::attach::records;
use crate::roce_frames::Request;

const DEVICE: &str = "/dev/net/tun";

/// Opens a tap of that name in the calling thread's network namespace: frames written to it arrive
/// there.
fn open(name: &str) -> File {
    let file = File::options().read(true).write(true).open(DEVICE).unwrap();
    // SAFETY: plain old data, for which zero is a valid value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the kernel reads and writes an `ifreq`.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    file
}

#[test]
fn root_requests_of_a_virtual_machine_are_dropped_and_recorded() {
    const TEST: &str = "root_requests_of_a_virtual_machine_are_dropped_and_recorded";
    if !need_root(TEST) {
        return;
    }
    if !Path::new(DEVICE).exists() {
        return skip(
            TEST,
            "needs /dev/net/tun, which the kernel's module tun makes",
        );
    }
    for (mode, word) in [(XdpMode::Auto, "driver"), (XdpMode::Skb, "skb")] {
        let namespace = Namespace::new().unwrap();
        let (mut tap, mut responder) = namespace
            .run(|| {
                let tap = open("t0");
                let ip = Command::new("ip")
                    .args(["link", "set", "dev", "t0", "mtu", "4500", "up"])
                    .status()
                    .unwrap();
                assert!(ip.success());
                (tap, Responder::attach("t0", mode).unwrap())
            })
            .unwrap();
        assert_eq!(responder.mode(), word);
        responder.configure(QUEUE_PAIR).unwrap();
        let lengths = [0, 1024, 2048, 3000, 4096];
        let frames = lengths.map(|length| {
            Request {
                payload: vec![0x55; length],
                ..Request::new(QUEUE_PAIR)
            }
            .octets()
        });
        for frame in &frames {
            tap.write_all(&Request::new(QUEUE_PAIR + 1).octets())
                .unwrap();
            tap.write_all(frame).unwrap();
        }
        let records = records(&mut responder, frames.len());
        for (record, frame) in records.iter().zip(&frames) {
            assert_eq!(record.length as usize, frame.len(), "{word}");
            assert_eq!(record.octets, frame[..frame.len().min(256)], "{word}");
        }
        let counters = responder.counters().unwrap();
        assert_eq!(
            counters,
            Counters {
                dropped: frames.len() as u64,
                lost: 0,
                other: frames.len() as u64,
                passed: 0
            },
            "{word}"
        );
    }
}
