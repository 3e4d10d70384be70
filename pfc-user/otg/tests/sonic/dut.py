"""A SONiC host that is not there: the commands that the PFC helpers send to it are answered by what
the simulated switch counts itself.
"""

import json
import re
import socket
import time

# XOFF and headroom of a lossless priority of the simulated switch.
BUFFER = (512 << 10) + (1 << 20)
# Its ports; most cases have the first two.
PORTS = ("Ethernet0", "Ethernet4", "Ethernet8")
# Columns of SONiC's `portstat`, and what the switch calls them. It drops nothing as it comes in.
PORTSTAT = {"TX_OK": "sent", "TX_DRP": "dropped", "RX_OK": "received"}
# The columns of its table.
TABLE = ["IFACE", "STATE"] + [
    f"{way}_{what}" for way in ("RX", "TX") for what in ("OK", "BPS", "UTIL", "ERR", "DRP", "OVR")]
# Times of the PFC watchdog in milliseconds, as `pfcwd start_default` sets them on a small switch.
WATCHDOG = {"GLOBAL": {"POLL_INTERVAL": "200"}} | {
    port: {"action": "drop", "detection_time": "200", "restoration_time": "200"} for port in PORTS
}
# SONiC lists the queues that have been in a storm.
WATCHDOG_STATS = (
    "QUEUE", "STATUS", "STORM DETECTED/RESTORED", "TX OK/DROP", "RX OK/DROP", "TX LAST OK/DROP",
    "RX LAST OK/DROP")
# Commands and what answers them; one entry a command.
ANSWERS = []


def answers(pattern):
    """Has a method answer the commands of a form."""
    def add(method):
        ANSWERS.append((re.compile(pattern), method))
        return method
    return add


class Dut:
    """A host with the switch's ports; `counters` is the socket at which the switch tells them."""

    hostname = "simulated"
    is_multi_asic = False
    facts = {
        "asic_type": "vs",
        "hwsku": "simulated",
        "num_asic": 1,
        "platform": "x86_64-simulated",
        "platform_asic": "simulated",
        "switch_type": "switch",
    }

    def __init__(self, counters):
        self.counters = counters
        self.cleared = {"pfc": None, "queues": None, "ports": None}
        # As SONiC starts.
        self.watchdog = True

    def told(self):
        """What the switch has counted since it began, by port; those that it has."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.counters)
            with client.makefile() as text:
                return dict(zip(PORTS, json.load(text)))

    def counts(self, kind, port, name, told=None):
        """Counts by class or queue since those of their kind were cleared."""
        before = self.cleared[kind]
        before = before[port][name] if before else [0] * 8
        return [now - then for now, then in zip((told or self.told())[port][name], before)]

    def settled(self):
        """What the switch has counted once it holds nothing, or after a second, in which a SONiC
        host has not answered yet. A helper asks when the last pause of its storm has still to end.
        """
        until = time.monotonic() + 1
        while True:
            told = self.told()
            held = sum(sum(port["held"]) for port in told.values())
            if held == 0 or time.monotonic() > until:
                return told
            time.sleep(0.01)

    def clear(self, kind):
        self.cleared[kind] = self.told()
        return ""

    def shell(self, command):
        return self.command(command)

    def command(self, command):
        asked = command.strip().removeprefix("sudo ")
        for pattern, method in ANSWERS:
            if found := pattern.search(asked):
                text = method(self, *found.groups())
                lines = text.splitlines()
                return {"stdout": text, "stdout_lines": lines, "stderr": "", "rc": 0}
        raise NotImplementedError(f"no answer to {command!r}")

    @answers(r"^pfcstat -c$")
    def clear_pfc_by_pfcstat(self):
        return self.clear("pfc")

    @answers(r"^sonic-clear pfccounters$")
    def clear_pfc(self):
        return self.clear("pfc")

    @answers(r"^sonic-clear queuecounters$")
    def clear_queues(self):
        return self.clear("queues")

    @answers(r"^sonic-clear counters$")
    def clear_ports(self):
        return self.clear("ports")

    @answers(r"^show pfc counters .*Port (Tx|Rx).* grep (\w+)$")
    def pfc(self, way, port):
        name = {"Tx": "pfc_sent", "Rx": "pfc_received"}[way]
        return " ".join([port, *(f"{count:,}" for count in self.counts("pfc", port, name))])

    @answers(r"^show queue counters (\w+) .*/UC(\d)/p")
    def queue(self, port, queue):
        sent, dropped = (
            self.counts("queues", port, name)[int(queue)] for name in ("sent", "dropped"))
        return f"{port} UC{queue} {sent:,} N/A {dropped:,} N/A"

    @answers(r"^portstat -ji (\w+)$")
    def port(self, port):
        told = self.settled()
        return json.dumps({port: {
            column: f"{sum(self.counts('ports', port, name, told)):,}"
            for column, name in PORTSTAT.items()
        }})

    @answers(r"^portstat -i (\w+)$")
    def table_of_port(self, port):
        told = self.settled()
        row = dict.fromkeys(TABLE, "0") | {
            column: f"{sum(self.counts('ports', port, name, told)):,}"
            for column, name in PORTSTAT.items()
        } | {"IFACE": port, "STATE": "U", "RX_BPS": "0.00 B/s", "TX_BPS": "0.00 B/s"}
        widths = [max(len(name), len(row[name])) for name in TABLE]
        lines = TABLE, ["-" * width for width in widths], row.values()
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in lines)

    @answers(r"COUNTERS_QUEUE_NAME_MAP (\w+:\d)$")
    def name_of_queue(self, queue):
        return f"oid:{queue}"

    @answers(r"oid:(\w+):(\d) SAI_QUEUE_STAT_DROPPED_PACKETS$")
    def drops_of_queue(self, port, queue):
        # A queue's counter in the database is never cleared.
        return str(self.told()[port]["dropped"][int(queue)])

    @answers(r"^pfcwd start_default$")
    def start_watchdog(self):
        self.watchdog = True
        return ""

    @answers(r"^pfcwd stop$")
    def stop_watchdog(self):
        self.watchdog = False
        return ""

    @answers(r"^show pfcwd stats")
    def watchdog_stats(self):
        # The switch has no watchdog, and therefore no queue that one has stopped.
        return "  ".join(WATCHDOG_STATS)

    def asic_instance(self):
        return self

    def get_running_config_facts(self):
        pool = {"egress_lossless_pool": {"size": str(BUFFER)}}
        # Its queues are its priorities, and share a line equally.
        queues = {"AZURE": {str(priority): str(priority) for priority in range(8)}}
        watchdog = {"PFC_WD": WATCHDOG} if self.watchdog else {}
        return {"BUFFER_POOL": pool, "TC_TO_QUEUE_MAP": queues} | watchdog

    def config_facts(self, host, source):
        return {"ansible_facts": self.get_running_config_facts()}
