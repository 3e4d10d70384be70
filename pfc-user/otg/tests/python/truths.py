"""What frames do, by snappi: counts, rates, octets, and what pause frames hold.

    python truths.py http http://127.0.0.1:8443 LOCATION LOCATION [PART...]

The two ports have to be connected to each other, with an MTU of 9000 or more.
"""

import io
import sys
import time
import zlib

import snappi
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import PcapReader

SPEED = 1_000_000_000
LAYER_1 = 20
failed = []


def expect(what, right, found=""):
    print(f"{what} ... {'ok' if right else f'FAILED: {found}'}")
    if not right:
        failed.append(what)


def near(what, found, expected, share=0.01):
    expect(what, abs(found - expected) <= share * expected, f"{found}, expected {expected}")


class Ports:
    """Two connected ports, and one configuration after the other."""

    def __init__(self, transport, server, *locations):
        grpc = transport.startswith("grpc")
        self.api = snappi.api(server, transport="grpc" if grpc else "http")
        self.api.enable_grpc_streaming = transport == "grpc-pieces"
        self.locations = locations

    def config(self, queues=None):
        config = self.api.config()
        for name, location in zip(("tx", "rx"), self.locations):
            config.ports.port(name=name, location=location)
        layer1 = config.layer1.layer1(name="layer1", port_names=["tx", "rx"])[-1]
        layer1.speed, layer1.mtu = "speed_1_gbps", 9000
        if queues == "pause":
            layer1.flow_control.choice = layer1.flow_control.IEEE_802_3X
        elif queues is not None:
            pfc = layer1.flow_control.ieee_802_1qbb
            pfc.pfc_delay = 0
            for of_class, queue in queues.items():
                setattr(pfc, f"pfc_class_{of_class}", queue)
        config.captures.capture(name="capture", port_names=["rx"])
        return config

    def start(self, config):
        self.api.set_config(config)
        self.order("start")

    def order(self, state):
        control = self.api.control_state()
        control.traffic.flow_transmit.state = state
        self.api.set_control_state(control)

    def capture(self, state):
        control = self.api.control_state()
        control.port.capture.port_names, control.port.capture.state = ["rx"], state
        self.api.set_control_state(control)

    def captured(self):
        request = self.api.capture_request()
        request.port_name = "rx"
        return list(PcapReader(io.BytesIO(self.api.get_capture(request).read())))

    def metrics(self):
        request = self.api.metrics_request()
        request.flow.flow_names = []
        return {flow.name: flow for flow in self.api.get_metrics(request).flow_metrics}

    def ended(self, limit=20):
        """The metrics once all flows have stopped, and what was under way has arrived."""
        end = time.monotonic() + limit
        while any(flow.transmit != "stopped" for flow in self.metrics().values()):
            if time.monotonic() > end:
                sys.exit(f"flows have not stopped within {limit} s")
            time.sleep(0.05)
        time.sleep(0.2)
        return self.metrics()


def flow(config, name, size, queue=0, phb=0):
    made = config.flows.flow(name=name)[-1]
    made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "tx", ["rx"]
    ethernet, ip, udp = made.packet.ethernet().ipv4().udp()
    ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
    ethernet.pfc_queue.value = queue
    ip.src.value, ip.dst.value, ip.priority.dscp.phb.value = "192.0.2.1", "192.0.2.2", phb
    udp.src_port.value, udp.dst_port.value = 5000, 5001
    made.size.fixed = size
    made.metrics.enable = made.metrics.loss = True
    return made


def storm(config, vector, times, pps=59):
    made = config.flows.flow(name="storm")[-1]
    made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "rx", ["tx"]
    pause = made.packet.pfcpause()[-1]
    pause.src.value, pause.class_enable_vector.value = "02:00:00:00:00:02", vector
    for of_class, quanta in times.items():
        getattr(pause, f"pause_class_{of_class}").value = quanta
    made.size.fixed, made.rate.pps = 64, pps
    return made


def counts(ports):
    for size in (64, 65, 128, 512, 1024, 1518, 9000):
        config = ports.config()
        made = flow(config, "f", size)
        made.duration.fixed_packets.packets, made.rate.pps = 1000, 5000
        ports.start(config)
        found = ports.ended()["f"]
        told = (found.frames_tx, found.frames_rx, found.bytes_tx, found.bytes_rx)
        right = told == (1000, 1000, 1000 * size, 1000 * size)
        expect(f"1000 frames of {size} octets", right, told)


def rates(ports):
    size = 1024
    for what, unit, value, frames in (
        ("2000 frames/s", "pps", 2000, 2000),
        ("10 % of layer 1", "percentage", 10, SPEED / 10 / 8 / (size + LAYER_1)),
        ("50 Mbit/s of layer 2", "mbps", 50, 50e6 / 8 / size),
    ):
        config = ports.config()
        made = flow(config, "f", size)
        setattr(made.rate, unit, value)
        made.duration.fixed_seconds.seconds = 2
        ports.start(config)
        found = ports.ended()["f"]
        near(what, found.frames_tx / 2, frames)
        expect(f"{what}: none lost", found.frames_tx == found.frames_rx, found.frames_rx)


def over_the_line(ports):
    config = ports.config()
    for number in range(8):
        made = flow(config, f"f{number}", 1024, phb=number)
        made.rate.percentage, made.duration.fixed_seconds.seconds = 20, 1
    ports.start(config)
    found = ports.ended().values()
    line = SPEED / 8 / (1024 + LAYER_1)
    total = sum(flow.frames_tx for flow in found)
    expect("160 % of the line leaves as the line", total <= 1.01 * line, total / line)


def octets(ports):
    config = ports.config()
    made = flow(config, "f", 200)
    made.packet[0].src.increment.start = "02:00:00:00:01:00"
    made.packet[0].src.increment.step = "00:00:00:00:00:01"
    made.packet[0].src.increment.count = 5
    dscp = made.packet[1].priority.dscp
    dscp.phb.values, dscp.ecn.value = [3, 4, 48], 1
    made.duration.fixed_packets.packets, made.rate.pps = 30, 1000
    ports.api.set_config(config)
    ports.capture("start")
    ports.order("start")
    ports.ended()
    ports.capture("stop")
    frames = [frame for frame in ports.captured() if UDP in frame and frame[UDP].dport == 5001]
    expect("30 frames are captured", len(frames) == 30, len(frames))
    for number, frame in enumerate(frames):
        whole = bytes(frame)
        fcs = zlib.crc32(whole[:-4]).to_bytes(4, "little")
        again = Ether(whole[:-4])
        good = again[IP].chksum, again[UDP].chksum
        del again[IP].chksum, again[UDP].chksum
        again = Ether(bytes(again))
        wanted = {
            "length": (len(whole), 200),
            "FCS": (whole[-4:], fcs),
            "source": (frame.src, f"02:00:00:00:01:{number % 5:02x}"),
            "traffic class": (frame[IP].tos, [3, 4, 48][number % 3] << 2 | 1),
            "checksums": (good, (again[IP].chksum, again[UDP].chksum)),
        }
        for what, (found, expected) in wanted.items():
            if found != expected:
                expect(f"frame {number}: {what}", False, f"{found}, expected {expected}")


def pause_frames(ports):
    config = ports.config()
    made = storm(config, 0x81, {0: 0x1234, 3: 0x5678, 7: 0xffff}, pps=100)
    made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "tx", ["rx"]
    made.duration.fixed_packets.packets = 10
    made.metrics.enable = True
    ports.api.set_config(config)
    ports.capture("start")
    ports.order("start")
    ports.ended()
    ports.capture("stop")
    frames = [bytes(frame) for frame in ports.captured() if frame.type == 0x8808]
    head = "0180c2000001" "020000000002" "8808" "0101" "0081"
    times = "1234" "0000" "0000" "5678" "0000" "0000" "0000" "ffff"
    expected = bytes.fromhex(head + times).ljust(60, b"\0")
    right = len(frames) == 10 and all(frame[:-4] == expected for frame in frames)
    expect("pause frames octet by octet", right, [frame.hex() for frame in frames[:1]])


def obeying(ports):
    all_to_1 = {of_class: 1 for of_class in range(8)}
    same = {of_class: of_class for of_class in range(8)}
    for what, queues, vector, times, held in (
        ("class 3 holds queue 3", same, 1 << 3, {3: 65535}, {3}),
        ("classes 3 and 4 hold both", same, 3 << 3, {3: 65535, 4: 65535}, {3, 4}),
        ("all classes to queue 1", all_to_1, 1 << 3, {3: 65535}, {1}),
        ("time 0 holds nothing", same, 1 << 3, {3: 0}, set()),
        ("a time without its bit holds nothing", same, 0, {3: 65535}, set()),
        ("ports without flow control obey nothing", None, 1 << 3, {3: 65535}, set()),
        ("802.3x does not obey PFC", "pause", 1 << 3, {3: 65535}, set()),
    ):
        config = ports.config(queues)
        for queue in (1, 3, 4):
            made = flow(config, f"q{queue}", 512, queue)
            made.rate.pps, made.duration.fixed_seconds.seconds = 1000, 2
            made.duration.fixed_seconds.delay.nanoseconds = 5e8
        storm(config, vector, times).duration.fixed_seconds.seconds = 3
        begin = time.monotonic()
        ports.start(config)
        found = ports.ended()
        took = time.monotonic() - begin
        stopped = {queue for queue in (1, 3, 4) if found[f"q{queue}"].frames_tx < 200}
        sent = {name: flow.frames_tx for name, flow in found.items()}
        expect(what, stopped == held, sent)
        expect(f"{what}: flows end in wall time", took < 5, took)


def main(transport, server, first, second, *only):
    ports = Ports(transport, server, first, second)
    for part in (counts, rates, over_the_line, octets, pause_frames, obeying):
        if not only or part.__name__ in only:
            part(ports)
    sys.exit(f"{len(failed)} failed" if failed else 0)


main(*sys.argv[1:])
