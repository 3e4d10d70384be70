"""What frames look like where they arrive, as scapy reads them."""

import zlib

from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import ARP, GRE, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN

from .ports import DESTINATION, PORT, SOURCE, addressed, bare, expect, flow, pause, pauses, pfc


ROUTING = IPv6ExtHdrSegmentRouting


def whole(what, frame, length):
    """The frame without its FCS, which has to be right."""
    octets = bytes(frame)
    fcs = zlib.crc32(octets[:-4]).to_bytes(4, "little")
    right = (len(octets), octets[-4:]) == (length, fcs)
    if not right:
        expect(f"{what}: {length} octets with their FCS", False, octets.hex())
    return octets[:-4]


def is_summed_gre(layer):
    return isinstance(layer, GRE) and layer.chksum_present


def again(octets):
    """The frame with every checksum in it computed by scapy."""
    frame = Ether(octets)
    layer = frame
    while layer:
        if isinstance(layer, (IP, UDP, TCP, ICMP)) or is_summed_gre(layer):
            del layer.chksum
        elif isinstance(layer, ICMPv6EchoReply):
            del layer.cksum
        layer = layer.payload
    return bytes(frame)


def of_flow(frames):
    return [frame for frame in frames if UDP in frame and frame[UDP].dport == PORT]


def octets(ports):
    """Fields that walk, and a capture in the format pcap."""
    config = ports.config()
    made = flow(config, "f", 200)
    source = made.packet[0].src.increment
    source.start, source.step, source.count = "02:00:00:00:01:00", "00:00:00:00:00:01", 5
    dscp = made.packet[1].priority.dscp
    dscp.phb.values, dscp.ecn.value = [3, 4, 48], 1
    made.duration.fixed_packets.packets, made.rate.pps = 30, 1000
    frames = of_flow(ports.captured(config))
    expect("30 frames are captured", len(frames) == 30, len(frames))
    for number, frame in enumerate(frames):
        kept = whole(f"frame {number}", frame, 200)
        wanted = {
            "source": (frame.src, f"02:00:00:00:01:{number % 5:02x}"),
            "traffic class": (frame[IP].tos, [3, 4, 48][number % 3] << 2 | 1),
            "checksums": (kept, again(kept)),
        }
        for what, (found, expected) in wanted.items():
            if found != expected:
                expect(f"frame {number}: {what}", False, f"{found}, expected {expected}")


def pcapng(ports):
    """Lengths that walk, and a capture in the format pcapng."""
    config = ports.config()
    config.captures[0].format = "pcapng"
    made = flow(config, "f", 64)
    size = made.size.increment
    size.start, size.end, size.step = 64, 1514, 145
    made.duration.fixed_packets.packets, made.rate.pps = 22, 1000
    frames = of_flow(ports.captured(config))
    lengths = [frame.wirelen for frame in frames]
    expect("pcapng: lengths", lengths == list(range(64, 1515, 145)) * 2, lengths)
    times = [float(frame.time) for frame in frames]
    expect("pcapng: in the order of arrival", times == sorted(times), times)
    for number, frame in enumerate(frames):
        kept = whole(f"pcapng: frame {number}", frame, frame.wirelen)
        if kept != again(kept):
            expect(f"pcapng: frame {number}: checksums", False, kept.hex())


def stacks(ports):
    """Header stacks one by one, and every checksum in them."""
    for what, stack, reads in STACKS:
        config = ports.config()
        made = bare(config, "f", 200)
        stack(made.packet)
        made.duration.fixed_packets.packets, made.rate.pps = 5, 1000
        # The host's own multicasts, where it sends any, have another source.
        frames = [frame for frame in ports.captured(config) if frame.src == "02:00:00:00:00:01"]
        found = [reads(frame) for frame in frames]
        expect(f"{what}: fields", len(found) == 5 and all(found), [bytes(f).hex() for f in frames])
        kept = [whole(what, frame, 200) for frame in frames]
        wrong = [frame.hex() for frame in kept if again(frame) != frame]
        expect(f"{what}: checksums", not wrong, wrong)


def shortest(ports):
    """Frames of 64 octets that have no room for a whole stamp are counted, and right, all the same."""
    for what, stack in (("TCP", tcp), ("UDP with a VLAN tag", tagged)):
        config = ports.config()
        made = bare(config, "f", 64)
        stack(made.packet)
        made.duration.fixed_packets.packets, made.rate.pps = 1000, 5000
        frames = [frame for frame in ports.captured(config) if frame.src == SOURCE]
        kept = [whole(what, frame, 64) for frame in frames]
        wrong = [frame.hex() for frame in kept if again(frame) != frame]
        expect(f"64 octets, {what}: checksums", not wrong, wrong[:3])
        counted = ports.metrics()["f"]
        told = (len(frames), counted.frames_tx, counted.frames_rx, counted.loss)
        expect(f"64 octets, {what}: counts", told == (1000, 1000, 1000, 0), told)
        ports.exact(f"64 octets, {what}")


def payloads(ports):
    """What stands between headers and stamp, and the checksums over it."""
    words = [number.to_bytes(2, "big") for number in range(0x10000)]
    for asked, begins in (
        ("increment_byte", bytes(range(256)) * 2),
        ("decrement_byte", bytes(reversed(range(256))) * 2),
        ("increment_word", b"".join(words[:300])),
        ("decrement_word", b"".join(words[:-300:-1])),
        ({"pattern": "dead0f"}, bytes.fromhex("dead0f") * 200),
        ({"pattern": "dead0f", "repeat": False}, bytes.fromhex("dead0f").ljust(500, b"\0")),
    ):
        config = ports.config()
        # Behind headers of 42 octets, and before the stamp of 18 and the FCS.
        made = flow(config, "f", 64 + 400)
        if isinstance(asked, dict):
            made.payload.fixed.set(**asked)
        else:
            made.payload.choice = asked
        made.duration.fixed_packets.packets, made.rate.pps = 5, 1000
        kept = [whole(str(asked), frame, 464) for frame in of_flow(ports.captured(config))]
        right = [frame[42:442] == begins[:400] and again(frame) == frame for frame in kept]
        expect(f"payload {asked}", right == [True] * 5, [frame.hex() for frame in kept])
        counted = ports.metrics()["f"]
        expect(f"payload {asked}: all are counted", counted.frames_rx == 5, counted)


def bad_checksums(ports):
    """Checksums that are asked to be wrong, or to be a value, are so; the others are right."""
    for what, asked, layer, wanted in (
        ("bad checksum of IPv4", lambda ip, udp: bad(ip.header_checksum), IP, None),
        ("bad checksum of UDP", lambda ip, udp: bad(udp.checksum), UDP, None),
        ("checksum 0x1234 of UDP", lambda ip, udp: given(udp.checksum, 0x1234), UDP, 0x1234),
    ):
        config = ports.config()
        made = flow(config, "f", 200)
        asked(*made.packet[1:3])
        made.duration.fixed_packets.packets, made.rate.pps = 5, 1000
        frames = [Ether(whole(what, frame, 200)) for frame in of_flow(ports.captured(config))]
        right = [Ether(again(bytes(frame))) for frame in frames]
        found = [(frame[layer].chksum, good[layer].chksum) for frame, good in zip(frames, right)]
        as_asked = all(one != good and wanted in (None, one) for one, good in found)
        expect(what, len(found) == 5 and as_asked, found)
        other = UDP if layer is IP else IP
        found = [(frame[other].chksum, good[other].chksum) for frame, good in zip(frames, right)]
        expect(f"{what}: the other is right", all(one == good for one, good in found), found)
        counted = ports.metrics()["f"]
        expect(f"{what}: all are counted", counted.frames_rx == 5 and not ports.faults(), counted)


def bad(checksum):
    checksum.generated = checksum.BAD


def given(checksum, value):
    checksum.custom = value


def ipv4(ip, net="192.0.2"):
    ip.src.value, ip.dst.value, ip.time_to_live.value = f"{net}.1", f"{net}.2", 9


def tagged(packet):
    ethernet, vlan, ip, udp = packet.ethernet().vlan().ipv4().udp()
    addressed(ethernet)
    vlan.priority.value, vlan.id.value = 5, 100
    ipv4(ip)
    udp.src_port.value, udp.dst_port.value = PORT - 1, PORT


def ipv6(packet):
    ethernet, ip, udp = packet.ethernet().ipv6().udp()
    addressed(ethernet)
    ip.src.value, ip.dst.value = "2001:db8::1", "2001:db8::2"
    ip.traffic_class.value, ip.flow_label.value, ip.hop_limit.value = 0x60, 0x12345, 9
    udp.src_port.value, udp.dst_port.value = PORT - 1, PORT


def segments(packet):
    ethernet, ip, extension, udp = packet.ethernet().ipv6().ipv6_extension_header().udp()
    addressed(ethernet)
    ip.src.value, ip.dst.value = "2001:db8::1", "2001:db8::2"
    routing = extension.routing.segment_routing
    routing.tag.value, routing.flags.alert.value = 7, 1
    for address in ("2001:db8::9", "2001:db8::2"):
        routing.segment_list.segment()[-1].segment.value = address
    udp.src_port.value, udp.dst_port.value = PORT - 1, PORT


def tcp(packet):
    ethernet, ip, segment = packet.ethernet().ipv4().tcp()
    addressed(ethernet)
    ipv4(ip)
    segment.src_port.value, segment.dst_port.value = PORT - 1, PORT
    segment.seq_num.value, segment.ctl_syn.value, segment.window.value = 7, 1, 512


def vxlan(packet):
    ethernet, ip, udp, tunnel, inner, inner_ip, inner_udp = (
        packet.ethernet().ipv4().udp().vxlan().ethernet().ipv4().udp())
    addressed(ethernet)
    ipv4(ip)
    udp.src_port.value, udp.dst_port.value = PORT - 1, 4789
    tunnel.vni.value = 1000
    inner.src.value, inner.dst.value = "02:00:00:00:01:01", "02:00:00:00:01:02"
    ipv4(inner_ip, "198.51.100")
    inner_udp.src_port.value, inner_udp.dst_port.value = PORT - 1, PORT


def arp(packet):
    ethernet, made = packet.ethernet().arp()
    addressed(ethernet)
    made.operation.value = 2
    made.sender_hardware_addr.value, made.sender_protocol_addr.value = SOURCE, "192.0.2.1"
    made.target_hardware_addr.value, made.target_protocol_addr.value = DESTINATION, "192.0.2.2"


def echo(made):
    made.identifier.value, made.sequence_number.value = 0x1234, 0x5678


def icmp(packet):
    ethernet, ip, message = packet.ethernet().ipv4().icmp()
    addressed(ethernet)
    ipv4(ip)
    echo(message.echo)


def icmpv6(packet):
    ethernet, ip, message = packet.ethernet().ipv6().icmpv6()
    addressed(ethernet)
    ip.src.value, ip.dst.value = "2001:db8::1", "2001:db8::2"
    message.echo.type.value = 129
    echo(message.echo)


def gre(packet):
    ethernet, ip, tunnel, inner, udp = packet.ethernet().ipv4().gre().ipv6().udp()
    addressed(ethernet)
    ipv4(ip)
    inner.src.value, inner.dst.value = "2001:db8::1", "2001:db8::2"
    udp.src_port.value, udp.dst_port.value = PORT - 1, PORT
    return tunnel


def summed_gre(packet):
    gre(packet).checksum_present.value = 1


def labels(packet):
    ethernet, outer, inner, ip, udp = packet.ethernet().mpls().mpls().ipv4().udp()
    addressed(ethernet)
    outer.label.value, outer.traffic_class.value, outer.time_to_live.value = 0x12345, 5, 9
    inner.label.value = 99
    ipv4(ip)
    udp.src_port.value, udp.dst_port.value = PORT - 1, PORT


def is_in_gre(frame, octets):
    """UDP over IPv6 behind a GRE header of so many octets."""
    return ((frame[IP].proto, frame[IP].len, frame[GRE].proto) == (47, 182, 0x86dd)
            and frame[IPv6].plen == 182 - 20 - octets - 40
            and (frame[IPv6].dst, frame[UDP].dport) == ("2001:db8::2", PORT))


CUSTOM = "88b5" "000102030405060708090a0b0c0d0e0f"


def custom(packet):
    """All octets behind the addresses, as of a protocol that nothing here knows."""
    addresses, octets = packet.custom().custom()
    addresses.bytes = (DESTINATION + SOURCE).replace(":", "")
    octets.bytes = CUSTOM


def around_custom(packet):
    """A tag as octets, before a header with a checksum."""
    ethernet, tag, ip, udp = packet.ethernet().custom().ipv4().udp()
    addressed(ethernet)
    ethernet.ether_type.value = 0x8100
    tag.bytes = "60c80800"
    ipv4(ip)
    udp.src_port.value, udp.dst_port.value = PORT - 1, PORT


STACKS = (
    ("custom headers alone", custom, lambda frame: bytes(frame)[12:30].hex() == CUSTOM),
    ("UDP over IPv4 behind a custom header", around_custom, lambda frame: (
        (frame[Dot1Q].prio, frame[Dot1Q].vlan, frame[Dot1Q].type) == (3, 200, 0x800)
        and (frame[IP].ttl, frame[IP].len, frame[UDP].dport) == (9, 178, PORT))),
    ("UDP over IPv4 with a VLAN tag", tagged, lambda frame: (
        (frame[Dot1Q].prio, frame[Dot1Q].vlan) == (5, 100)
        and (frame[IP].ttl, frame[IP].len, frame[UDP].dport) == (9, 178, PORT))),
    ("UDP over IPv6", ipv6, lambda frame: (
        (frame[IPv6].tc, frame[IPv6].fl, frame[IPv6].hlim) == (0x60, 0x12345, 9)
        and (frame[IPv6].dst, frame[UDP].len) == ("2001:db8::2", 142))),
    ("UDP behind a segment routing header", segments, lambda frame: (
        (frame[IPv6].nh, frame[IPv6].plen) == (43, 142)
        and (frame[ROUTING].nh, frame[ROUTING].len, frame[ROUTING].segleft) == (17, 4, 2)
        and (frame[ROUTING].lastentry, frame[ROUTING].tag, frame[ROUTING].alert) == (1, 7, 1)
        and frame[ROUTING].addresses == ["2001:db8::9", "2001:db8::2"]
        and (frame[UDP].dport, frame[UDP].len) == (PORT, 102))),
    ("TCP over IPv4", tcp, lambda frame: (
        (frame[TCP].seq, frame[TCP].flags, frame[TCP].window) == (7, "S", 512)
        and (frame[IP].len, frame[TCP].dport) == (182, PORT))),
    ("UDP in VXLAN", vxlan, lambda frame: (
        (frame[VXLAN].vni, frame[VXLAN].flags) == (1000, 8)
        and frame[VXLAN][Ether].dst == "02:00:00:00:01:02"
        and (frame[VXLAN][IP].dst, frame[VXLAN][UDP].dport) == ("198.51.100.2", PORT))),
    ("ARP", arp, lambda frame: (
        (frame.type, frame[ARP].hwtype, frame[ARP].ptype) == (0x806, 1, 0x800)
        and (frame[ARP].hwlen, frame[ARP].plen, frame[ARP].op) == (6, 4, 2)
        and (frame[ARP].hwsrc, frame[ARP].psrc) == (SOURCE, "192.0.2.1")
        and (frame[ARP].hwdst, frame[ARP].pdst) == (DESTINATION, "192.0.2.2"))),
    ("ICMP", icmp, lambda frame: (
        (frame[IP].proto, frame[IP].len, frame[ICMP].type, frame[ICMP].code) == (1, 182, 8, 0)
        and (frame[ICMP].id, frame[ICMP].seq) == (0x1234, 0x5678))),
    ("ICMPv6", icmpv6, lambda frame: (
        (frame[IPv6].nh, frame[IPv6].plen, frame[ICMPv6EchoReply].code) == (58, 142, 0)
        and (frame[ICMPv6EchoReply].id, frame[ICMPv6EchoReply].seq) == (0x1234, 0x5678))),
    ("UDP over IPv6 in GRE", gre, lambda frame: (
        (frame[GRE].chksum_present, frame[GRE].version) == (0, 0) and is_in_gre(frame, 4))),
    ("UDP over IPv6 in GRE with a checksum", summed_gre, lambda frame: (
        (frame[GRE].chksum_present, frame[GRE].version) == (1, 0) and is_in_gre(frame, 8))),
    ("UDP over IPv4 behind two labels of MPLS", labels, lambda frame: (
        (frame.type, frame[MPLS].label, frame[MPLS].cos) == (0x8847, 0x12345, 5)
        and (frame[MPLS].s, frame[MPLS].ttl) == (0, 9)
        and (frame[MPLS:2].label, frame[MPLS:2].s, frame[MPLS:2].ttl) == (99, 1, 64)
        and (frame[IP].ttl, frame[IP].len, frame[UDP].dport) == (9, 174, PORT))),
)


def pause_frames(ports):
    address = "0180c2000001" "020000000002" "8808"
    times = "1234" "0000" "0000" "5678" "0000" "0000" "0000" "ffff"
    for what, headers, body, counted in (
        ("PFC", lambda made: pfc(made, 0x81, {0: 0x1234, 3: 0x5678, 7: 0xffff}),
         "01010081" + times, [0, 10, 0, 0, 0, 0, 0, 0, 10]),
        ("PAUSE", lambda made: pause(made, 0xfedc), "0001fedc", [10] + [0] * 8),
    ):
        config = ports.config()
        made = headers(pauses(config, pps=100))
        made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "tx", ["rx"]
        made.duration.fixed_packets.packets, made.metrics.enable = 10, True
        ports.api.set_config(config)
        before = ports.own_pauses("rx")
        frames = [frame for frame in ports.captured(config) if frame.type == 0x8808]
        found = [whole(what, frame, 64) for frame in frames]
        right = found == [bytes.fromhex(address + body).ljust(60, b"\0")] * 10
        expect(f"{what} frames octet by octet", right, [frame.hex() for frame in found[:1]])
        own = [now - then for now, then in zip(ports.own_pauses("rx"), before)]
        expect(f"{what} frames are counted where they arrive", own == counted, own)
