"""scapy's view of RoCEv2.

`make N`: prints N frames with arbitrary headers, one per line: octets, then the ICRC in the wire's
octet order, in hexadecimal.
`read`: reads frames in hexadecimal from standard input, one per line, and prints the fields of each
as a line of JSON.

scapy computes no ICRC over IPv6. It is computed here from scapy's layers, with all ones in the
fields that may change on the way.
"""

import json
import random
import sys
from zlib import crc32

from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP, IPOption_NOP, IPOption_Router_Alert
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Raw, bind_layers

bind_layers(BTH, AETH, opcode=0x10)


def icrc_v6(ip):
    """ICRC of an IPv6 packet with its lengths filled in and room for the ICRC at its end."""
    masked = IPv6(bytes(ip))
    masked.tc, masked.fl, masked.hlim, masked[UDP].chksum = 0xFF, 0xFFFFF, 0xFF, 0xFFFF
    masked[BTH].fecn, masked[BTH].becn, masked[BTH].resv6 = 1, 1, 0x3F
    return crc32(b"\xff" * 8 + bytes(masked)[:-4]).to_bytes(4, "little")


def with_icrc(ethernet, ip):
    """Returns the frame and its ICRC."""
    if isinstance(ip, IPv6):
        ip[BTH].icrc = 0
        octets = bytes(ip)
        icrc = icrc_v6(ip)
        return bytes(ethernet / Raw(octets[:-4] + icrc)), icrc
    octets = bytes(ethernet / ip)
    return octets, octets[-4:]


def number(source, bits):
    return source.getrandbits(bits)


def make(count):
    source = random.Random(4791)
    for _ in range(count):
        transport = BTH(
            opcode=source.choice([0x0C, 0x0A, 0x04, 0x64, 0x11]),
            solicited=number(source, 1),
            migreq=number(source, 1),
            padcount=number(source, 2),
            pkey=number(source, 16),
            fecn=number(source, 1),
            becn=number(source, 1),
            resv6=number(source, 6),
            dqpn=number(source, 24),
            ackreq=number(source, 1),
            resv7=number(source, 7),
            psn=number(source, 24),
        ) / Raw(source.randbytes(source.choice([4, 16, 17, 64, 1023, 4096])))
        datagram = UDP(sport=number(source, 16), dport=4791, chksum=number(source, 16)) / transport
        ethernet = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")
        for tag in source.choice([[], [Dot1Q], [Dot1AD, Dot1Q]]):
            ethernet /= tag(prio=number(source, 3), vlan=number(source, 12))
        if source.random() < 0.5:
            addresses = [":".join(f"{number(source, 16):x}" for _ in range(8)) for _ in range(2)]
            fields = {"tc": number(source, 8), "fl": number(source, 20), "hlim": number(source, 8)}
            ethernet.lastlayer().type = 0x86DD
            ip = IPv6(src=addresses[0], dst=addresses[1], nh=17, **fields) / datagram
        else:
            addresses = [".".join(str(number(source, 8)) for _ in range(4)) for _ in range(2)]
            fields = {"tos": number(source, 8), "id": number(source, 16), "ttl": number(source, 8)}
            options = [[], [IPOption_Router_Alert()], [IPOption_NOP()] * 40]
            fields["options"] = source.choice(options)
            fields["flags"] = source.choice(["", "DF"])
            ethernet.lastlayer().type = 0x0800
            ip = IP(src=addresses[0], dst=addresses[1], **fields) / datagram
        octets, icrc = with_icrc(ethernet, ip)
        print(octets.hex(), icrc.hex())


def fields(packet, names):
    return {name: packet.getfieldval(name) for name in names.split()}


def read(octets):
    frame = Ether(octets)
    found = fields(frame, "src dst")
    found["tags"] = []
    layer = frame.payload
    while isinstance(layer, (Dot1Q, Dot1AD)):
        control = layer.prio << 13 | layer.id << 12 | layer.vlan
        found["tags"].append([layer.underlayer.type, control])
        layer = layer.payload
    if isinstance(layer, IPv6):
        found["ip"] = fields(layer, "version src dst tc fl nh hlim plen")
        icrc = icrc_v6(layer)
    else:
        found["ip"] = fields(layer, "version src dst ihl tos ttl proto len frag chksum")
        found["ip"]["flags"] = str(layer.flags)
        whole = layer.copy()
        del whole.chksum
        found["ip"]["chksum"] = layer.chksum == IP(bytes(whole)).chksum
        whole = layer.copy()
        whole[BTH].icrc = None
        icrc = bytes(whole)[-4:]
    found["udp"] = fields(layer[UDP], "sport dport len chksum")
    names = "opcode solicited migreq padcount version pkey fecn becn resv6 dqpn ackreq resv7 psn"
    found["bth"] = fields(layer[BTH], names)
    found["aeth"] = fields(layer[AETH], "syndrome msn")
    found["payload"] = bytes(layer[AETH].payload).hex()
    found["icrc"] = octets[-4:].hex()
    found["icrc of scapy"] = icrc.hex()
    return found


if sys.argv[1] == "make":
    make(int(sys.argv[2]))
else:
    for line in sys.stdin:
        print(json.dumps(read(bytes.fromhex(line))))
