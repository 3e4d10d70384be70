"""A SONiC host that is not there: the commands that the PFC helpers send to it, answered.

The simulated switch tells its counts only when it ends. What it sent and took is therefore counted
at the other ends of its cables, by the server's own counts (`/counters`).
"""

import json
import re
import urllib.request

import snappi

# XOFF and headroom of a lossless priority of the simulated switch.
BUFFER = (512 << 10) + (1 << 20)
KINDS = ("pfc", "queues", "ports")


class Dut:
    """A host with the ports `Ethernet0` and `Ethernet4`, each at one port of the tester."""

    hostname = "simulated"
    is_multi_asic = False
    facts = {
        "asic_type": "vs",
        "num_asic": 1,
        "platform": "x86_64-simulated",
        "platform_asic": "simulated",
    }

    def __init__(self, server, config, peers):
        self.server = server
        # The tester's configuration, to which the helpers add their flows.
        self.config = config
        # The tester's port at each port of the host.
        self.peers = peers
        self.cleared = {kind: {} for kind in KINDS}

    def priorities(self):
        """Queues of the data flows, by name; pause frames have none."""
        return {
            flow.name: flow.packet[0].pfc_queue.value
            for flow in self.config.flows
            if isinstance(flow.packet[0], snappi.FlowEthernet)
        }

    def counts(self, kind):
        """Counts by port and name since they were cleared."""
        before = self.cleared[kind]
        return {key: count - before.get(key, 0) for key, count in self.totals(kind).items()}

    def totals(self, kind):
        with urllib.request.urlopen(f"{self.server}/counters", timeout=10) as reply:
            told = json.load(reply)
        priorities, found = self.priorities(), {}
        for port, peer in self.peers.items():
            if kind == "pfc":
                counts = next((one for one in told["ports"] if one["name"] == peer), None)
                for of_class in range(8):
                    # What the tester received, the host sent. There are no ports before the
                    # first configuration.
                    found[port, "Tx", of_class] = counts["pfc_rx"][of_class] if counts else 0
                    found[port, "Rx", of_class] = counts["pfc_tx"][of_class] if counts else 0
                continue
            for flow in told["flows"]:
                priority = priorities.get(flow["name"])
                if priority is None:
                    continue
                name = ("Tx", priority) if kind == "queues" else ("Tx", 0)
                if flow["port_rx"] == peer:
                    found[port, *name] = found.get((port, *name), 0) + flow["frames_rx"]
                elif flow["port_tx"] == peer and kind == "ports":
                    found[port, "Rx", 0] = found.get((port, "Rx", 0), 0) + flow["frames_tx"]
        return found

    def clear(self, *kinds):
        for kind in kinds:
            # A start clears the counts of flows, so only those of ports go on.
            self.cleared[kind] = self.totals(kind) if kind == "pfc" else {}

    def shell(self, command):
        return self.command(command)

    def command(self, command):
        text = self.answer(command.strip().removeprefix("sudo "))
        return {"stdout": text, "stdout_lines": text.splitlines(), "stderr": "", "rc": 0}

    def answer(self, command):
        if command in ("pfcstat -c", "sonic-clear pfccounters"):
            self.clear("pfc")
            return ""
        if command in ("sonic-clear counters", "sonic-clear queuecounters"):
            self.clear("queues" if "queue" in command else "ports")
            return ""
        if found := re.search(r"^show pfc counters .*Port (Tx|Rx).* grep (\w+)$", command):
            way, port = found.groups()
            counts = self.counts("pfc")
            return " ".join([port, *(f"{counts[port, way, each]:,}" for each in range(8))])
        if found := re.search(r"^show queue counters (\w+) .*/UC(\d)/p", command):
            port, queue = found[1], int(found[2])
            frames = self.counts("queues").get((port, "Tx", queue), 0)
            return f"{port} UC{queue} {frames:,} N/A 0 N/A"
        if found := re.search(r"^portstat -ji (\w+)$", command):
            port, counts = found[1], self.counts("ports")
            ok = {f"{way.upper()}_OK": f"{counts.get((port, way, 0), 0):,}" for way in ("Tx", "Rx")}
            return json.dumps({port: {**ok, "TX_DRP": "0", "RX_DRP": "0"}})
        if found := re.search(r"COUNTERS_QUEUE_NAME_MAP (\w+:\d)$", command):
            return f"oid:{found[1]}"
        if command.endswith("SAI_QUEUE_STAT_DROPPED_PACKETS"):
            # Frames that get lost are found by the counts of the flows.
            return "0"
        raise NotImplementedError(f"no answer to {command!r}")

    def asic_instance(self):
        return self

    def config_facts(self, host, source):
        pool = {"egress_lossless_pool": {"size": str(BUFFER)}}
        return {"ansible_facts": {"BUFFER_POOL": pool}}
