"""The Debian packages on a fresh Debian 12, in a chroot: they install, the program runs, the
services start under systemd, and nothing is left when they are removed.

    python3 labs/package.py FOLDER

FOLDER is that of `cargo xtask dist`.
"""

import argparse
import json
import re
import shutil
import subprocess
from pathlib import Path

from shared.chroot import INCONCLUSIVE, apart, fresh
from shared.steps import ROOT, Failure, main, need_root, output, step

# Where they lie in the chroot.
PACKAGE, SYMBOLS = "/root/validator.deb", "/root/validator-dbgsym.deb"
# The units, as systemd names them, and the largest exposure that it is to find of each, in tenths:
# 10 is the worst. The last sends frames, on time.
UNITS = {"validator-watch@eth0.service": 20, "validator-agent.service": 20,
         "validator-otg.service": 24}
# Links of the enabled services: one each, and that which starts a count with its interface.
LINKS = 4
RUN = ("validator run --testbed /usr/share/validator/testbeds/sim.toml --plan smoke "
       "--out /root/results")
# Runs the script, and ends the system with it.
UNIT = """[Unit]
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
TimeoutStartSec=60
ExecStart=/bin/bash /root/try.sh
StandardOutput=file:/root/tried
StandardError=file:/root/tried.log
"""
# What the script says.
EXPECTED = """\
watch serves its counts
watch stops without an error
the agent has its token
the OTG server sends and counts
and is put back after where it was killed
"""
# What it leaves.
LEFT = ("/etc/systemd/system/validator-watch@.service",
        "/etc/systemd/system/validator-agent.service.d", "/etc/validator")


def expect(what, holds, found):
    if not holds:
        raise Failure(f"{what}: found {found!r}")


def answers(debian, version):
    """What a fresh Debian has to say of the package: commands, and a part of what each prints."""
    for line, expected in (
        ("validator --version", version),
        ("validator list", "rc.c09-142-01"),
        ("validator otg --help", "--client-ca"),
        # The agent was built with verbs; without an adapter it says so.
        ("validator agent --listen 127.0.0.1:0 2>&1 || true", "RDMA device"),
        ("dpkg -L validator", "/usr/share/man/man1/validator-run.1.gz"),
    ):
        found = debian.output("sh", "-euc", line)
        expect(f"`{line}`: expected {expected!r}", expected in found, found)
    found = debian.output("dpkg", "--verify", "validator")
    expect("dpkg --verify: expected nothing", not found, found)


def finds_symbols(debian):
    """Installs the symbols, which lie where a debugger looks for those of the installed program,
    and are not in it."""
    debian.must(f"apt-get install --yes {SYMBOLS}")

    def build_id(file):
        return re.search(r"Build ID: ([0-9a-f]+)", output("readelf", "--notes", file))[1]
    program = debian.path("/usr/bin/validator")
    number = build_id(program)
    symbols = debian.path(f"/usr/lib/debug/.build-id/{number[:2]}/{number[2:]}.debug")
    expect(f"the symbols are of the program {number}", build_id(symbols) == number,
           build_id(symbols))
    for file, expected in ((program, False), (symbols, True)):
        sections = output("readelf", "--sections", "--wide", file)
        expect(f"{file}: expected debug symbols in the one file alone",
               (".debug_line " in sections) == expected, sections)


def runs_cases(debian):
    """Frames were counted and judged, whatever the machine's stalls did to single checks."""
    status = debian.conclude(RUN)
    report = json.loads(debian.path("/root/results/report.json").read_text())
    passed = sum(check["verdict"] == "pass" for case in report["cases"]
                 for check in case.get("checks", ()))
    expect("expected checks to pass and none to fail", status in (0, INCONCLUSIVE) and passed,
           f"exit code {status} and {passed} passed")
    expect("expected junit.xml", debian.path("/root/results/junit.xml").is_file(), "none")


def check_units(debian):
    """Lets systemd read the units, without starting anything."""
    debian.must("apt-get install --yes --no-install-recommends systemd")
    for unit, exposure in UNITS.items():
        debian.must(f"systemd-analyze verify --man=no {unit}")
        # A template needs no instance here.
        file = f"/usr/lib/systemd/system/{unit.replace('@eth0', '@')}"
        debian.must("systemd-analyze security --offline=true --no-pager "
                    f"--threshold={exposure} {file}")


def start_services(debian):
    """The services under systemd itself, booted as the first process of a container: with every
    right taken away that their units take away, `watch` counts, the agent reads its token, and the
    OTG server sends, is killed, and is put back after."""
    guests = ROOT / "labs/guests"
    shutil.copy(guests / "systemd-try.sh", debian.path("/root/try.sh"))
    debian.path("/etc/systemd/system/try.service").write_text(UNIT)
    boot = (guests / "systemd-boot.sh").read_text()
    with step("the services, under systemd"):
        # The system's own end says nothing of the script's.
        ended = subprocess.run([*apart("--net", "--ipc", "--uts", "--cgroup"), "sh", "-euc", boot,
                                debian.folder]).returncode

    def read(name):
        file = debian.path(f"/root/{name}")
        return file.read_text() if file.exists() else ""
    said = [read(name) for name in ("tried", "tried.log", "agent.log")]
    expect(f"the services under systemd ({ended}): expected {EXPECTED!r}", said[0] == EXPECTED,
           said)
    for path in map(debian.path, LEFT):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def links(debian, expected):
    """Compares the number of the links that enable services of ours."""
    found = debian.output("find", "/etc/systemd/system", "-type", "l", "-name", "validator-*")
    expect(f"expected {expected} links that enable services", len(found.split()) == expected,
           found)


def check(debian, folder):
    (package,), (symbols,) = (list(folder.glob(f"{name}_*.deb"))
                              for name in ("validator", "validator-dbgsym"))
    shutil.copy(package, debian.path(PACKAGE))
    shutil.copy(symbols, debian.path(SYMBOLS))
    tools = [tool for tool in ("cargo", "rustc", "cc") if debian.path(f"/usr/bin/{tool}").exists()]
    expect("expected a Debian without compilers", not tools, tools)
    debian.must("apt-get update --quiet")
    debian.must(f"apt-get install --yes --no-install-recommends {PACKAGE}")
    answers(debian, package.name.split("_")[1])
    finds_symbols(debian)
    runs_cases(debian)
    check_units(debian)
    start_services(debian)
    # Enables the services as their pages say. An upgrade, here to the same version, keeps them so.
    debian.must("systemctl enable validator-watch@t0 validator-agent validator-otg")
    links(debian, LINKS)
    debian.must(f"apt-get install --yes --reinstall {PACKAGE}")
    links(debian, LINKS)
    # The symbols go with the program.
    debian.must("apt-get remove --yes validator")
    links(debian, 0)
    debian.must("apt-get purge --yes validator")
    left = debian.output("find", "/usr", "/etc", "/var/lib/dpkg/info", "-name", "*validator*",
                         "-o", "-path", "/usr/lib/debug/.build-id/*")
    expect("the removed package leaves nothing", not left, left)


def lab():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve(strict=True)
    need_root("a chroot")
    with fresh("bookworm") as debian:
        check(debian, folder)


if __name__ == "__main__":
    main(lab)
