"""Soft-RoCE (rdma_rxe) of Debian's stock kernel in QEMU, for the RC cases.

Without --test, `validator run` with the lab's testbed and the arguments after `--`, such as
`--plan rc`, runs beside the guest, and its exit code is the lab's.
"""

import json
import os
import secrets
import signal
import subprocess

from shared import guest, packages
from shared.namespaces import Namespace, enter
from shared.steps import (ROOT, VALIDATOR, Failure, Tally, bound, main, options_of, run, shown,
                          step)

# The link between the tester and the guest is a tap.
TAP, HOST_MAC, GUEST_MAC = "tap0", "02:00:00:00:16:01", "02:00:00:00:16:02"
# Of the host, and of the guest. From the blocks for benchmarks (RFC 2544, RFC 5180), which are not
# routed anywhere.
ADDRESSES = (("198.18.16.1", "198.18.16.2", 24), ("2001:2:0:16::1", "2001:2:0:16::2", 64))
AGENT_PORT = 18515
# Booting takes 10 s; several times as long on a busy machine.
BOOT = 180
# rdma_rxe requests the ICRC from `crc32` by name.
MODULES = ("virtio_pci", "virtio_net", "crc32_generic", "ib_uverbs", "rdma_rxe")
TESTBED = "configs/testbeds/rxe.toml"
# Plans, with the exit code that the validator returns for rdma_rxe, and the checks that fail.
EXPECTED = {
    "configs/plans/rxe.toml": (0, []),
    # rdma_rxe goes on after the eighth request, and never completes.
    "configs/plans/rxe-endless.toml": (1, ["requests", "one-completion", "qp-error"]),
}


def make_tap(mtu):
    enter()
    lines = ["link set lo up", f"tuntap add {TAP} mode tap",
             f"link set {TAP} address {HOST_MAC} mtu {mtu} up"]
    for host, peer, prefix in ADDRESSES:
        nodad = " nodad" if ":" in host else ""
        lines += [f"address add {host}/{prefix} dev {TAP}{nodad}",
                  f"neighbour replace {peer} lladdr {GUEST_MAC} dev {TAP} nud permanent"]
    Namespace().batch("ip", "\n".join(lines))


def make_initrd(tools, tree, mtu, token):
    small = ROOT / "target/lab/validator-with-verbs"
    small.parent.mkdir(parents=True, exist_ok=True)
    # The guest keeps its files in memory.
    run("strip", "-o", small, ROOT / "target/suite/validator")
    script = (guest.SCRIPTS / "rxe.sh").read_text()
    initrd = guest.Initrd(ROOT / "target/lab/rxe", tools, tree, MODULES, script)
    pairs = " ".join(f"{peer}/{prefix},{host}" for host, peer, prefix in ADDRESSES)
    initrd.write("settings", f'MTU={mtu} PEER_MAC={HOST_MAC} PAIRS="{pairs}" PORT={AGENT_PORT} '
                 f"TOKEN={token}\n".encode())
    initrd.program(small, "tools/validator")
    initrd.program(tools.program("rdma"), "tools/rdma")
    # The folder in which libibverbs looks for the provider is compiled in.
    provider = tools.one("usr/lib/x86_64-linux-gnu/libibverbs/librxe-*")
    initrd.program(provider, provider.relative_to(tools.folder))
    driver = "etc/libibverbs.d/rxe.driver"
    initrd.copy(tools.folder / driver, driver)
    return initrd.pack()


class Lab:
    """A guest whose agent is ready, for programs that run beside it."""

    def __init__(self, mtu):
        archive = packages.Archive()
        tools, tree = packages.tools(archive), guest.kernel(archive, "6.1")
        self.token = secrets.token_hex(16)
        with step("initial RAM disk"):
            initrd = make_initrd(tools, tree, mtu, self.token)
        make_tap(mtu)
        devices = ["-netdev", f"tap,id=net,ifname={TAP},script=no,downscript=no",
                   "-device", f"virtio-net-pci,netdev=net,mac={GUEST_MAC},romfile="]
        with step("guest, to the agent's `ready`"):
            machine = guest.Machine(tools, tree, initrd, cpus=1, memory=512, devices=devices)
            self.guest = machine.start()
            self.guest.wait_for("ready: ", BOOT)

    def run(self, *command):
        """Runs a program in the namespace of the tap, with the agent's token in VALIDATOR_TOKEN;
        returns its exit code. A signal ends it in its own way: Ctrl-C reaches it by itself."""
        print(f"==> {shown(command)}", flush=True)
        child = subprocess.Popen(bound(*command, by="TERM"), cwd=ROOT,
                                 env={**os.environ, "VALIDATOR_TOKEN": self.token})
        kept = [(number, signal.signal(number, then)) for number, then in (
            (signal.SIGINT, lambda *_: None),
            (signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM)))]
        status = child.wait()
        for number, handler in kept:
            signal.signal(number, handler)
        if self.guest.qemu.poll() is not None:
            raise Failure(f"the guest ended too soon; its console:\n{self.guest.last_lines()}")
        # As a shell reports it.
        return status if status >= 0 else 128 - status

    def validate(self, *arguments):
        named = any(word == "--testbed" or word.startswith("--testbed=") for word in arguments)
        testbed = [] if named else ["--testbed", TESTBED]
        return self.run(VALIDATOR, "run", *testbed, *arguments)


def test(machine):
    """Runs the plans in one boot."""
    tally, out = Tally(), ROOT / "target/lab/results"
    for plan, expected in EXPECTED.items():
        status = machine.validate("--plan", plan, "--out", str(out))
        checks = json.loads((out / "report.json").read_text())["cases"][0]["checks"]
        found = status, [check["check"] for check in checks if check["verdict"] == "fail"]
        tally.check(f"{plan} on rdma_rxe", found == expected,
                    f"expected exit code and failed checks {expected}, found {found}")
    return tally.close()


def mtu(text):
    number = int(text)
    if not 1280 <= number <= 9000:
        raise ValueError
    return number


def lab():
    parser = options_of("rxe", __doc__)
    # Enough for the path MTU 4096.
    parser.add_argument("--mtu", type=mtu, default=4500,
                        help="MTU of the link, 1280 to 9000; rxe uses the largest path MTU that "
                        "fits: with 1500 that is 1024")
    parser.add_argument("--exec", action="store_true",
                        help="run another program than the validator next to the guest, such as a "
                        "shell: its path and arguments come after `--`")
    parser.add_argument("--test", action="store_true",
                        help="run the plans of `cargo xtask test`, and compare their verdicts")
    parser.add_argument("arguments", nargs="*", help="passed on to `validator run`")
    options = parser.parse_args()
    if options.exec and not options.arguments:
        raise Failure("--exec needs a program: cargo xtask lab rxe --exec -- PROGRAM [ARGUMENTS]")
    machine = Lab(options.mtu)
    if options.test:
        return test(machine)
    work = machine.run if options.exec else machine.validate
    return work(*options.arguments)


if __name__ == "__main__":
    main(lab)
