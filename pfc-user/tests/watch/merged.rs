//! Packets that offloads merge count as the frames that they are made of.

use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv6TClass, UdpGsoSegment};
use nix::sys::socket::{MsgFlags, recv, send, setsockopt};
use pfc_ebpf::abi::Trust;
use pfc_ebpf::abi::watch::{Counters, Untold, Volume};
use pfc_ebpf::wire::Malformed;
use validator::driver::bpf::XdpMode;
use validator::driver::bpf::watch::{Direction, Point, Settings, Watch};

use crate::common::{need_root, need_tool, skip};
use crate::watch::lab::{Lab, PATIENCE};
use crate::watch::loss::{capture, disturbed};
use crate::watch::program::scapy;
use crate::watch::settings;
use crate::watch::tunnels::{DSCP, PAYLOAD, TUNNELS, VXLAN};

#[test]
fn root_what_the_stack_holds_as_one_counts_as_the_frames_that_it_is_made_of() {
    const NAME: &str = "root_what_the_stack_holds_as_one_counts_as_the_frames_that_it_is_made_of";
    if !need_root(NAME) || !need_tool(NAME, "scapy") {
        return;
    }
    let frames = scapy();
    // Octets of payload and of headers: Ethernet, IPv4 and UDP; Ethernet, IPv6 and TCP; the first
    // again, with a tag; then all up to the innermost TCP.
    for (name, payload, headers) in [
        ("udp-long", 3000, 42),
        ("tcp6-long", 3000, 74),
        ("udp-long-tagged", 3000, 46),
        ("vxlan-long", 3000, 104),
        ("geneve-long", 3000, 144),
        ("gre-long", 3000, 90),
        ("gre-tap-long", 3000, 92),
        ("ipip-long", 3000, 74),
        ("srv6-long", 3000, 170),
        ("options-long", 3000, 90),
    ] {
        let watch = Watch::load(Point::Tcx(Direction::Egress), &settings(Trust::Dscp)).unwrap();
        let mut sum = Volume::default();
        for (gso_size, count) in [(1000, 3), (1400, 3), (1600, 2), (1, 3000), (3000, 1)] {
            for gso_segs in [0, count as u32] {
                watch
                    .test_run_merged(&frames[name], gso_size, gso_segs)
                    .unwrap();
                sum.frames += count;
                sum.octets += payload + count * headers;
                let counters = watch.read().unwrap().counters;
                assert_eq!(counters.total, sum, "{name} by {gso_size}");
                assert_eq!(counters.by_dscp[26], sum);
                assert_eq!(counters.untold, [0; 2]);
            }
        }
    }
}

#[test]
fn root_what_a_merged_packet_is_made_of_is_told_or_has_a_reason() {
    const NAME: &str = "root_what_a_merged_packet_is_made_of_is_told_or_has_a_reason";
    if !need_root(NAME) || !need_tool(NAME, "scapy") {
        return;
    }
    let frames = scapy();
    let watch = Watch::load(Point::Tcx(Direction::Egress), &settings(Trust::Dscp)).unwrap();
    let mut sum = Volume::default();
    let mut untold = [0; Untold::COUNT];
    for (name, gso_segs, count, reason) in [
        // Behind headers that are not read.
        ("mpls-long", 3, 3, Untold::Headers),
        ("mpls-long", 0, 1, Untold::Number),
        // Headers that are read do not fit the number: there are others behind them.
        ("udp-long", 2, 2, Untold::Headers),
        ("udp-long", 4, 4, Untold::Headers),
    ] {
        watch
            .test_run_merged(&frames[name], 1000, gso_segs)
            .unwrap();
        sum.frames += count;
        sum.octets += frames[name].len() as u64;
        untold[reason as usize] += 1;
        let counters = watch.read().unwrap().counters;
        assert_eq!((counters.total, counters.untold), (sum, untold), "{name}");
        assert_eq!(counters.by_dscp[26], sum);
    }
}

#[test]
fn root_big_tcp_counts_as_the_frames_that_leave() {
    const NAME: &str = "root_big_tcp_counts_as_the_frames_that_leave";
    const NETWORK: usize = 14;
    const BEHIND_IPV6: usize = 54;
    if !need_root(NAME) || !need_tool(NAME, "scapy") {
        return;
    }
    // The stack puts a hop-by-hop header with the jumbo payload option (RFC 2675) before TCP.
    let frames = scapy();
    let mut ipv6 = frames["tcp6-long"].clone();
    let jumbo = [6, 0, 0xc2, 4, 0, 1, 0, 0];
    ipv6.splice(BEHIND_IPV6..BEHIND_IPV6, jumbo);
    ipv6[NETWORK + 4..NETWORK + 7].copy_from_slice(&[0, 0, 0]);
    for (frame, headers) in [(&ipv6, 74), (&frames["tcp4-big-long"], 54)] {
        let watch = Watch::load(Point::Tcx(Direction::Egress), &settings(Trust::Dscp)).unwrap();
        watch.test_run_merged(frame, 1000, 0).unwrap();
        let volume = Volume {
            frames: 3,
            octets: 3000 + 3 * headers,
        };
        let counters = watch.read().unwrap().counters;
        assert_eq!((counters.total, counters.by_dscp[26]), (volume, volume));
        assert_eq!((counters.hidden, counters.untold), ([0; 3], [0; 2]));
    }

    // A frame by itself is no BIG TCP: without a length its header is malformed.
    let watch = Watch::load(Point::Tcx(Direction::Egress), &settings(Trust::Dscp)).unwrap();
    watch.test_run(&frames["tcp4-big-long"], 1).unwrap();
    let malformed = watch.read().unwrap().counters.malformed;
    assert_eq!(malformed[Malformed::Ipv4Truncated as usize], 1);
}

/// Frames that are sent at once.
const BATCH: u32 = 16;

/// Lets what the kernel merges at an interface wait for more for so long, though nothing comes.
fn hold_merged(lab: &Lab, interface: &str, nanoseconds: u32) {
    // /sys shows the interfaces of the namespace in which it was mounted; the mount ends with the
    // command.
    let script = format!(
        "mount -t sysfs sysfs /sys && \
         echo {nanoseconds} > /sys/class/net/{interface}/gro_flush_timeout"
    );
    let run = || {
        Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .output()
    };
    let output = lab.tester.run(run).unwrap().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Makes a device of VXLAN on t0, without which the kernel merges none; false where it knows none.
fn listens_to_vxlan(lab: &Lab, more: &str) -> bool {
    let device = format!("link add vx type vxlan id 7 dstport 4789 local 192.0.2.1 dev t0 {more}");
    let run = || Command::new("ip").args(device.trim().split(' ')).output();
    let output = lab.tester.run(run).unwrap().unwrap();
    if output.status.success() {
        lab.ip(&lab.tester, "link set vx up");
    }
    output.status.success()
}

/// Frames of [`DSCP`] since `before`.
fn since(before: &Counters, now: &Counters) -> Volume {
    let of = |counters: &Counters| counters.by_dscp[usize::from(DSCP)];
    Volume {
        frames: of(now).frames - of(before).frames,
        octets: of(now).octets - of(before).octets,
    }
}

/// At XDP each frame passes by itself, at tc merged with others: both count alike.
#[test]
fn root_frames_that_the_stack_merges_in_tunnels_count_as_those_that_came() {
    const NAME: &str = "root_frames_that_the_stack_merges_in_tunnels_count_as_those_that_came";
    const HELD: u32 = 10_000_000;
    if !need_root(NAME) || !need_tool(NAME, "ethtool") {
        return;
    }
    let lab = Lab::new();
    let attach = |point| {
        let settings = Settings {
            flows: 1,
            ..settings(Trust::Dscp)
        };
        let attach = || Watch::attach("t0", point, &settings).unwrap();
        lab.tester.run(attach).unwrap()
    };
    let alone = attach(Point::Xdp(XdpMode::Driver));
    let merged = attach(Point::tc(Direction::Ingress));
    lab.tool(&lab.tester, "ethtool", "-K t0 gro on");
    hold_merged(&lab, "t0", HELD);
    let has_vxlan = listens_to_vxlan(&lab, "");
    let device = lab.device_port();
    for (name, make) in TUNNELS {
        if name == VXLAN && !has_vxlan {
            skip(NAME, "this kernel has no VXLAN");
            continue;
        }
        let (begin, mut sequence) = (Instant::now(), 1);
        loop {
            let frames: Vec<_> = (0..BATCH)
                .map(|place| make(sequence + place * PAYLOAD))
                .collect();
            sequence += BATCH * PAYLOAD;
            let octets = frames.iter().map(|frame| frame.len() as u64).sum();
            let sent = Volume {
                frames: BATCH.into(),
                octets,
            };
            let read = |watch: &Watch| watch.read().unwrap().counters;
            let before = [&alone, &merged].map(read);
            let sorted_by_itself = merged.sketch().unwrap().unsorted;
            let outcome = device
                .send_batch(frames.iter().map(|frame| &**frame))
                .unwrap();
            assert_eq!(outcome.left, frames.len());
            while since(&before[1], &read(&merged)).frames < sent.frames {
                assert!(
                    begin.elapsed() < PATIENCE,
                    "{name}: {:?}",
                    read(&merged).total
                );
            }
            let now = [&alone, &merged].map(read);
            for (before, now) in before.iter().zip(&now) {
                assert_eq!(since(before, now), sent, "{name}");
                assert_eq!(
                    (now.untold, now.malformed),
                    ([0; 2], before.malformed),
                    "{name}"
                );
            }
            if merged.sketch().unwrap().unsorted > sorted_by_itself {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "{name}: nothing is merged");
        }
    }
}

/// Packets that are cut behind tc egress come there as one, and count as the frames that arrive at
/// the other end.
#[test]
fn root_frames_that_the_stack_cuts_in_tunnels_count_as_those_that_leave() {
    const NAME: &str = "root_frames_that_the_stack_cuts_in_tunnels_count_as_those_that_leave";
    const GSO_SIZE: i32 = 1000;
    const SENT: usize = 10_500;
    const FRAMES: u64 = 11;
    if !need_root(NAME) || !need_tool(NAME, "ethtool") {
        return;
    }
    let lab = Lab::new();
    let ip = |arguments: &str| lab.ip(&lab.tester, arguments);
    // The port is to cut packets before they leave. Without checksums of its own it refuses SRv6.
    let offloads = [
        "tx on",
        "tx-udp-segmentation off",
        "tx-udp_tnl-segmentation off",
        "tx-udp_tnl-csum-segmentation off",
        "tx-ipxip6-segmentation off",
    ];
    let arguments = format!("-K t0 {}", offloads.join(" "));
    lab.tool(&lab.tester, "ethtool", &arguments);
    lab.tool(&lab.tester, "sysctl", "-w net.ipv6.conf.t0.disable_ipv6=0");
    ip("-6 address add fd00::1/64 dev t0 nodad");
    ip("-6 neighbour add fd00::2 lladdr 02:00:00:00:00:02 dev t0");
    ip("-6 route add fd01::/64 encap seg6 mode encap segs fd00::2,fd02::2 dev t0");
    ip("-6 route add fd03::/64 encap seg6 mode inline segs fd00::2,fd02::2 dev t0");
    assert!(listens_to_vxlan(&lab, "remote 192.0.2.2 tos inherit"));
    ip("-6 address add fd04::1/64 dev vx nodad");
    ip("-6 neighbour add fd04::2 lladdr 02:00:00:00:00:09 dev vx");
    let settings = Settings {
        flows: 1,
        ..settings(Trust::Dscp)
    };
    let attach = || Watch::attach("t0", Point::tc(Direction::Egress), &settings).unwrap();
    let watch = lab.tester.run(attach).unwrap();
    let device = lab.device.run(|| capture("d0")).unwrap();
    for (name, to) in [
        ("no tunnel", "fd00::2"),
        ("VXLAN", "fd04::2"),
        ("SRv6 of IPv6", "fd01::2"),
        ("a routing header of SRv6", "fd03::2"),
    ] {
        let socket = || UdpSocket::bind("[::]:0").unwrap();
        let socket = lab.tester.run(socket).unwrap();
        setsockopt(&socket, Ipv6TClass, &(i32::from(DSCP) << 2)).unwrap();
        setsockopt(&socket, UdpGsoSegment, &GSO_SIZE).unwrap();
        let (before, unsorted) = (
            watch.read().unwrap().counters,
            watch.sketch().unwrap().unsorted,
        );
        let sent = socket.send_to(&[0; SENT], (to, 9));
        assert_eq!(sent.map_err(|error| error.to_string()), Ok(SENT), "{name}");
        let counted = since(&before, &watch.read().unwrap().counters);
        assert_eq!(
            watch.sketch().unwrap().unsorted,
            unsorted + FRAMES,
            "{name}: merged"
        );
        let (begin, mut came) = (Instant::now(), Volume::default());
        while came.frames < FRAMES {
            assert!(
                begin.elapsed() < PATIENCE,
                "{name}: {came:?} of {counted:?}"
            );
            let mut frame = [0; 2048];
            if let Ok(length) = recv(device.as_raw_fd(), &mut frame, MsgFlags::empty())
                && is_of_test(&frame)
            {
                came.frames += 1;
                came.octets += length as u64;
            }
        }
        assert_eq!(counted, came, "{name}");
        assert_eq!(watch.read().unwrap().counters.untold, [0; 2], "{name}");
    }
}

/// True of an IP packet with [`DSCP`].
fn is_of_test(frame: &[u8]) -> bool {
    let traffic_class = match frame[14] >> 4 {
        4 => frame[15],
        _ => frame[14] << 4 | frame[15] >> 4,
    };
    matches!(frame[12..14], [0x08, 0x00] | [0x86, 0xdd]) && traffic_class >> 2 == DSCP
}

/// A socket on t0 for packets that the stack is to cut, behind a `struct virtio_net_hdr`.
fn as_a_virtual_machine(lab: &Lab) -> OwnedFd {
    let fd = lab.tester.run(|| capture("t0")).unwrap();
    let on: libc::c_int = 1;
    // SAFETY: a value of the length given.
    Errno::result(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_VNET_HDR,
            (&raw const on).cast(),
            size_of_val(&on) as u32,
        )
    })
    .unwrap();
    fd
}

#[test]
fn root_merged_packets_of_an_unknown_number_allow_no_verdict_of_loss() {
    const NAME: &str = "root_merged_packets_of_an_unknown_number_allow_no_verdict_of_loss";
    /// `VIRTIO_NET_HDR_F_NEEDS_CSUM`, `VIRTIO_NET_HDR_GSO_TCPV4`.
    const FLAGS: [u8; 2] = [1, 1];
    /// Octets before the innermost TCP, and from there to its checksum.
    const CHECKSUM: [u16; 2] = [62, 16];
    if !need_root(NAME) || !need_tool(NAME, "scapy") {
        return;
    }
    let numbers = [CHECKSUM[0] + 20, 1000, CHECKSUM[0], CHECKSUM[1]].map(u16::to_ne_bytes);
    let packet = [&FLAGS[..], &numbers.concat(), &scapy()["mpls-long"]].concat();
    let stop = AtomicBool::new(false);
    let (begin, stop) = (Instant::now(), &stop);
    let reason = thread::scope(|scope| {
        let reason = disturbed(Some("window-closed"), |lab| {
            let socket = as_a_virtual_machine(lab);
            scope.spawn(move || {
                while !stop.load(Ordering::Acquire) && begin.elapsed() < PATIENCE {
                    // The kernel cannot cut it either, and refuses it after it was counted.
                    let _ = send(socket.as_raw_fd(), &packet, MsgFlags::empty());
                }
            });
        });
        stop.store(true, Ordering::Release);
        reason
    });
    let reason = reason.as_str().unwrap();
    let words = "packets at t0 were merged from an unknown number of frames";
    assert!(reason.ends_with(words), "{reason}");
}
