#!/usr/bin/python3
"""Captures the packets of this folder anew: see README.md."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

SHIM = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so"
NET = "/usr/share/doc/ibsim-utils/net-examples/net"
HERE = pathlib.Path(__file__).resolve().parent

QUIET = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
# ibsim's struct sim_request: 24 octets of addresses and padding, 8 of context, then the MAD.
HEADER, MAD = 32, 256
PACKET = re.compile(r'^\d+ +(read|write)\(\d+, "((?:\\x[0-9a-f]{2}){%d})"' % (HEADER + MAD), re.M)

# Name, attribute and command. Switch1 has LID 2, and Hca1, where the requests come from, is at its port 1.
QUERIES = [
    ("node-info-directed", 0x11, "smpquery -D nodeinfo 0,1"),
    ("node-info-lid", 0x11, "smpquery nodeinfo 2"),
    ("node-info-hca", 0x11, "smpquery nodeinfo 1"),
    ("node-description-directed", 0x10, "smpquery -D nodedesc 0,1"),
    ("node-description-lid", 0x10, "smpquery nodedesc 2"),
    ("switch-info-directed", 0x12, "smpquery -D switchinfo 0,1"),
    ("switch-info-lid", 0x12, "smpquery switchinfo 2"),
    ("port-info-directed", 0x15, "smpquery -K -D portinfo 0,1 0"),
    ("port-info-two-hops", 0x15, "smpquery -K -D portinfo 0,1,3 3"),
    ("port-info-lid", 0x15, "smpquery -K portinfo 2 2"),
    ("port-info-hca", 0x15, "smpquery -K portinfo 1 1"),
    ("linear-forwarding-table-directed", 0x19, "smpdump -D 0,1 0x19 0"),
    ("linear-forwarding-table-lid", 0x19, "smpdump 2 0x19 0"),
]


def packets(trace):
    """Direction and octets of the MADs in what strace wrote."""
    for direction, text in PACKET.findall(trace):
        yield direction, bytes.fromhex(text.replace("\\x", ""))[HEADER:]


def store(name, mad):
    octets = mad.hex()
    lines = [octets[at : at + 64] for at in range(0, len(octets), 64)]
    (HERE / f"{name}.hex").write_text("\n".join(lines) + "\n")


def until(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    sys.exit(f"{what}: not seen in {seconds} s")


def traced(command, trace):
    return ["strace", "-f", "-e", "trace=read,write", "-xx", "-s", "600", "-o", trace, "-E", f"LD_PRELOAD={SHIM}"] + command.split()


def main():
    socket = f"golden-{os.getpid()}"
    env = dict(os.environ, IBSIM_SOCKNAME=socket, SIM_HOST="Hca1", OSM_TMP_DIR=".", OSM_CACHE_DIR=".")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        ibsim = subprocess.Popen(["ibsim", "-s", NET], env=env, **{**QUIET, "stdin": subprocess.PIPE})
        opensm = None
        try:
            until("ibsim's socket", lambda: f"@{socket}:ctl" in pathlib.Path("/proc/net/unix").read_text())
            # LIDs and forwarding tables.
            subprocess.run(["opensm", "-o", "-g", "0", "-f", "once.log"], env=dict(env, LD_PRELOAD=SHIM), check=True, **QUIET)
            for name, attribute, command in QUERIES:
                run = subprocess.run(traced(command, "query.trace"), env=env, check=True, capture_output=True, text=True)
                found = [(way, mad) for way, mad in packets(pathlib.Path("query.trace").read_text()) if mad[16:18] == attribute.to_bytes(2, "big")]
                (_, request), (_, response) = found[-2:]
                store(f"{name}.request", request)
                store(f"{name}.response", response)
                (HERE / f"{name}.txt").write_text(f"$ {command}\n{run.stdout}")
            opensm = subprocess.Popen(traced("opensm -g 0 -f osm.log", "opensm.trace"), env=env, start_new_session=True, **QUIET)
            until("opensm as master", lambda: "MASTER" in (pathlib.Path("osm.log").read_text() if os.path.exists("osm.log") else ""))
            # A link that goes down makes the switch send trap 128, which the subnet manager represses.
            ibsim.stdin.write(b'unlink "Hca2"[2]\n')
            ibsim.stdin.flush()

            def notice(method, number):
                mads = (mad for _, mad in packets(pathlib.Path("opensm.trace").read_text()))
                wanted = (mad for mad in mads if mad[1] == 1 and mad[3] == method and mad[16:18] == b"\0\2" and mad[68:70] == number.to_bytes(2, "big"))
                return next(wanted, None)

            # Trap 144: opensm has set IsSM in the CapabilityMask of its port.
            for name, method, number in [("notice-128.trap", 5, 128), ("notice-128.trap-repress", 7, 128), ("notice-144.trap", 5, 144)]:
                store(name, until(name, lambda: notice(method, number)))
        finally:
            if opensm:
                # Not strace, which waits for what it traces.
                os.killpg(opensm.pid, signal.SIGKILL)
                opensm.wait()
            ibsim.terminate()
            ibsim.wait()


main()
