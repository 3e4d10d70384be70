"""Frames for `watch`, one a line: name and octets in hexadecimal. Layouts, lengths and checksums are scapy's."""

import logging

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.all import AH, Dot1AD, Dot1Q, Dot3, ESP, Ether, GRE, IP, IPv6, LLC, PPP, PPPoE, Raw, SNAP, TCP, UDP, VXLAN
from scapy.all import raw
from scapy.contrib.etherip import EtherIP
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.contrib.roce import BTH
from scapy.layers.inet6 import IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrSegmentRouting
from scapy.layers.inet6 import MIP6MH_BRR

ETHER = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")
UNICAST = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01", type=0x8808)
CONTROL = Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:00:01")


def ethernet(ethertype):
    return Ether(dst=ETHER.dst, src=ETHER.src, type=ethertype)


def ipv4(dscp, ecn=0, **fields):
    return IP(src="192.0.2.1", dst="192.0.2.2", tos=dscp << 2 | ecn, **fields)


def ipv6(dscp, ecn=0, **fields):
    return IPv6(src="2001:db8::1", dst="2001:db8::2", tc=dscp << 2 | ecn, **fields)


# Inside a tunnel, with another DSCP than outside.
INNER = IP(src="198.51.100.1", dst="198.51.100.2") / TCP(dport=80) / Raw(bytes(3000))
INNER6 = IPv6(src="2001:db8:1::1", dst="2001:db8:1::2") / TCP(dport=80) / Raw(bytes(3000))
SEGMENTS = ["2001:db8::2", "2001:db8::3", "2001:db8::4"]


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
    "vxlan-long": ETHER / ipv4(26) / UDP(dport=4789) / VXLAN(flags=8, vni=7) / ETHER / INNER,
    "geneve-long": ETHER / ipv6(26) / UDP(dport=6081) / GENEVE(vni=7, proto=0x6558) / ETHER / INNER6,
    "gre-long": ETHER / ipv4(26) / GRE(chksum_present=1, key_present=1, seqnum_present=1, key=9) / INNER,
    "gre-tap-long": ETHER / ipv4(26) / GRE(proto=0x6558) / ETHER / INNER,
    "ipip-long": ETHER / ipv4(26) / INNER,
    "srv6-long": ETHER / ipv6(26) / IPv6ExtHdrSegmentRouting(addresses=SEGMENTS) / INNER6,
    "options-long": ETHER / ipv6(26) / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / TCP(dport=80) / Raw(bytes(3000)),
    "mpls-long": ETHER / ipv4(26) / GRE(proto=0x8847) / Raw(bytes.fromhex("00007140")) / INNER,
    "hidden-hop-by-hop": ETHER / ipv6(26) / IPv6ExtHdrHopByHop() / roce(4),
    "hidden-destination": ETHER / ipv6(26) / IPv6ExtHdrDestOpt() / roce(4),
    "hidden-routing": ETHER / ipv6(26) / IPv6ExtHdrSegmentRouting(addresses=SEGMENTS) / roce(4),
    "hidden-authentication": ETHER / ipv4(26) / AH(nh=17, payloadlen=4, spi=1, seq=1, icv=bytes(12)) / roce(4),
    "hidden-fragment": ETHER / IP(src="192.0.2.1", dst="192.0.2.2", tos=26 << 2, flags="MF") / roce(4),
    "hidden-fragment-6": ETHER / ipv6(26) / IPv6ExtHdrFragment(m=1, nh=17) / roce(4),
    "hidden-ipip": ETHER / ipv4(26) / ipv4(26) / roce(4),
    "hidden-gre": ETHER / ipv4(26) / GRE() / ipv4(26) / roce(4),
    "hidden-vxlan": ETHER / ipv4(26) / UDP(dport=4789) / VXLAN(flags=8, vni=7) / ETHER / ipv4(26) / roce(4),
    "hidden-esp": ETHER / ipv4(26) / ESP(spi=1, seq=1, data=bytes(64)),
    "hidden-mobility": ETHER / ipv6(26) / MIP6MH_BRR(),
    "hidden-hip": ETHER / ipv6(26, nh=139) / Raw(bytes(40)),
    "hidden-shim6": ETHER / ipv6(26, nh=140) / Raw(bytes.fromhex("1100800000000000")) / roce(4),
    "hidden-experiment": ETHER / ipv6(26, nh=253) / Raw(bytes.fromhex("1100010400000000")) / roce(4),
    "hidden-experiment-2": ETHER / ipv6(26, nh=254) / Raw(bytes.fromhex("1100010400000000")) / roce(4),
    "hidden-etherip": ETHER / ipv4(26) / EtherIP() / ETHER / ipv4(26) / roce(4),
    "hidden-compressed": ETHER / ipv4(26, proto=108) / Raw(bytes.fromhex("11000002") + bytes(64)),
    "hidden-l2tp": ETHER / ipv4(26, proto=115) / Raw(bytes.fromhex("00000007")) / ETHER / ipv4(26) / roce(4),
    "hidden-mpls": ETHER / ipv4(26, proto=137) / Raw(bytes.fromhex("00007140")) / ipv4(26) / roce(4),
    "hidden-srv6-ethernet": ETHER / ipv6(26, nh=143) / ETHER / ipv4(26) / roce(4),
    # RoCEv2 behind another EtherType, or a length, and RoCEv1.
    "mpls": ethernet(0x8847) / Raw(bytes.fromhex("00007140")) / ipv4(26) / roce(4),
    "pppoe": ETHER / PPPoE(sessionid=1) / PPP() / ipv4(26) / roce(4),
    "llc-snap": Dot3(dst=ETHER.dst, src=ETHER.src) / LLC() / SNAP() / ipv4(26) / roce(4),
    "roce-v1": ethernet(0x8915) / Raw(bytes(40)) / BTH(opcode=4, dqpn=17, psn=5) / Raw(bytes(64)),
    "ip-checksum": ETHER / IP(src="192.0.2.1", dst="192.0.2.2", chksum=1) / UDP(dport=5) / Raw(bytes(20)),
}

for name, frame in FRAMES.items():
    print(name, raw(frame).ljust(60, b"\0").hex())
