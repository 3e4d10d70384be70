"""READ responses made by scapy, and requests decoded by scapy.

Without input it prints responses, one per line: name, "right" or "wrong", octets. Each line of
input is a frame; for each it prints the decoded fields, and whether the ICRC is right.
"""

import struct
import sys
import zlib

from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

DUT, TESTER = "02:00:00:00:00:01", "02:00:00:00:00:02"


def icrc(packet):
    """ICRC of an IP packet whose last four octets are its place; scapy has none for IPv6."""
    masked = packet.copy()
    if IP in masked:
        masked[IP].tos, masked[IP].ttl, masked[IP].chksum = 0xff, 0xff, 0xffff
    else:
        masked[IPv6].tc, masked[IPv6].fl, masked[IPv6].hlim = 0xff, 0xfffff, 0xff
    masked[UDP].chksum = 0xffff
    masked[BTH].fecn, masked[BTH].becn, masked[BTH].resv6 = 1, 1, 0x3f
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)[:-4]))


def response(ip, opcode=0x10, payload=b"", pad=0, **bth):
    head = Ether(dst=DUT, src=TESTER) / ip / UDP(sport=0xc000, dport=4791, chksum=0)
    fields = dict(dqpn=0x11, psn=7, opcode=opcode, padcount=pad, icrc=None)
    fields.update(bth)
    frame = head / BTH(**fields) / AETH(syndrome=0x1f, msn=1) / Raw(payload + b"\0" * pad)
    if IP in frame:
        return bytes(frame)
    # scapy writes a checksum of 0 only if told so.
    frame[BTH].icrc = 0
    frame = Ether(bytes(frame))
    return bytes(frame)[:-4] + icrc(frame[IPv6])


V4 = dict(src="192.0.2.2", dst="192.0.2.1")
V6 = dict(src="fd00::2", dst="fd00::1")


def responses():
    full, short = bytes(range(256)), b"abcde"
    yield "v4-full", True, response(IP(**V4), payload=full)
    yield "v4-short", True, response(IP(**V4), payload=short, pad=3)
    marked = IP(tos=0x6b, ttl=3, id=0x1234, flags="DF", **V4)
    yield "v4-marked", True, response(marked, payload=full, becn=1, fecn=1)
    yield "v4-bad-icrc", False, response(IP(**V4), payload=full, icrc=0x01020304)
    yield "v4-fragment", False, response(IP(flags="MF", **V4), payload=full)
    yield "v4-version", False, response(IP(**V4), payload=full, version=1)
    yield "v6-full", True, response(IPv6(**V6), payload=full)
    yield "v6-short", True, response(IPv6(**V6), payload=short, pad=3)
    yield "v6-marked", True, response(IPv6(tc=0x6b, fl=0x12345, hlim=3, **V6), payload=full, becn=1)


def read(frame):
    ip = frame[IP] if IP in frame else frame[IPv6]
    bth = frame[BTH]
    octets = bytes(bth.payload)
    if IP in frame:
        summed = ip.copy().__class__(**{**ip.fields, "chksum": None})
        right = IP(bytes(ip)).chksum == IP(bytes(summed / b"")).chksum
        again = frame.copy()
        again[BTH].icrc = None
        right_icrc = bytes(again)[-4:] == bytes(frame)[-4:]
    else:
        right = True
        right_icrc = icrc(ip) == bytes(frame)[-4:]
    address, r_key, length = struct.unpack(">QII", octets[:16])
    print(
        f"{frame.dst} {frame.src} {ip.src} {ip.dst} {frame[UDP].dport} opcode={bth.opcode:#x} "
        f"dqpn={bth.dqpn:#x} psn={bth.psn:#x} ackreq={bth.ackreq} pkey={bth.pkey:#x} "
        f"va={address:#x} rkey={r_key:#x} dlen={length} rest={len(octets) - 16} "
        f"checksum={right} icrc={right_icrc}"
    )


frames = sys.stdin.read().split()
for name, valid, octets in [] if frames else responses():
    print(name, "right" if valid else "wrong", octets.hex())
for octets in frames:
    read(Ether(bytes.fromhex(octets)))
