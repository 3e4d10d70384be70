"""What stands in for a SONiC host, as far as it can be tried without a clone of sonic-mgmt.

    python offline.py COUNTERS CASE...

COUNTERS is the socket of a switch that nothing was sent to. The cases are those that the lab runs.
"""

import importlib
import json
import pathlib
import sys
import types

import absent
from cases import CASES, Case
from dut import ANSWERS, PORTS, Dut

NOTHING = json.dumps({PORTS[1]: {"TX_OK": "0", "TX_DRP": "0", "RX_OK": "0"}})
# As the helpers send them, and what a host answers whose switch has seen no frame.
COMMANDS = {
    "sudo pfcstat -c": "",
    "sonic-clear pfccounters": "",
    "sonic-clear queuecounters": "",
    "sudo sonic-clear counters": "",
    f"show pfc counters | sed -n '/Port Tx/,/^$/p' | grep {PORTS[0]}": f"{PORTS[0]}{' 0' * 8}",
    f"show pfc counters | sed -n '/Port Rx/,/^$/p' | grep {PORTS[1]}": f"{PORTS[1]}{' 0' * 8}",
    f"show queue counters {PORTS[0]} | sed -n '/UC3/p'": f"{PORTS[0]} UC3 0 N/A 0 N/A",
    f"portstat -ji {PORTS[1]}": NOTHING,
    f"portstat -i {PORTS[1]}": None,
    f"sonic-db-cli COUNTERS_DB HGET COUNTERS_QUEUE_NAME_MAP {PORTS[0]}:3": f"oid:{PORTS[0]}:3",
    f"sonic-db-cli COUNTERS_DB HGET COUNTERS:oid:{PORTS[0]}:3 SAI_QUEUE_STAT_DROPPED_PACKETS": "0",
    "pfcwd stop": "",
    "pfcwd start_default": "",
    "show pfcwd stats": None,
}


def check(what, right, found=""):
    if not right:
        sys.exit(f"{what}: {found}")
    print(f"{what} ... ok")


def absences():
    """Any name of them can be imported, and fails when it is called."""
    absent.install()
    for name in absent.ABSENT:
        parents = name.split(".")[:-1]
        for length in range(1, len(parents) + 1):
            package = types.ModuleType(".".join(parents[:length]))
            package.__path__ = []
            sys.modules.setdefault(package.__name__, package)
        taken = importlib.import_module(f"{name}.anything").Thing
        try:
            taken()
        except NotImplementedError as error:
            check(name, f"{name}.anything.Thing" in str(error), error)
        else:
            sys.exit(f"{name}: expected to fail when it is called")
    for name, members in absent.PRESENT.items():
        module = importlib.import_module(name)
        found = {member: getattr(module, member) for member in members}
        check(f"{name} is present", found == members, found)


def answers(counters):
    dut, used = Dut(counters), set()
    for command, expected in COMMANDS.items():
        used |= {pattern for pattern, _ in ANSWERS if pattern.search(command.removeprefix("sudo "))}
        found = dut.command(command)
        right = found["rc"] == 0 and expected in (None, found["stdout"])
        check(command, right, f"{found['stdout']!r}, expected {expected!r}")
    unused = [pattern.pattern for pattern, _ in ANSWERS if pattern not in used]
    check("each answer is asked for", not unused, unused)
    try:
        dut.command("reboot")
    except NotImplementedError:
        print("another command is refused ... ok")
    else:
        sys.exit("expected another command to be refused")


def cases(names):
    check("the lab runs all cases", set(names) == set(CASES), set(names) ^ set(CASES))
    for name, case in CASES.items():
        try:
            check(f"case {name}", isinstance(case(), Case))
        except ModuleNotFoundError as error:
            # Only its parameters come from sonic-mgmt.
            check(f"case {name}", error.name.startswith("tests.common.snappi_tests"), error)


def main(counters, *names):
    # It needs the clone as soon as it runs.
    script = pathlib.Path(__file__).with_name("pfc.py")
    compile(script.read_text(encoding="utf-8"), script, "exec")
    absences()
    answers(counters)
    cases(names)


main(*sys.argv[1:])
