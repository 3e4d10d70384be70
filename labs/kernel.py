"""Every BPF program on every kernel of the range, in QEMU with virtual time.

The kernels are stock ones of Debian: 6.1 and 6.12, on which the programs have to work; 5.10, which
is too old and has to be named so; and the newest that there are packages of.
"""

import json

from shared import guest, packages
from shared.steps import (ROOT, VALIDATOR, Failure, Tally, elapsed, main, options_of, output, step,
                          tests)

MUST_WORK = ("6.1", "6.12")
# The test program that the guest runs.
TESTS = "traffic"
MODULES = ("veth", "sch_ingress", "cls_bpf", "act_mirred", "vxlan")
# Seconds after which a guest hangs. A kernel takes at most two minutes by itself, and took twenty
# with the rest of the suite beside it on a slow machine.
LIMIT = 2400


def test_program():
    """The path of the test program, built first if necessary."""
    command = [*tests(TESTS), "--no-run", "--message-format", "json"]
    built = {}
    for line in output(*command, cwd=ROOT).splitlines():
        message = json.loads(line)
        if message.get("executable"):
            built[message["target"]["name"]] = message["executable"]
    return built[TESTS]


def boot(tools, name, tree, script, clock, program=None):
    folder = ROOT / f"target/lab/kernel-{name}-{script}"
    text = (guest.SCRIPTS / f"kernel-{script}.sh").read_text()
    initrd = guest.Initrd(folder, tools, tree, MODULES, text)
    initrd.stripped(VALIDATOR, "tools/validator")
    initrd.folder(ROOT / "configs", "configs")
    if program:
        initrd.stripped(program, "tools/tests")
        for tool in ("tc", "ethtool"):
            initrd.program(tools.program(tool), f"tools/{tool}")
        # The test program looks for both where cargo has them.
        initrd.link("/tools/validator", VALIDATOR)
        initrd.link("/configs", ROOT / "configs")
    return guest.Machine(tools, tree, initrd.pack(), clock).work(LIMIT)


def lab():
    parser = options_of("kernel", __doc__)
    parser.add_argument("--kernel", choices=guest.KERNELS, action="append",
                        help="boot only this kernel; may be given several times")
    names = parser.parse_args().kernel or guest.KERNELS
    archive = packages.Archive()
    tools, tally = packages.tools(archive), Tally()
    for name in names:
        try:
            tree = guest.kernel(archive, name)
        except Failure as error:
            # The archive may have dropped one and not have the other yet.
            if name in MUST_WORK:
                raise
            print(f"==> Linux {name} is left out: {error}")
            continue
        with step(f"Linux {name}"):
            if name == "5.10":
                done = [boot(tools, name, tree, "refuses", "plain")]
            else:
                done = [boot(tools, name, tree, "counts", "real", test_program()),
                        boot(tools, name, tree, "verdicts", "plain")]
        steps = sum(len(one.passed) for one in done)
        print(f"    {steps} steps in {elapsed(sum(one.seconds for one in done))}")
        for one in done:
            tally.passed += one.passed
            tally.failed += [f"Linux {name}: {line}" for line in one.failed]
    return tally.close()


if __name__ == "__main__":
    main(lab)
