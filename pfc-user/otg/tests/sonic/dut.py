"""A SONiC host that is not there: the commands that the PFC helpers send to it are answered by what
the simulated switch counts itself.
"""

import json
import re
import socket

# XOFF and headroom of a lossless priority of the simulated switch.
BUFFER = (512 << 10) + (1 << 20)
# Its ports.
PORTS = ("Ethernet0", "Ethernet4")
# Columns of SONiC's `portstat`, and what the switch calls them. It drops nothing as it comes in.
PORTSTAT = {"TX_OK": "sent", "TX_DRP": "dropped", "RX_OK": "received"}


class Dut:
    """A host with the switch's ports; `counters` is the socket at which the switch tells them."""

    hostname = "simulated"
    is_multi_asic = False
    facts = {
        "asic_type": "vs",
        "num_asic": 1,
        "platform": "x86_64-simulated",
        "platform_asic": "simulated",
    }

    def __init__(self, counters):
        self.counters = counters
        self.cleared = {"pfc": None, "queues": None, "ports": None}

    def told(self):
        """What the switch has counted since it began, by port."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.counters)
            with client.makefile() as text:
                return dict(zip(PORTS, json.load(text)))

    def counts(self, kind, port, name):
        """Counts by class or queue since those of their kind were cleared."""
        before = self.cleared[kind]
        before = before[port][name] if before else [0] * 8
        return [now - then for now, then in zip(self.told()[port][name], before)]

    def clear(self, kind):
        self.cleared[kind] = self.told()

    def shell(self, command):
        return self.command(command)

    def command(self, command):
        text = self.answer(command.strip().removeprefix("sudo "))
        return {"stdout": text, "stdout_lines": text.splitlines(), "stderr": "", "rc": 0}

    def answer(self, command):
        if command in ("pfcstat -c", "sonic-clear pfccounters"):
            return self.clear("pfc") or ""
        if command == "sonic-clear queuecounters":
            return self.clear("queues") or ""
        if command == "sonic-clear counters":
            return self.clear("ports") or ""
        if found := re.search(r"^show pfc counters .*Port (Tx|Rx).* grep (\w+)$", command):
            way, port = found.groups()
            name = {"Tx": "pfc_sent", "Rx": "pfc_received"}[way]
            return " ".join([port, *(f"{count:,}" for count in self.counts("pfc", port, name))])
        if found := re.search(r"^show queue counters (\w+) .*/UC(\d)/p", command):
            port, queue = found[1], int(found[2])
            sent, dropped = (
                self.counts("queues", port, name)[queue] for name in ("sent", "dropped"))
            return f"{port} UC{queue} {sent:,} N/A {dropped:,} N/A"
        if found := re.search(r"^portstat -ji (\w+)$", command):
            port = found[1]
            return json.dumps({port: {
                column: f"{sum(self.counts('ports', port, name)):,}"
                for column, name in PORTSTAT.items()
            }})
        if found := re.search(r"COUNTERS_QUEUE_NAME_MAP (\w+:\d)$", command):
            return f"oid:{found[1]}"
        if found := re.search(r"oid:(\w+):(\d) SAI_QUEUE_STAT_DROPPED_PACKETS$", command):
            # A queue's counter in the database is never cleared.
            return str(self.told()[found[1]]["dropped"][int(found[2])])
        raise NotImplementedError(f"no answer to {command!r}")

    def asic_instance(self):
        return self

    def config_facts(self, host, source):
        pool = {"egress_lossless_pool": {"size": str(BUFFER)}}
        return {"ansible_facts": {"BUFFER_POOL": pool}}
