"""Two ports, what is sent between them, and what is expected of it."""

import io
import json
import os
import sys
import time
import urllib.request

import snappi
from scapy.utils import PcapNgReader, PcapReader, RawPcapReader

SPEED = 1_000_000_000
LAYER_1 = 20
SOURCE, DESTINATION = "02:00:00:00:00:01", "02:00:00:00:00:02"
PORT = 5001
FAULTS = "duplicates", "beyond_window", "reordered", "corrupt", "leaked"
failed = []


def expect(what, right, found=""):
    print(f"{what} ... {'ok' if right else f'FAILED: {found}'}", flush=True)
    if not right:
        failed.append(what)


def near(what, found, expected, share=0.01):
    expect(what, abs(found - expected) <= share * expected, f"{found}, expected {expected}")


def until(what, limit, holds):
    """What `holds` returns, once it is true."""
    end = time.monotonic() + limit
    while not (found := holds()):
        if time.monotonic() > end:
            sys.exit(f"{what}: not so within {limit} s")
        time.sleep(0.05)
    return found


def since(before, now, direction):
    """Frames and octets of a port in between."""
    return [getattr(now, f"{unit}_{direction}") - getattr(before, f"{unit}_{direction}")
            for unit in ("frames", "bytes")]


class Ports:
    """Two ports, and one configuration after the other."""

    def __init__(self, transport, server, *locations):
        grpc = transport.startswith("grpc")
        self.api = snappi.api(server, transport="grpc" if grpc else "http")
        self.api.enable_grpc_streaming = transport == "grpc-pieces"
        # Loading the program into the kernel takes long on a busy machine.
        self.api.request_timeout = 60
        # They are served over HTTP alone.
        self.counted = os.environ.get("VALIDATOR_COUNTERS", f"{server}/counters")
        self.locations = locations

    def config(self, queues=None, speed="speed_1_gbps"):
        """`queues`: None obeys nothing, "pause" 802.3x, and a table of classes PFC."""
        config = self.api.config()
        for name, location in zip(("tx", "rx"), self.locations):
            config.ports.port(name=name, location=location)
        layer1 = config.layer1.layer1(name="layer1", port_names=["tx", "rx"])[-1]
        layer1.speed, layer1.mtu = speed, 9000
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
        self.before = self.of_ports()
        self.order("start")

    def order(self, state, *flows):
        control = self.api.control_state()
        control.traffic.flow_transmit.state = state
        control.traffic.flow_transmit.flow_names = list(flows)
        self.api.set_control_state(control)

    def capture(self, state, ports):
        control = self.api.control_state()
        control.port.capture.port_names, control.port.capture.state = list(ports), state
        self.api.set_control_state(control)

    def captured(self, config):
        """What arrived of all flows of a configuration, each frame whole."""
        self.record(config)
        of_format = {"pcap": PcapReader, "pcapng": PcapNgReader}
        return self.frames("rx", of_format[config.captures[0].format])

    def frames(self, name, reader=PcapReader):
        """What a port captured."""
        return list(reader(self.recorded(name)))

    def arrivals(self, config):
        """When each frame arrived, in nanoseconds. A reply of gRPC has no room for all of them."""
        config.captures[0].packet_size = 64
        self.record(config)
        reader = RawPcapReader(self.recorded("rx"))
        # What is called microseconds are nanoseconds then.
        unit = 1 if reader.nano else 1000
        return [told.sec * 1_000_000_000 + told.usec * unit for _, told in reader]

    def record(self, config):
        """Captures from the start of all flows to their end."""
        self.api.set_config(config)
        self.before = self.of_ports()
        ports = config.captures[0].port_names
        self.capture("start", ports)
        self.order("start")
        self.ended()
        self.capture("stop", ports)

    def recorded(self, name):
        """The file of a port's capture."""
        request = self.api.capture_request()
        request.port_name = name
        return io.BytesIO(self.api.get_capture(request).read())

    def metrics(self):
        request = self.api.metrics_request()
        request.flow.flow_names = []
        return {flow.name: flow for flow in self.api.get_metrics(request).flow_metrics}

    def of_ports(self):
        """The metrics of ports, which the server counts apart from those of flows."""
        request = self.api.metrics_request()
        request.port.port_names = []
        return {port.name: port for port in self.api.get_metrics(request).port_metrics}

    def counters(self):
        """The counts beyond the model, by name of the port."""
        return {port["name"]: port for port in self.all_counters()["ports"]}

    def all_counters(self):
        """The counts beyond the model, and when they were taken."""
        with urllib.request.urlopen(self.counted, timeout=10) as reply:
            return json.load(reply)

    def measured(self, seconds):
        """Frames that arrive in a second, at the port and of each flow, by the kernel's clock."""
        first = self.all_counters()
        time.sleep(seconds)
        last = self.all_counters()
        took = (last["at_ns"] - first["at_ns"]) / 1e9

        def rate(kind, row):
            return (last[kind][row]["frames_rx"] - first[kind][row]["frames_rx"]) / took

        return rate("ports", 1), [rate("flows", row) for row in range(len(first["flows"]))]

    def own_pauses(self, name):
        """PAUSE frames of the configuration's own that a port received, and PFC frames by class."""
        port = self.counters()[name]
        return [port["pause_own_rx"], *port["pfc_own_rx"]]

    def faults(self):
        """By flow, the counts of what should not happen, unless they are zero."""
        found = {flow["name"]: {fault: flow[fault] for fault in FAULTS if flow[fault]}
                 for flow in self.all_counters()["flows"]}
        return {name: faults for name, faults in found.items() if faults}

    def exact(self, what):
        """All that was started last has arrived once, by the ports' own counts, too."""
        flows, ports = self.metrics().values(), self.of_ports()
        for name, other in (("tx", "rx"), ("rx", "tx")):
            sent = [flow for flow in flows if flow.port_tx == name]
            wanted = [sum(flow.frames_tx for flow in sent), sum(flow.bytes_tx for flow in sent)]
            left = since(self.before[name], ports[name], "tx")
            came = since(self.before[other], ports[other], "rx")
            if not left == came == wanted:
                found = f"{left} left, {came} came, of flows {wanted}"
                expect(f"{what}: counts of what {name} sent", False, found)
        faults = self.faults()
        expect(f"{what}: nothing came twice, late, changed or elsewhere", not faults, faults)

    def stopped(self, prefix=""):
        """The metrics, if all flows whose names begin so have stopped; or None."""
        found = self.metrics()
        chosen = [flow.transmit for name, flow in found.items() if name.startswith(prefix)]
        return found if all(transmit == "stopped" for transmit in chosen) else None

    def sent_since(self, before):
        """The metrics, if each flow of a queue has sent since `before`; or None."""
        found = self.metrics()
        grown = [found[name].frames_tx > before[name].frames_tx
                 for name in found if name.startswith("q")]
        return found if all(grown) else None

    def ended(self, lost=0):
        """The metrics once all flows have stopped and all frames have arrived but `lost` ones. That
        no more and no other frames have arrived is for `exact` or the caller to check."""
        until("flows have stopped", 20, self.stopped)
        until(f"all frames but {lost} have arrived", 20, lambda: self.missing() <= lost)
        return self.metrics()

    def missing(self):
        """Frames that have left either port since the start and not come to the other, as yet."""
        now = self.of_ports()
        sent, came = ([since(self.before[name], now[name], direction)[0] for name in now]
                      for direction in ("tx", "rx"))
        return sum(sent) - sum(came)


def flow(config, name, size, queue=0, phb=0):
    """A flow of UDP over IPv4."""
    made = bare(config, name, size)
    ethernet, ip, udp = made.packet.ethernet().ipv4().udp()
    addressed(ethernet)
    ethernet.pfc_queue.value = queue
    ip.src.value, ip.dst.value, ip.priority.dscp.phb.value = "192.0.2.1", "192.0.2.2", phb
    udp.src_port.value, udp.dst_port.value = PORT - 1, PORT
    return made


def bare(config, name, size):
    """A counted flow without headers yet."""
    made = config.flows.flow(name=name)[-1]
    made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "tx", ["rx"]
    made.size.fixed = size
    made.metrics.enable = made.metrics.loss = True
    return made


def addressed(ethernet):
    ethernet.src.value, ethernet.dst.value = SOURCE, DESTINATION


def pauses(config, name="storm", pps=59):
    """A flow of pause frames against the sending port, without headers yet."""
    made = config.flows.flow(name=name)[-1]
    made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "rx", ["tx"]
    made.size.fixed, made.rate.pps = 64, pps
    return made


def pfc(made, vector, times):
    """PFC frames, with a time for some classes."""
    pause = made.packet.pfcpause()[-1]
    pause.src.value, pause.class_enable_vector.value = DESTINATION, vector
    for of_class, quanta in times.items():
        getattr(pause, f"pause_class_{of_class}").value = quanta
    return made


def pause(made, quanta):
    """PAUSE frames of 802.3x."""
    header = made.packet.ethernetpause()[-1]
    header.src.value, header.time.value = DESTINATION, quanta
    return made
