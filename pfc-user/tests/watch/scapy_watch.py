"""Frames for `watch`, one a line: name and octets in hexadecimal. Layouts, lengths and checksums are scapy's."""

import logging

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.all import Dot1AD, Dot1Q, Ether, IP, IPv6, Raw, TCP, UDP, raw
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.contrib.roce import BTH

ETHER = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")
UNICAST = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01", type=0x8808)
CONTROL = Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:00:01")


def ipv4(dscp, ecn=0):
    return IP(src="192.0.2.1", dst="192.0.2.2", tos=dscp << 2 | ecn)


def ipv6(dscp, ecn=0):
    return IPv6(src="2001:db8::1", dst="2001:db8::2", tc=dscp << 2 | ecn)


def roce(opcode, payload=64):
    return UDP(sport=0xC000, dport=4791) / BTH(opcode=opcode, dqpn=17, psn=5) / Raw(bytes(payload))


FRAMES = {
    "udp-dscp-26-ect0": ETHER / ipv4(26, 2) / UDP(dport=5) / Raw(bytes(20)),
    "tcp6-dscp-46-ect1": ETHER / ipv6(46, 1) / TCP(dport=80) / Raw(bytes(20)),
    "arp-like": ETHER / Raw(bytes(46)),
    "tag-pcp-5": ETHER / Dot1Q(prio=5, vlan=7) / ipv4(10) / UDP(dport=5) / Raw(bytes(20)),
    "tags-pcp-6-1": ETHER / Dot1AD(prio=6, vlan=7) / Dot1Q(prio=1, vlan=8) / ipv6(11) / UDP(dport=5) / Raw(bytes(20)),
    "tag-pcp-4-no-ip": ETHER / Dot1Q(prio=4, vlan=7, type=0x88B5) / Raw(bytes(50)),
    "roce-cnp": ETHER / ipv4(48) / roce(0x81, 16),
    "roce-write-ce": ETHER / ipv4(26, 3) / roce(0x0A, 1024),
    "roce6-read-ce": ETHER / ipv6(26, 3) / roce(0x0C, 16),
    "roce-send-tagged": ETHER / Dot1Q(prio=3, vlan=7) / ipv4(26, 2) / roce(0x04, 256),
    "pfc-3-4": CONTROL / MACControlClassBasedFlowControl(c3_enabled=1, c4_enabled=1, c3_pause_time=100, c4_pause_time=0),
    "pfc-none": CONTROL / MACControlClassBasedFlowControl(),
    "pause-xoff": CONTROL / MACControlPause(pause_time=0x1234),
    "pause-xon": CONTROL / MACControlPause(pause_time=0),
    "pfc-tagged": CONTROL / Dot1Q(prio=3, vlan=0, type=0x8808) / Raw(bytes.fromhex("01010008") + bytes(42)),
    "pause-unicast": UNICAST / Raw(bytes.fromhex("00010005") + bytes(42)),
    "udp-long": ETHER / ipv4(26) / UDP(dport=5) / Raw(bytes(3000)),
    "udp-long-tagged": ETHER / Dot1Q(prio=5, vlan=7) / ipv4(26) / UDP(dport=5) / Raw(bytes(3000)),
    "tcp6-long": ETHER / ipv6(26) / TCP(dport=80) / Raw(bytes(3000)),
    # What BIG TCP leaves in the stack: a total length of 0 for what 16 bits do not hold.
    "tcp4-big-long": ETHER / IP(src="192.0.2.1", dst="192.0.2.2", tos=26 << 2, len=0) / TCP(dport=80) / Raw(bytes(3000)),
    "ip-checksum": ETHER / IP(src="192.0.2.1", dst="192.0.2.2", chksum=1) / UDP(dport=5) / Raw(bytes(20)),
}

for name, frame in FRAMES.items():
    print(name, raw(frame).ljust(60, b"\0").hex())
