"""Debian's Prometheus watches 20 exporters with the published configuration: its alerts fire for
what is planted, for nothing else, and clear.

Prometheus runs the rules of configs/prometheus with each duration divided by 15. With --cost it
runs them as they are, and the lab reads what a fleet of 1,000 costs. All is in network namespaces:

    hub                         host 1 .. 20                     fabric
    Prometheus -- br0 -- m1 --- mgmt
                                eth0 (sends of the pair)    --- a1 --+ redirected
                                eth1 (receives of the pair) --- b1 <-+
                                eth2 (a port by itself)     --- c1
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from shared import packages
from shared.namespaces import Namespace, enter
from shared.steps import (ROOT, VALIDATOR, Failure, Tally, main, need_root, options_of, step,
                          wait_for)

HOSTS = range(1, 21)
FOLDER = ROOT / "target/lab/fleet"
PROMETHEUS = "127.0.0.1:9090"
PUBLISHED = ROOT / "configs/prometheus"
# 15 s become 1 s.
FACTOR = 15
# Labels that tell one alert from another.
LABELS = ("instance", "interface", "pair", "priority", "reason")
# The octet of the IP header whose DSCP means that priority by SONiC's map.
TOS = {0: 8 << 2, 3: 3 << 2, 4: 4 << 2}


def address(host):
    """From the block for benchmarks (RFC 2544), which is not routed anywhere."""
    return f"198.18.1.{host}:9477"


def page(server, path):
    with urllib.request.urlopen(f"http://{server}{path}", timeout=10) as answer:
        return answer.read().decode()


class Network:
    """The namespaces. That of this process becomes the hub."""

    def __init__(self):
        enter()
        self.hub, self.fabric = Namespace(), Namespace.new()
        self.hosts = {host: Namespace.new() for host in HOSTS}
        hub = ["link set lo up", "link add name br0 type bridge",
               "address add 198.18.0.1/16 dev br0", "link set br0 up"]
        # What is redirected to the sink comes to its other end, where nobody is.
        fabric = ["link add name sink type veth peer name end", "link set sink up",
                  "link set end up"]
        cables = []
        for host, namespace in self.hosts.items():
            hub += [f"link add name m{host} type veth peer name mgmt netns {namespace.path}",
                    f"link set m{host} master br0 up"]
            for near, far in (("eth0", "a"), ("eth1", "b"), ("eth2", "c")):
                fabric += [f"link add name {far}{host} type veth peer name {near} netns "
                           f"{namespace.path}", f"link set {far}{host} up"]
            cables += [f"qdisc add dev a{host} clsact",
                       f"filter add dev a{host} ingress pref 10 protocol all u32 match u32 0 0 "
                       f"action mirred egress redirect dev b{host}"]
        self.hub.batch("ip", "\n".join(hub))
        self.fabric.batch("ip", "\n".join(fabric))
        self.fabric.batch("tc", "\n".join(cables))
        for host, namespace in self.hosts.items():
            lines = [f"address add 198.18.1.{host}/16 dev mgmt"]
            lines += [f"link set {port} up" for port in ("lo", "mgmt", "eth0", "eth1", "eth2")]
            namespace.batch("ip", "\n".join(lines))

    def lose(self, host, priority):
        """Loses one frame in 16 of a priority on the way of a host's pair, by the last octet of
        the number that each frame carries."""
        self.fabric.batch("tc", f"filter add dev a{host} ingress pref 1 protocol ip u32 match u8 "
                          f"{TOS[priority]} 0xff at 1 match u8 0 0x0f at 28 action mirred egress "
                          "redirect dev sink")

    def mend(self, host):
        self.fabric.batch("tc", f"filter del dev a{host} ingress pref 1")


class Traffic:
    """The process that sends on every host, and towards those with a storm."""

    def __init__(self, network):
        script = Path(__file__).with_name("fleet_traffic.py")
        paths = [network.hosts[host].path for host in HOSTS]
        self.child = subprocess.Popen(
            network.fabric.bound(sys.executable, "-B", script, *paths),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.hear("sending")

    def order(self, kind, host, state):
        order = f"{kind} {host} {state}"
        self.child.stdin.write(order + "\n")
        self.hear(order)

    def hear(self, expected):
        line = self.child.stdout.readline().rstrip("\n")
        if line != expected:
            raise Failure(f"traffic: expected the line {expected!r}, found {line!r}")


class Service:
    """A program in a namespace, with its log."""

    def __init__(self, name, namespace, *command):
        self.name, self.log = name, FOLDER / f"{name}.log"
        with open(self.log, "w") as log:
            self.child = subprocess.Popen(
                namespace.bound(*command), cwd=FOLDER, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=log)

    def answers(self, server, path):
        """What the service has at that path, once it listens, for `wait_for`."""
        if self.child.poll() is not None:
            raise Failure(f"{self.name} ended with {self.child.returncode}:\n"
                          f"{self.log.read_text()}")
        try:
            return True, page(server, path)
        except (urllib.error.HTTPError, urllib.error.URLError) as error:
            return False, str(error)

    def kill(self):
        self.child.kill()
        self.child.wait()


class Fleet:
    """All that runs."""

    def __init__(self, program):
        shutil.rmtree(FOLDER, ignore_errors=True)
        (FOLDER / "targets").mkdir(parents=True)
        self.program = program
        with step("network namespaces"):
            self.network = Network()
        with step(f"{len(HOSTS)} exporters"):
            self.exporters = {host: self.exporter(host) for host in HOSTS}
            self.traffic = Traffic(self.network)
            for host in HOSTS:
                self.await_exporter(host)

    def exporter(self, host):
        """A pair, and a port by itself."""
        return Service(f"exporter-{host}", self.network.hosts[host], VALIDATOR, "watch", "eth2",
                       "--loss", "eth0:eth1", "--line-rate", "1G", "--prometheus", address(host))

    def await_exporter(self, host):
        exporter = self.exporters[host]
        wait_for(f"metrics of {exporter.name}", lambda: exporter.answers(address(host), "/metrics"))

    def restart(self, host):
        self.exporters[host] = self.exporter(host)
        self.await_exporter(host)

    def start_server(self, factor):
        """Starts Prometheus with the published configuration, its durations divided."""
        for name in ("prometheus.yml", "rules.yml", "alerts.yml"):
            text = (PUBLISHED / name).read_text()
            (FOLDER / name).write_text(divided(text, factor))
        self.server = Service("prometheus", self.network.hub, self.program,
                              "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                              "--log.level=warn", f"--web.listen-address={PROMETHEUS}")
        wait_for("Prometheus", lambda: self.server.answers(PROMETHEUS, "/-/ready"))

    def add_targets(self, file, targets):
        """Writes a file of targets, in one go: Prometheus reads it as soon as it changes. Each is
        a host, and labels that it is given."""
        listed = [{"targets": [address(host)], "labels": labels} for host, labels in targets]
        new = FOLDER / "targets/new"
        new.write_text(json.dumps(listed))
        new.rename(new.with_name(file))

    def api(self, path):
        listens, said = self.server.answers(PROMETHEUS, f"/api/v1/{path}")
        if not listens:
            raise Failure(f"Prometheus refuses {path}: {said}")
        return json.loads(said)["data"]

    def query(self, query):
        return self.api(f"query?{urllib.parse.urlencode({'query': query})}")["result"]

    def number(self, query):
        return float(self.query(query)[0]["value"][1])

    def await_count(self, query, count):
        def look():
            found = len(self.query(query))
            return found == count, found
        wait_for(f"{count} x {query}", look)

    def alerts(self, *states):
        """The alerts in such a state now: waiting for their time, or firing."""
        alerts = self.api("alerts")["alerts"]
        return {named(alert["labels"]) for alert in alerts if alert["state"] in states}

    def fired_ever(self):
        """Every alert that has fired at any evaluation."""
        found = self.query('count_over_time(ALERTS{alertstate="firing"}[1h])')
        return {named(sample["metric"]) for sample in found}


def named(labels):
    """An alert with the labels that tell where it is."""
    own = [f"{label}={labels[label]}" for label in LABELS if label in labels]
    return " ".join([labels["alertname"], *own])


def divided(text, factor):
    """Rules with their durations divided. Those in comments and in texts for people stay."""
    def quotient(duration):
        form = re.fullmatch(r"(\d+)([smh])", duration)
        if not form:
            raise Failure(f"expected a duration such as 15s, 1m or 1h, found {duration}")
        seconds = int(form[1]) * {"s": 1, "m": 60, "h": 3600}[form[2]]
        if seconds % factor:
            raise Failure(f"expected a multiple of {factor} s, found {duration}")
        return f"{seconds // factor}s"

    def line(text):
        if text.lstrip().startswith("#"):
            return text
        text = re.sub(r"\[([^\]]*)\]", lambda found: f"[{quotient(found[1])}]", text)
        return re.sub(r"^(\s*(?:for|scrape_interval|evaluation_interval): )(\S+)",
                      lambda found: found[1] + quotient(found[2]), text)
    return "".join(map(line, text.splitlines(keepends=True)))


@dataclass(frozen=True)
class Plant:
    """A fault on one host, and the alert that has to name it."""
    what: str
    host: int
    # Pause frames of that kind come to a port, the pair loses frames of that priority, or neither:
    # its exporter is killed.
    frames: str = ""
    loss: int = -1
    # Its name, and its labels beside the instance.
    alert: tuple = ()

    @property
    def expected(self):
        return {f"{self.alert[0]} instance={address(self.host)} {self.alert[1]}"} \
            if self.alert else set()

    def plant(self, fleet):
        print(f"    planted: {self.what}")
        if self.frames:
            fleet.traffic.order(self.frames, self.host, "on")
        elif self.loss >= 0:
            fleet.network.lose(self.host, self.loss)
        else:
            fleet.exporters[self.host].kill()

    def clear(self, fleet):
        if self.frames:
            fleet.traffic.order(self.frames, self.host, "off")
        elif self.loss >= 0:
            fleet.network.mend(self.host)
        else:
            fleet.restart(self.host)


# One of each, and a loss that is none of an alert's business. Each is on a host of its own.
PLANTS = (
    Plant("a PFC storm, with XON in it", 4, frames="storm",
          alert=("ValidatorPfcStorm", "interface=eth2 priority=3")),
    Plant("short pauses without XON", 9, frames="pause",
          alert=("ValidatorOneWayPause", "interface=eth2 priority=4")),
    Plant("loss on lossless priority 3", 13, loss=3,
          alert=("ValidatorLosslessLoss", "pair=eth0:eth1 priority=3")),
    Plant("a killed exporter", 17, alert=("ValidatorExporterBlind", "reason=down")),
    Plant("loss on lossy priority 0", 2, loss=0),
)


def alerts(program, tally):
    fleet = Fleet(program)
    with step("Prometheus finds its targets"):
        # Half of them are written before it starts to look, half while it runs.
        fleet.start_server(FACTOR)
        half = len(HOSTS) // 2
        fleet.add_targets("rack-1.json", [(host, {}) for host in HOSTS[:half]])
        fleet.await_count("up == 1", half)
        fleet.add_targets("rack-2.json", [(host, {}) for host in HOSTS[half:]])
        fleet.await_count("up == 1", len(HOSTS))
    tally.check("targets are found in files, also in new ones", True)
    with step("figures of every host"):
        # The third port of each host receives as much as the pair: it is none of the pair's.
        fleet.await_count('validator:pair_lost:ratio1m{pair="eth0:eth1",priority="3"} < 0.001',
                          len(HOSTS))
    early = fleet.alerts("pending", "firing")
    tally.check("no alert where nothing is planted", not early, f"found {early}")
    expected = set().union(*(plant.expected for plant in PLANTS))
    for plant in PLANTS:
        plant.plant(fleet)
    with step("alerts fire"):
        fired = times("alerts that fire", expected, lambda: expected - fleet.alerts("firing"))
        for plant in PLANTS:
            if not plant.alert:
                fleet.await_count(
                    f'validator:pair_lost:ratio1m{{instance="{address(plant.host)}",'
                    f'priority="{plant.loss}"}} > 0.03', 1)
    for plant in PLANTS:
        plant.clear(fleet)
    with step("alerts clear"):
        cleared = times("alerts that clear", expected, lambda: fleet.alerts("pending", "firing"))
    for alert in sorted(expected):
        print(f"    {alert}: fired after {fired[alert]:.1f} s, "
              f"cleared after {cleared[alert]:.1f} s")
        tally.check(f"{alert}, and clears", True)
    ever = fleet.fired_ever()
    tally.check("nothing else has fired", ever == expected, f"expected {expected}, found {ever}")


def times(what, expected, left):
    """When each of the expected was not left any more; returns when none is."""
    start, gone = time.monotonic(), {}

    def look():
        found = left()
        for alert in expected - found:
            gone.setdefault(alert, time.monotonic() - start)
        return not found, f"left: {sorted(found)}"
    wait_for(what, look)
    return gone


class Usage:
    """CPU time of processes so far in seconds, and their memory in octets."""

    def __init__(self, *pids):
        self.cpu = self.rss = 0
        for pid in pids:
            # The name in parentheses may have spaces.
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            self.cpu += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            self.rss += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")


def cost(program, seconds, targets=1000):
    """Each exporter is scraped under 50 names, so that Prometheus has the work and the series of
    1,000, and an exporter shows the cost of a scrape 50 times over."""
    fleet = Fleet(program)
    exporters = [exporter.child.pid for exporter in fleet.exporters.values()]
    with step("exporters that nobody scrapes"):
        before, start = Usage(*exporters), time.monotonic()
        time.sleep(5)
        used = Usage(*exporters).cpu - before.cpu
        idle = used / (time.monotonic() - start) / len(HOSTS)
    with step(f"Prometheus with {targets} targets"):
        fleet.start_server(1)
        fleet.add_targets("fleet.json", [
            (HOSTS[number % len(HOSTS)], {"instance": f"host-{number:04}:9477"})
            for number in range(targets)])
        fleet.await_count("up == 1", targets)
    with step(f"{seconds} s"):
        server = fleet.server.child.pid

        def wal():
            return sum(file.stat().st_size for file in (FOLDER / "data/wal").iterdir())
        before = Usage(server), Usage(*exporters), wal()
        start = time.monotonic()
        time.sleep(seconds)
        after, elapsed = (Usage(server), Usage(*exporters), wal()), time.monotonic() - start
    print_cost(fleet, before, after, elapsed, idle, targets)


def print_cost(fleet, before, after, seconds, idle, targets):
    scrapes = fleet.number(f"sum(count_over_time(up[{round(seconds)}s]))")
    samples = fleet.number("avg(scrape_samples_scraped)")
    series = fleet.number('count({__name__=~".+"})')
    rules = re.findall(r"^prometheus_rule_group_last_duration_seconds\{.* (\S+)$",
                       page(PROMETHEUS, "/metrics"), re.MULTILINE)
    (server, own, wal), (server_then, own_then, wal_then) = after, before
    # Without what the exporters do by themselves.
    scrape = (own.cpu - own_then.cpu - idle * seconds * len(HOSTS)) / scrapes
    late = fleet.number("quantile(0.99, scrape_duration_seconds)")
    written = wal - wal_then
    rows = {
        "scrapes a second": f"{scrapes / seconds:.1f}",
        "samples of a scrape": f"{samples:.0f}",
        "octets of a scrape": f"{len(page(address(1), '/metrics')) / 1e3:.1f} kB",
        "99 of 100 scrapes within": f"{late * 1e3:.1f} ms",
        "series, with those of the rules": f"{series:.0f}",
        "Prometheus: share of a CPU": f"{(server.cpu - server_then.cpu) / seconds * 100:.1f} %",
        "Prometheus: an evaluation of all rules": f"{sum(map(float, rules)):.2f} s",
        "Prometheus: memory":
            f"{server.rss / 1e6:.0f} MB, {server.rss / series / 1e3:.1f} kB a series",
        "Prometheus: write-ahead log": f"{written / seconds / 1e3:.0f} kB a second, "
            f"{written / scrapes / samples:.1f} octets a scraped sample",
        "exporter: CPU of a scrape": f"{scrape * 1e3:.2f} ms",
        "exporter: share of a CPU, scraped each 15 s":
            f"{(idle + scrape / 15) * 100:.3f} %, of which {idle * 100:.3f} % unscraped",
        "exporter: memory": f"{own.rss / 1e6 / len(HOSTS):.1f} MB",
    }
    print(f"{targets} targets each 15 s, {len(HOSTS)} exporters of 3 ports, {seconds:.0f} s\n")
    print("| figure | value |\n|---|---|")
    for name, value in rows.items():
        print(f"| {name} | {value} |")


def lab():
    parser = options_of("fleet", __doc__)
    parser.add_argument("--cost", action="store_true",
                        help="read what Prometheus and an exporter cost in a fleet of 1,000")
    parser.add_argument("--seconds", type=int, default=60,
                        help="with --cost: for how long it is read, best a multiple of 15")
    options = parser.parse_args()
    need_root("a network namespace")
    # Packages can be reached from here, and not from the fleet's network.
    program = packages.prometheus(packages.Archive()).program("prometheus")
    if options.cost:
        return cost(program, options.seconds)
    tally = Tally()
    try:
        alerts(program, tally)
    except Failure as error:
        print(f"    logs: {FOLDER}")
        tally.failed.append(str(error))
    return tally.close()


if __name__ == "__main__":
    main(lab)
