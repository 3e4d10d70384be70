"""Real clients of the Open Traffic Generator API against `validator otg` on two veths, in a network
namespace of its own.

The repository's scripts run with snappi's newest and oldest release. A clone of the suite
`conformance` or of sonic-mgmt, and an otgen, are those of whoever has them.
"""

import json
import os
import signal
import subprocess
import xml.etree.ElementTree
from dataclasses import dataclass
from pathlib import Path

from shared import packages
from shared.namespaces import enter_with_veths
from shared.steps import (ROOT, VALIDATOR, Failure, Tally, bound, cargo, main, need_root,
                          options_of, output, run, step)

FOLDER = ROOT / "target/lab/otg"
TESTS = ROOT / "pfc-user/otg/tests"
# The tester's ports are the ends of a cable, or at the switch.
PORTS, ENDS = ("otg0", "otg1"), ("dut0", "dut1")
CABLE, SWITCH = [PORTS], list(zip(PORTS, ENDS))
# The ports of cases with one more.
THREE, THREE_ENDS = (*PORTS, "otg2"), (*ENDS, "dut2")
# Nothing is written beside the scripts, or into a clone.
QUIET = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}

EVERY = ("http", "https", "grpc", "grpc-pieces")
BOTH, REST = ("http", "grpc"), ("https", "grpc-pieces")
# Parts of truths.py that are right or wrong however busy the machine is.
UNTIMED = ("counts", "resumed", "octets", "pcapng", "stacks", "shortest", "payloads",
           "bad_checksums", "pause_frames", "held_queues")


class Server:
    """`validator otg` on free ports of loopback. What it says is in server.log."""

    def __init__(self, ports=PORTS):
        FOLDER.mkdir(parents=True, exist_ok=True)
        testbed, self.log = FOLDER / "testbed.toml", FOLDER / "server.log"
        # Veths have no speed of their own, and not every client says one.
        testbed.write_text("".join(
            f'[ports.{port}]\ninterface = "{port}"\nline_rate = "1G"\n' for port in ports))
        with open(self.log, "w") as log:
            self.child = subprocess.Popen(
                bound(VALIDATOR, "otg", "--testbed", testbed, "--grpc", "127.0.0.1:0",
                      "--http", "127.0.0.1:0"),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        # Such as `ready: gRPC A, HTTP http://B and https://B`.
        line = self.child.stdout.readline()
        if not line.startswith("ready: gRPC "):
            raise Failure(f"validator otg ended with {self.child.wait()}: {self.log.read_text()}")
        self.grpc, http = line.removeprefix("ready: gRPC ").split(", HTTP http://")
        self.http = http.split(" ")[0]

    def __enter__(self):
        return self

    def location(self, transport):
        """What snappi calls the server by."""
        return self.grpc if transport.startswith("grpc") else f"{transport}://{self.http}"

    def __exit__(self, error, *_):
        """Stops the server as its user does, and expects that it says so by its exit code."""
        self.child.send_signal(signal.SIGTERM)
        status = self.child.wait()
        if status != 0 and not error:
            raise Failure(f"validator otg ended with {status} at SIGTERM")


class Switch:
    """The simulated switch between the tester's ports, which are of 1 Gbit/s."""

    def __init__(self, faults=(), more=(), ends=ENDS):
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.counters = FOLDER / "switch.sock"
        # One of a lab that was killed may be left.
        self.counters.unlink(missing_ok=True)
        words = [word for end in ends for word in ("--port", end)]
        words += [word for fault in faults for word in ("--fault", fault)]
        with open(FOLDER / "switch.log", "w") as log:
            # It runs until its standard input is closed.
            self.child = subprocess.Popen(
                bound(VALIDATOR, "dut", "switch", "--lossless", "3,4", "--line-rate", "1G",
                      "--counters", self.counters, *more, *words),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        # It takes frames once it says so.
        if not self.child.stdout.readline():
            self.__exit__(None)

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        said, _ = self.child.communicate()
        if self.child.returncode == 0:
            self.report = json.loads(said)
        elif not error:
            raise Failure(f"the switch ended with {self.child.returncode}; switch.log says why")

    @property
    def stood_still(self):
        """True if it lost frames or sent them late because its process did not run."""
        return bool(self.report["overruns"] or self.report["stalls"])


@dataclass(frozen=True)
class Script:
    """A script of the repository. It takes a transport, the server, two locations, and perhaps
    names of parts; without any, all run that need no more than a cable."""
    name: str
    transports: tuple = EVERY
    parts: tuple = ()
    environment: str = "snappi"
    # None is a cable; else the switch with these faults is between the ports.
    faults: tuple | None = None

    @property
    def title(self):
        client = packages.ENVIRONMENTS[self.environment][0]
        return " ".join([self.name, *self.parts, "with", client])

    def run(self, tally, python):
        """Runs it over each of its transports, with a new server and perhaps a new switch each
        time."""
        for transport in self.transports:
            with tally.trying(f"{self.title} over {transport}"):
                if self.faults is None:
                    self.over(transport, python)
                else:
                    with Switch(self.faults):
                        self.over(transport, python)

    def over(self, transport, python):
        with Server() as server:
            run(python, TESTS / f"python/{self.name}.py", transport, server.location(transport),
                *PORTS, *self.parts,
                env={**QUIET, "VALIDATOR_COUNTERS": f"{server.location('http')}/counters"})


AT_SWITCH = (Script("truths", BOTH, ("after_stop",), faults=()),
             Script("truths", BOTH, ("loss",), faults=("drops=all:100",)))
# What takes time runs over one of the ways to each service.
ALL = (
    Script("client"),
    Script("client", BOTH, environment="snappi-oldest"),
    Script("otgen"),
    Script("storm", BOTH),
    Script("truths", BOTH),
    Script("truths", REST, UNTIMED),
    *AT_SWITCH,
)
# Those of `cargo xtask test`, beside which other tests may run.
SMOKE = (Script("client", BOTH), Script("otgen", BOTH), Script("truths", BOTH, UNTIMED), *AT_SWITCH)


def run_scripts(tally, scripts):
    """Runs scripts, each with its Python, in a namespace with what they need between the ports."""
    for cables, at_switch in ((CABLE, False), (SWITCH, True)):
        enter_with_veths(*cables)
        for script, python in scripts:
            if (script.faults is not None) == at_switch:
                script.run(tally, python)


# The stages of otgen as its authors have them in a pipe.
PIPE = """set -o pipefail
"$OTGEN" create flow --name f1 --txl "$1" --rxl "$2" --count "$3" --rate 1000 --loss "${@:5}" |
    "$OTGEN" run --insecure --api "$4" --metrics flow |
    "$OTGEN" transform"""
# Frames of the flow: half a second of it.
FRAMES = 500


def otgen(program):
    """Runs the pipe, and expects all frames in the last metrics that it prints. By itself the first
    stage asks for TCP, and for no size."""
    for flow in ((), ("--proto", "udp", "--size", "128")):
        with Server() as server:
            said = output("bash", "-c", PIPE, "otgen", *PORTS, str(FRAMES),
                          server.location("https"), *flow, env={**os.environ, "OTGEN": program})
            print(said)
        found = counts(said)
        if found != (FRAMES, FRAMES):
            raise Failure(f"expected {FRAMES} frames sent and received, found {found}")


def counts(said):
    """Frames sent and received in the last line of metrics. Its JSON has 64-bit integers as
    strings, and no field that is 0."""
    try:
        flow = json.loads(said.splitlines()[-1])["flow_metrics"][0]
    except (IndexError, KeyError, ValueError):
        raise Failure(f"expected metrics, found {said!r}") from None
    return int(flow.get("frames_tx", 0)), int(flow.get("frames_rx", 0))


# Folders of the suite's tests that need no control plane, and what has to pass of them: it also
# passes where it does not find them, or they skip themselves.
SUITES = ("feature/b2b/packet", "feature/b2b/interfaces")
MUST_PASS = {
    "test_ip_neighbors", "test_ipv6_udp_port_values", "test_tcp_port_incr_decr",
    "test_tcp_port_value", "test_tcp_port_values", "test_udp_port_incr_decr",
    "test_udp_port_value", "test_udp_port_values", "test_vxlan_inner_ipv4",
    "test_vxlan_inner_ipv6",
}


def conformance(clone, python, transport):
    """Runs the Python tests of the API's authors."""
    folder = FOLDER / "conformance"
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.xml"
    # That of the run before says nothing of this one.
    report.unlink(missing_ok=True)
    with Server() as server:
        # The suite reads it from the working directory.
        (folder / "test-config.yaml").write_text(
            f'otg_host: "{server.location(transport)}"\notg_ports: {json.dumps(PORTS)}\n'
            "otg_speed: speed_1_gbps\notg_capture_check: true\n"
            f"otg_grpc_transport: {json.dumps(transport == 'grpc')}\n")
        run(python, "-m", "pytest", "-p", "no:cacheprovider", "-m", "dp or cpdp",
            "-c", clone / "pytest.ini", "--rootdir", clone, "--junitxml", report,
            *(clone / suite for suite in SUITES), cwd=folder,
            env={**QUIET, "PYTHONPATH": str(clone)})
    if missing := MUST_PASS - passed(report.read_text()):
        raise Failure(f"expected these to pass, which did not run: {sorted(missing)}")


def passed(report):
    """The tests that passed by pytest's report: the element of one holds nothing, such as a
    failure or the reason of a skip."""
    cases = xml.etree.ElementTree.fromstring(report).iter("testcase")
    return {case.get("name") for case in cases if len(case) == 0}


@dataclass(frozen=True)
class Case:
    """A case of SONiC's helpers: what the switch is like, and what the helper finds wrong."""
    name: str
    faults: tuple = ()
    wrong: str = ""
    transport: str = "grpc"
    # Further options of the switch.
    more: tuple = ()
    # No gap of the storm explains what the helper finds.
    despite_gaps: bool = False
    # Two ports send to a third.
    three: bool = False

    @property
    def title(self):
        faults = " and ".join(self.faults)
        return f"{self.name} over {self.transport}" + (f" on a switch that {faults}" * bool(faults))

    @property
    def ports(self):
        return THREE if self.three else PORTS

    @property
    def ends(self):
        return THREE_ENDS if self.three else ENDS


# XOFF is repeated each half millisecond.
OFTEN = ("--xoff-quanta", "3000")
# At 1 Gbit/s the default queues hold so much of ten seconds that losses are below what helpers
# for faster switches expect.
SHALLOW = ("--lossy-queue", "128KiB")
# Every helper passes on a good switch, and fails on one with a fitting fault.
GOOD = (
    *map(Case, ("pause_lossless", "pause_lossy", "pause_multi_lossless", "pause_multi_lossy",
                "pause_zero_mac", "pause_unset_bit", "pause_counter", "global_pause")),
    Case("valid_pfc_frame", more=OFTEN),
    *map(Case, ("tx_drop_counter", "pfcwd_runtime", "pfcwd_burst_storm", "pfcwd_basic")),
    *(Case(name, more=SHALLOW, three=True)
      for name in ("m2o_lossless", "m2o_lossy", "m2o_lossless_lossy", "m2o_fluctuating",
                   "external_storms", "throttling_storms")),
)
CASES = (
    *GOOD,
    Case("pause_counter", transport="http"),
    Case("pfcwd_basic", transport="http"),
    Case("pause_lossless", ("ignores-pfc",), "should be paused"),
    Case("pause_multi_lossy", ("lossy-obeys-pfc",), "dropped packet"),
    Case("valid_pfc_frame", ("no-upstream-pfc",), "No PFC frames", more=OFTEN),
    # It sends less than comes in, and does not say so.
    Case("tx_drop_counter", ("throttles=20", "no-upstream-pfc"), "Tx drop counter"),
    Case("pfcwd_runtime", ("drops=lossless",), "are dropped"),
    Case("pfcwd_burst_storm", ("loses-held=1",), "should be dropped"),
    Case("pfcwd_basic", ("loses-held=1",), "Loss rate"),
    # The port that is not paused goes on, and its frames are dropped.
    Case("m2o_lossless", ("no-upstream-pfc",), "packet drops", more=SHALLOW, three=True),
    Case("m2o_lossy", ("drops=lossless:20",), "around 10 percent", more=SHALLOW, three=True),
    Case("m2o_lossless_lossy", ("throttles=90",), "around 5 percent", more=SHALLOW, three=True),
    Case("m2o_fluctuating", ("drops=lossless:20",), "0% loss", more=SHALLOW, three=True),
    *(Case(name, ("loses-held=1",), "0% loss", more=SHALLOW, despite_gaps=True, three=True)
      for name in ("external_storms", "throttling_storms")),
)
# How the script ends where a helper's assertions failed, and where the tester's own storm had gaps.
ASSERTED, GAPS = 1, 75
ATTEMPTS = 5


def sonic(clone, python, only):
    """Runs the cases with that word in their names, each with a new server and a new switch."""
    cases = [case for case in CASES if only in case.name]
    if not cases:
        raise Failure("no case has that word in its name")
    enter_with_veths(*zip(THREE, THREE_ENDS))
    tally = Tally()
    for number, case in enumerate(cases, 1):
        print(f"{number}/{len(cases)}:")
        with tally.trying(case.title):
            judge(clone, python, case)
    return tally.close()


def judge(clone, python, case):
    """Calls a case again if the tester's own storm had gaps, or if the switch did not run while a
    helper failed that should pass: that says nothing."""
    log = FOLDER / f"sonic-{'-'.join((case.name, *case.faults))}.log"
    for _ in range(ATTEMPTS):
        status, stood_still = call(clone, python, case, log)
        last = (log.read_text().splitlines() or [""])[-1]
        print(f"    {last}")
        if status == GAPS and not case.despite_gaps:
            print("    the storm had gaps, as the machine stood still")
        elif status == 0 and not case.wrong:
            return
        elif status in (ASSERTED, GAPS) and case.wrong and case.wrong in last:
            return
        elif status == ASSERTED and not case.wrong and stood_still:
            print("    the switch did not run for a time, as the machine stood still")
        else:
            raise Failure(f"expected {case.wrong or 'no failure'!r}, found {last!r} ({log})")
    raise Failure(f"undecided: the machine stood still each of {ATTEMPTS} times; run it on an "
                  "idle one")


def call(clone, python, case, log):
    with (Switch(case.faults, case.more, case.ends) as switch, Server(case.ports) as server,
          open(log, "w") as said):
        status = subprocess.run(
            [python, TESTS / "sonic/pfc.py", clone, case.transport,
             server.location(case.transport), server.location("http"), switch.counters, case.name,
             *case.ports], stdout=said, stderr=said, cwd=FOLDER, env=QUIET).returncode
    return status, switch.stood_still


def smoke():
    """What measures no time: all calls, counts and octets. The validator is that which the tests
    were built with."""
    python, tally = os.environ.get("VALIDATOR_SNAPPI"), Tally()
    if not python:
        raise Failure("VALIDATOR_SNAPPI is not set")
    run_scripts(tally, [(script, python) for script in SMOKE])
    with tally.trying("what stands in for a SONiC host"):
        # Without the helpers, which only a clone has.
        with Switch() as switch:
            run(python, TESTS / "sonic/offline.py", switch.counters,
                *(case.name for case in CASES), env=QUIET)
    return tally.close()


def chosen(only, tally):
    """The scripts with a word in their titles, and the Python of each. Those with the oldest
    client are skipped where this machine cannot have it."""
    scripts = [script for script in ALL if only in script.title]
    if not scripts:
        titles = ", ".join(script.title for script in ALL)
        raise Failure(f"expected a word of one of these: {titles}")
    found = []
    with step("packages of the scripts"):
        for script in scripts:
            try:
                found.append((script, packages.python(script.environment)))
            except Failure as error:
                if script.environment != "snappi-oldest":
                    raise
                tally.skipped.append(f"{script.title}: {error}")
    return found


def arguments():
    parser = options_of("otg", __doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--conformance", type=Path, metavar="DIR",
                      help="clone of the repository conformance of open-traffic-generator, whose "
                      "tests of data and neighbours run, too")
    what.add_argument("--sonic", type=Path, metavar="DIR",
                      help="clone of the repository sonic-mgmt of sonic-net, whose PFC helpers run "
                      "alone, with the simulated switch between the ports")
    what.add_argument("--offline", action="store_true",
                      help="only the clients against an engine that records: neither root nor "
                      "frames")
    what.add_argument("--smoke", action="store_true", help="what `cargo xtask test` runs of it")
    parser.add_argument("--otgen", type=Path, metavar="FILE",
                        help="the program otgen, which then runs, too")
    parser.add_argument("--only", default="", metavar="WORD",
                        help="only scripts, or cases of --sonic, whose names have this word")
    options = parser.parse_args()
    if options.otgen and (options.sonic or options.offline):
        parser.error("--otgen runs beside the scripts, and not with --sonic or --offline")
    return options


def lab():
    options, tally = arguments(), Tally()
    if options.smoke:
        return smoke()
    if options.sonic:
        need_root("a network namespace")
        with step("packages of sonic-mgmt's helpers"):
            python = packages.python("sonic")
        return sonic(options.sonic.resolve(strict=True), python, options.only)
    with step("client"):
        python = packages.python("snappi")
    with step("clients against an engine that records"):
        run(*cargo("test", "--package", "validator-otg", "--test", "snappi"), cwd=ROOT,
            env={**os.environ, "VALIDATOR_SNAPPI": str(python)})
    if options.offline:
        return 0
    need_root("a network namespace, without --offline,")
    scripts = chosen(options.only, tally)
    if options.conformance:
        python = packages.python("conformance")
    if options.otgen or options.conformance:
        enter_with_veths(*CABLE)
    if options.otgen:
        with tally.trying("otgen over https"):
            otgen(options.otgen.resolve(strict=True))
    for transport in ("https", "grpc") if options.conformance else ():
        with tally.trying(f"conformance over {transport}"):
            conformance(options.conformance.resolve(strict=True), python, transport)
    run_scripts(tally, scripts)
    return tally.close()


if __name__ == "__main__":
    main(lab)
