"""Traffic of the fleet, and the storms that are planted in it.

Arguments: the path of each host's network namespace, in their order. Runs in the fabric, where the
far ends of the hosts' ports are. Lines on standard input plant and end, such as `storm 4 on` and
`pause 9 off`. Each is answered with the same line when it is done.
"""

import os
import select
import socket
import struct
import sys
import time

from shared.namespaces import enter

# Each tick sends a frame of each kind on each host: 50 a second.
TICK = 0.02
LOSSLESS, LOSSY = 3, 0
# By SONiC's map.
DSCPS = {3: 3, 0: 8}
# 65,535 quanta are 33.6 ms at 1 Gbit/s, longer than a tick; 6,000 are 3.1 ms.
STORM, SHORT = 65535, 6000
SOURCE = bytes.fromhex("020000000001")


def port(interface):
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    raw.bind((interface, 0))
    return raw


def checksum(header):
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def data(priority):
    """A UDP datagram of 64 octets, of which the first counts, with a DSCP for `priority`."""
    addresses = bytes([198, 19, 0, 1, 198, 19, 0, 2])
    start = struct.pack("!BBHHHBB", 0x45, DSCPS[priority] << 2, 92, 0, 0x4000, 64, 17)
    header = start + struct.pack("!H", checksum(start + bytes(2) + addresses)) + addresses
    udp = struct.pack("!HHHH", 9, 9, 72, 0)
    ethernet = bytes.fromhex("020000000002") + SOURCE + b"\x08\x00"
    return bytearray(ethernet + header + udp + bytes(64))


def pfc(priority, quanta):
    """A PFC frame for one priority (IEEE 802.1Qbb-2011, 36.2)."""
    times = [quanta if place == priority else 0 for place in range(8)]
    ethernet = bytes.fromhex("0180c2000001") + SOURCE + struct.pack("!H", 0x8808)
    control = struct.pack("!HH8H", 0x0101, 1 << priority, *times)
    return (ethernet + control).ljust(60, b"\0")


# A storm says now and then that the pause may end, and pauses again at once: its XON is not lost.
PLANTS = {"storm": [pfc(3, 0), pfc(3, STORM)], "pause": [pfc(4, SHORT)]}


def main():
    far = [port(f"c{number}") for number in range(1, len(sys.argv))]
    near = []
    for path in sys.argv[1:]:
        with open(path) as namespace:
            enter(namespace.fileno())
        near.append(port("eth0"))
    frames = [data(LOSSLESS), data(LOSSY)]
    planted, orders = set(), ""
    print("sending", flush=True)
    count, due = 0, time.monotonic()
    while True:
        for frame in frames:
            frame[42] = count % 256
            for host in near:
                host.send(frame)
        for host in far:
            host.send(frames[0])
        for kind, number in planted:
            for frame in PLANTS[kind]:
                far[number - 1].send(frame)
        count += 1
        # What a stall leaves out is not made up for.
        due = max(due + TICK, time.monotonic())
        while (left := due - time.monotonic()) > 0:
            if not select.select([0], [], [], left)[0]:
                break
            octets = os.read(0, 4096)
            if not octets:
                return
            # The last one may not be whole yet.
            *lines, orders = (orders + octets.decode()).split("\n")
            for line in lines:
                kind, number, state = line.split()
                change = planted.add if state == "on" else planted.remove
                change((kind, int(number)))
                print(line, flush=True)


main()
