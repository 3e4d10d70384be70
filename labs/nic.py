"""Drivers of real network cards in QEMU with virtual time: check, watch, PFC cases and OTG.

Tester, simulated switch and pairs of network cards are in one guest; QEMU hubs are the cables. A
card with several queues is cabled by taps of the host instead, for a hub has one queue.
"""

from dataclasses import dataclass

from shared import guest, packages
from shared.namespaces import Namespace, enter
from shared.steps import ROOT, VALIDATOR, Tally, elapsed, main, options_of, step

KERNELS = ("6.1", "6.12")
# A repetition takes up to a minute; several times as long on a busy machine.
LIMIT = 1800
# Modules of the switch's ports, and of the cable that replaces the switch at first.
MODULES = ("virtio_pci", "virtio_net", "sch_ingress", "cls_matchall", "act_mirred")
# The last octet is the port's number.
TESTER_MAC, SWITCH_MAC = "52:54:00:00:00:0", "52:54:00:00:01:0"
TESTBED = """\
name = "lab-nic"
[dut]
kind = "external"
[ports]
tx = {{ interface = "t0" }}
rx = {{ interface = "t1" }}
{line_rate}
[qos]
trust = "dscp"
dscp_map = "dscp-mod-8"
lossless = [3, 4]
[limits]
max_response = "{max_response}"
max_residence = "2s"
load = {load}
[hooks]
configure = "/switch"
[facts]
watchdog = "off"
"""


@dataclass(frozen=True)
class Card:
    """An emulated network card as a port of the tester. The real link's speed is 1 Gbit/s; an
    emulated machine manages a tenth of it."""
    device: str
    driver: str
    # Where it knows none, the testbed names one that the machine manages.
    line_rate: str = ""
    load: float = 0.1
    max_response: str = "2ms"
    # Obeys 802.3x by default.
    pauses: bool = True
    # Takes its link down when an offload is changed, as for tags.
    resets: bool = False
    # The driver runs programs itself on these kernels, and otherwise the stack does.
    native: tuple = KERNELS
    queues: int = 1
    # Its frames are handed on at once. On a busy host a good switch failed with igb where they were
    # not; with e1000 on Linux 6.1 it failed either way.
    prompt: bool = False

    @property
    def name(self):
        """In the table of drivers."""
        return self.driver if self.queues == 1 else f"{self.driver}, {self.queues} queues"

    def mode(self, kernel):
        return "driver" if kernel in self.native else "skb"

    def devices(self):
        """QEMU arguments of the tester's two ports and the switch's."""
        return self.on_hubs() if self.queues == 1 else self.on_taps()

    def on_hubs(self):
        arguments, roots = [], []
        for number in range(2):
            bus = ""
            if self.device == "igb":
                # It may be a multi-function device and needs a slot of its own behind a root port.
                slot = number + 1
                roots += ["-device", f"pcie-root-port,id=rp{number},chassis={slot},slot={slot}"]
                bus = f",bus=rp{number}"
            for end, device, mac, more in (("t", self.device, TESTER_MAC, bus),
                                           ("d", "virtio-net-pci", SWITCH_MAC, "")):
                arguments += ["-netdev", f"hubport,id={end}{number},hubid={number}", "-device",
                              f"{device},netdev={end}{number},mac={mac}{number},romfile={more}"]
        return roots + arguments

    def on_taps(self):
        """The tester's ports have vectors for both directions of each queue, and two more."""
        arguments = []
        vectors = f",mq=on,vectors={2 * self.queues + 2}"
        for number in range(2):
            for tap, queues, mac, more in ((f"tester{number}", self.queues, TESTER_MAC, vectors),
                                           (f"switch{number}", 1, SWITCH_MAC, "")):
                arguments += [
                    "-netdev",
                    f"tap,id={tap},ifname={tap},script=no,downscript=no,queues={queues}",
                    "-device", f"virtio-net-pci,netdev={tap},mac={mac}{number},romfile={more}"]
        return arguments


# virtio: the switch of the guest was seen to take 2.6 ms.
VIRTIO = {"device": "virtio-net-pci", "driver": "virtio_net", "line_rate": "100M", "load": 1.0,
          "pauses": False, "max_response": "4ms"}
# Where the stack runs the tester's programs, they take their time from the switch in the same guest:
# between two frames that it had held it was seen to take 7.3 ms (Linux 6.1, idle host). With more
# than 9 ms no XON would find a pause in force.
SHARED = "8ms"
E1000 = {"load": 0.08, "max_response": SHARED, "resets": True, "native": ()}
# Models that exercise different paths of the tool.
CARDS = {
    "virtio-net": Card(**VIRTIO),
    "virtio-net-queues": Card(**VIRTIO, queues=2),
    "igb": Card("igb", "igb", prompt=True),
    "vmxnet3": Card("vmxnet3", "vmxnet3", pauses=False, native=("6.12",), max_response=SHARED),
    "e1000e": Card("e1000e", "e1000e", **E1000),
    "e1000": Card("e1000", "e1000", **E1000),
}


def cable_taps(card):
    """Makes pairs of taps as cables: all frames of a multi-queue tap go to a tap of one queue and
    back, those to reserved addresses too, which a bridge would keep."""
    links, filters = [], []
    for number in range(2):
        many, one = f"tester{number}", f"switch{number}"
        links += [f"tuntap add {many} mode tap multi_queue", f"tuntap add {one} mode tap",
                  f"link set {many} up", f"link set {one} up"]
        for near, far in ((many, one), (one, many)):
            filters += [f"qdisc add dev {near} clsact",
                        f"filter add dev {near} ingress protocol all u32 match u32 0 0 "
                        f"action mirred egress redirect dev {far}"]
    enter()
    Namespace().batch("ip", "\n".join(links))
    Namespace().batch("tc", "\n".join(filters))


def boot(tools, tree, card, kernel, plan):
    settings = {"DRIVER": card.driver, "RATE": card.line_rate or "1G", "PLAN": plan,
                "MODE": card.mode(kernel), "PAUSE": "1" if card.pauses else "",
                "RESETS": "1" if card.resets else ""}
    script = "".join(f"{name}={value}\n" for name, value in settings.items())
    script += (guest.SCRIPTS / "nic.sh").read_text()
    modules = (*MODULES, card.driver)
    initrd = guest.Initrd(ROOT / f"target/lab/nic-{card.driver}", tools, tree, modules, script)
    initrd.stripped(VALIDATOR, "tools/validator")
    for name in ("tc", "ethtool"):
        initrd.program(tools.program(name), f"tools/{name}")
    initrd.folder(ROOT / "configs", "configs")
    initrd.copy(guest.SCRIPTS / "nic-switch.sh", "switch")
    rate = f'line_rate = "{card.line_rate}"' if card.line_rate else ""
    testbed = TESTBED.format(line_rate=rate, max_response=card.max_response, load=card.load)
    initrd.write("testbed.toml", testbed.encode())
    clock = "virtual"
    if card.queues > 1:
        # Frames that go by the host need time in which the guest waits for them.
        clock = "waiting"
        cable_taps(card)
    machine = guest.Machine(tools, tree, initrd.pack(), clock, devices=card.devices(),
                            prompt=card.prompt)
    return machine.work(LIMIT)


def modes(pairs, mode):
    """Where programs run, by driver and kernel: the table of the README."""
    names = list(dict.fromkeys(model for model, _ in pairs))
    kernels = list(dict.fromkeys(kernel for _, kernel in pairs))
    lines = [f"| driver |{''.join(f' Linux {kernel} |' for kernel in kernels)}",
             f"|---|{'---|' * len(kernels)}"]
    for name in names:
        cells = "".join(f" {mode(name, kernel)} |" for kernel in kernels)
        lines.append(f"| {CARDS[name].name} |{cells}")
    return "\n".join(lines) + "\n"


def lab():
    parser = options_of("nic", __doc__)
    parser.add_argument("--model", choices=CARDS, action="append",
                        help="a model of the tester's ports, instead of all")
    parser.add_argument("--kernel", choices=guest.KERNELS, action="append",
                        help="a kernel of the guest, instead of 6.1 and 6.12")
    parser.add_argument("--quick", action="store_true",
                        help="one repetition per model, as in `cargo xtask test`, instead of five")
    options = parser.parse_args()
    plan = "nic-quick" if options.quick else "nic"
    pairs = [(model, kernel) for model in options.model or CARDS
             for kernel in options.kernel or KERNELS]
    archive = packages.Archive()
    tools, tally, rows = packages.tools(archive), Tally(), {}
    for model, kernel in pairs:
        tree, name = guest.kernel(archive, kernel), f"{model} on Linux {kernel}"
        with step(name):
            done = boot(tools, tree, CARDS[model], kernel, plan)
        tally.passed += done.passed
        tally.failed += [f"{name}: {line}" for line in done.failed]
        for cells in done.rows:
            rows[model, kernel] = f"{cells} | {elapsed(done.seconds)}"
    print(f"\n| driver | kernel | XDP | queues | plan {plan} | time |\n|---|---|---|---|---|---|")
    for (model, _), cells in rows.items():
        print(f"| {CARDS[model].driver} | {cells} |")

    def mode(model, kernel):
        return rows[model, kernel].split(" | ")[1] if (model, kernel) in rows else "-"
    print(f"\n{modes(pairs, mode)}")
    return tally.close()


if __name__ == "__main__":
    main(lab)
