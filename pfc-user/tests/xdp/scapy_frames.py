"""Frames made by scapy, one a line: name, octets in hexadecimal. The stamp is laid out from its description anew."""

import struct

from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.inet import IP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Raw

PEER = "02:00:00:00:00:05"
STATION = Ether(dst="02:00:00:00:00:01", src=PEER)
GROUP = Ether(dst="01:80:c2:00:00:01", src=PEER, type=0x8808)


def stamp(sequence, flow=3, phase=1, run=7, time=0):
    """Magic, run, flow (13 bits) and phase (3), sequence and time of 40 bits, and what makes the ones-complement sum 0xffff."""
    head = struct.pack("!HHH", 0x5632, run, flow << 3 | phase) + sequence.to_bytes(5, "big") + time.to_bytes(5, "big")
    total = sum(struct.unpack("!8H", head))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return head + struct.pack("!H", 0xFFFF - total)


def udp(sequence, more=b"", **fields):
    return UDP(sport=49152, dport=50000) / Raw(stamp(sequence, **fields) + more)


def v4(**fields):
    return IP(src="192.0.2.1", dst="198.51.100.2", tos=3 << 2 | 1, **fields)


def v6():
    return IPv6(src="2001:db8::1", dst="2001:db8::2", tc=3 << 2 | 1)


def pfc(enabled, times):
    enable = {f"c{priority}_enabled": 1 for priority in enabled}
    pause = {f"c{priority}_pause_time": time for priority, time in times.items()}
    return MACControlClassBasedFlowControl(**enable, **pause)


def show(name, frame, cut=None):
    octets = bytes(frame)
    octets += bytes(max(0, 60 - len(octets)))
    print(name, octets[:cut].hex())


show("test-ipv4", STATION / v4() / udp(0))
show("test-ipv4-odd", STATION / v4() / udp(1, b"\x01\x02\x03"))
show("test-ipv4-long", STATION / v4() / udp(2, bytes(range(256)) * 5 + b"odd"))
show("test-ipv4-options", STATION / v4(options=[IPOption_Router_Alert()]) / udp(3))
show("test-ipv4-tag", STATION / Dot1Q(prio=3, vlan=5) / v4() / udp(4))
show("test-ipv4-two-tags", STATION / Dot1AD(prio=3, vlan=5) / Dot1Q(prio=6, vlan=6) / v4() / udp(5))
show("test-ipv6", STATION / v6() / udp(6))
show("test-ipv6-odd-tag", STATION / Dot1Q(prio=3, vlan=5) / v6() / udp(7, b"\xff" * 777))
show("test-checksum-wrong", STATION / v4() / UDP(sport=49152, dport=50000, chksum=0x1234) / Raw(stamp(8)))
show("test-remarked", STATION / IP(src="192.0.2.1", dst="198.51.100.2", tos=4 << 2) / udp(9))
show("pause-xoff", GROUP / MACControlPause(pause_time=0x1234))
show("pause-xon", GROUP / MACControlPause(pause_time=0))
show("pfc-xoff", GROUP / pfc([3], {3: 0xFFFF}))
show("pfc-xon", GROUP / pfc([3], {}))
show("pfc-zero-vector", GROUP / pfc([], {priority: 9 for priority in range(8)}))
show("pfc-all", GROUP / pfc(range(8), {priority: 100 + priority for priority in range(8)}))
show("pfc-truncated", GROUP / pfc([3], {3: 0xFFFF}), cut=30)
show("pause-truncated", GROUP / MACControlPause(pause_time=5), cut=17)
show("wrong-opcode", GROUP / MACControlPause(_op_code=0x0100, pause_time=5))
show("pfc-tagged", Ether(dst="01:80:c2:00:00:01", src=PEER) / Dot1Q(prio=3, vlan=1, type=0x8808) / pfc([3], {3: 1}))
show("pfc-unicast", Ether(dst="02:00:00:00:00:01", src=PEER, type=0x8808) / pfc([3], {3: 1}))
