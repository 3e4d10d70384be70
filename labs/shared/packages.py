"""Packages that are unpacked into the cache and not installed: Debian's, and PyPI's.

QEMU's package conflicts with others that a machine may have, and kernels are for guests alone.
`python3 packages.py snappi` makes the environment of that name, and prints its interpreter.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from shared.steps import Failure, output, run, shown, step

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# 5.10, 6.1 and 6.12, QEMU with igb, and the newest kernel.
SUITES = ("bullseye", "bookworm", "bookworm-backports", "trixie-backports")
# Kernels that users of this release run.
SECURITY_SUITES = ("bookworm-security",)
# Programs that run the guests or run in them. They are unpacked even if the machine has them: the
# guest uses these, and files of different versions do not mix.
TOOLS = ("qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios", "busybox-static",
         "libibverbs1", "ibverbs-providers", "iproute2", "ethtool")

SNAPPI = "snappi==1.62.0"
# The oldest that talks to a server of the model's present version. Its grpcio has no wheel for
# Python 3.12 and newer.
SNAPPI_OLDEST = "snappi==1.0.0"
SCAPY = "scapy==2.6.1"
ENVIRONMENTS = {
    "snappi": (SNAPPI, SCAPY),
    "snappi-oldest": (SNAPPI_OLDEST,),
    "conformance": (SNAPPI, "pypcapfile==0.12.0", "pytest==7.1.1"),
    # What sonic-mgmt's helpers import. Ansible, IxNetwork and the like are not among it.
    "sonic": (SNAPPI, SCAPY, "dpkt==1.9.8", "ipaddr==2.2.0", "natsort==8.4.0", "netaddr==1.3.0",
              "pandas==3.1.1", "pytest==9.2.0", "PyYAML==6.0.3", "six==1.17.0",
              "tabulate==0.10.0"),
    # What stands on a terminal after cursor movements.
    "screenshots": ("pyte==0.8.2",),
    # The reader and validator of the authors of SPDX.
    "spdx": ("spdx-tools==0.8.3",),
}


def cache():
    """$VALIDATOR_CACHE, or otherwise the XDG cache folder."""
    named = os.environ.get("VALIDATOR_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(named) if named else Path(base) / "validator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def alone(name):
    """Waits until no other lab holds the lock of that name."""
    with open(cache() / name, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def python(name):
    """The interpreter of an environment, which is made first if it is not there."""
    packages = ENVIRONMENTS[name]
    folder = cache() / f"lab-python-{name}"
    interpreter, made = folder / "bin/python", folder / "packages.txt"
    wanted = "\n".join(packages)
    with alone(f"lab-python-{name}.lock"):
        if made.exists() and made.read_text() == wanted:
            return interpreter
        # One that was left half-made is made anew.
        _quietly("Debian has it in the package python3-venv",
                 "python3", "-m", "venv", "--clear", folder)
        # grpcio from source takes longer than all else that a lab does.
        _quietly("pip has to reach PyPI", interpreter, "-m", "pip", "install", "--quiet",
                 "--disable-pip-version-check", "--no-input", "--only-binary", "grpcio", *packages)
        made.write_text(wanted)
    return interpreter


def _quietly(advice, *command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        last = [line.strip() for line in done.stdout.splitlines() if line.strip()][-1:]
        raise Failure(f"{advice}: {shown(command)}: {''.join(last) or 'no reason given'}")


class Archive:
    """A private apt root in the cache, with further suites. The machine's packages count as
    installed."""

    def __init__(self):
        for tool in ("apt-get", "apt-cache", "dpkg"):
            if not shutil.which(tool):
                raise Failure(f"there is no {tool}: the labs take QEMU and kernels from Debian's "
                              "packages, on Debian or what derives from it")
        self.folder = cache() / "apt"
        for folder in ("lists/partial", "cache/archives/partial"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        listed, wanted = self.folder / "sources.list", machines_sources()
        with alone("apt/alone"):
            known = listed.exists() and listed.read_text() == wanted
            if not known or not self._names("linux-image-6.1."):
                listed.write_text(wanted)
                self._update()

    def _apt(self, program, *arguments):
        options = (
            f"Dir::Etc::sourcelist={self.folder}/sources.list", "Dir::Etc::sourceparts=/dev/null",
            f"Dir::State::lists={self.folder}/lists", f"Dir::Cache={self.folder}/cache",
            # Lists and archives lie in folders that only root may write.
            "APT::Sandbox::User=root", "Acquire::Languages=none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
        )
        return [program, *chain.from_iterable(("-o", option) for option in options), *arguments]

    def update(self):
        with alone("apt/alone"):
            self._update()

    def _update(self):
        """If a suite has left the archive, only its kernel is lost."""
        with step("lists of Debian's packages, for the labs"):
            if subprocess.run(self._apt("apt-get", "-qq", "update")).returncode != 0:
                print("    going on with the lists that there are")

    def _names(self, prefix):
        return output(*self._apt("apt-cache", "pkgnames", prefix)).split()

    def kernel(self, prefix):
        """The packages of the newest kernel of that prefix. Newer ones are split into several."""
        image = newest(self._names(prefix), prefix)
        if not image:
            raise Failure(f"no suite of Debian has a package {prefix}*-amd64")
        depends = output(*self._apt("apt-cache", "depends", image))
        parts = re.findall(r"Depends: (linux-(?:binary|modules)-\S+)", depends)
        return self.exactly(image, *parts)

    def closure(self, *packages, suite=None):
        """What has to be unpacked beside the machine's own packages to run these: a line for each,
        with name, version, size and hash."""
        wanted = ["-t", suite] if suite else []
        simulated = output(*self._apt("apt-get", "-s", "--no-install-recommends", "--reinstall",
                                      "install", *wanted, *packages))
        return self.exactly(*to_install(simulated))

    def exactly(self, *packages):
        """The same lines for these alone, each given as NAME or NAME=VERSION."""
        uris = output(*self._apt("apt-get", "-qq", "download", "--print-uris", *packages))
        return "\n".join(sorted(line.split(" ", 1)[1] for line in uris.splitlines()))

    def unpack(self, lines, folder):
        with tempfile.TemporaryDirectory(dir=folder) as archives:
            names = [pinned(line) for line in lines.splitlines()]
            run(*self._apt("apt-get", "-qq", "download", *names), cwd=archives)
            for archive in Path(archives).iterdir():
                run("dpkg", "-x", archive, folder)


def machines_sources():
    """The sources of the labs, on the servers of the machine's own list."""
    def targets():
        return output("apt-get", "indextargets", "--format",
                      "$(LABEL)|$(REPO_URI)|$(SUITE)|$(CODENAME)", "Created-By: Packages")
    known = targets()
    if not known:
        # apt knows an archive's label only from its lists.
        run("apt-get", "-q", "update")
        known = targets()
    return sources(known)


def sources(targets):
    servers = {}
    for line in targets.splitlines():
        label, server, _, release = line.split("|")
        servers.setdefault(label, (server, release))
    if not {"Debian", "Debian-Security"} <= servers.keys():
        raise Failure(f"expected Debian and Debian-Security among apt's sources, found:\n{targets}")
    debian, release = servers["Debian"]
    security, of_security = servers["Debian-Security"]
    suites = [(debian, release.split("-")[0]), (security, of_security)]
    suites += [(debian, suite) for suite in SUITES]
    suites += [(security, suite) for suite in SECURITY_SUITES]
    lines = [f"deb [signed-by={KEYRING}] {server} {suite} main\n" for server, suite in suites]
    return "".join(dict.fromkeys(lines))


def newest(names, prefix):
    """Of the names that are the prefix, a version and -amd64, that of the highest version."""
    form = re.compile(re.escape(prefix) + r"(\d[^-.]*(?:[-.]\d[^-.]*)*)-amd64")
    found = [(match[1], name) for name in names if (match := form.fullmatch(name))]
    return max(found, key=lambda pair: [int(number) for number in re.findall(r"\d+", pair[0])],
               default=(None, None))[1]


def to_install(simulated):
    """What a simulated installation would install or reinstall, as NAME=VERSION."""
    found = re.findall(r"^Inst (\S+)[^(]*\((\S+)", simulated, re.MULTILINE)
    return [f"{name}={version}" for name, version in found]


def pinned(line):
    """NAME=VERSION of a line that begins with an archive, such as seabios_1.16.2-1_all.deb."""
    name, version = line.split("_")[:2]
    return f"{name}={version.replace('%3a', ':')}"


class Tree:
    """A folder in the cache with unpacked packages."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def one(self, *patterns):
        """The first file of it with such a path."""
        for pattern in patterns:
            for found in sorted(self.folder.glob(pattern)):
                return found
        raise Failure(f"{self.folder} (remove it to have its packages unpacked again) has no "
                      f"{patterns[0]}")

    def program(self, name):
        return self.one(*(f"{folder}/{name}" for folder in ("usr/bin", "bin", "usr/sbin", "sbin")))

    @property
    def libraries(self):
        """Value of LD_LIBRARY_PATH: the tree's libraries before those of the machine."""
        folders = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
        return ":".join(str(self.folder / folder) for folder in folders)

    def needed(self, program):
        """The libraries of a program: the tree's if it has them, otherwise the machine's."""
        listed = output("ldd", program, env={**os.environ, "LD_LIBRARY_PATH": self.libraries})
        if "not found" in listed:
            raise Failure(f"{program} needs a library that is not there:\n{listed}")
        return [Path(path) for path in re.findall(r"(?:^\s*|=> )(/\S+) \(", listed, re.MULTILINE)]


def unpacked(archive, name, wanted, finish=lambda tree: None, finished=""):
    """A tree of the packages in the versions that apt knows, after `finish`, which `finished`
    describes; other versions, or another description, lie elsewhere."""
    def path(lines):
        digest = hashlib.sha256((finished + lines).encode()).hexdigest()
        return cache() / f"lab-{name}-{digest[:16]}"

    def unpack(lines):
        # Another run may do the same.
        for left in cache().glob(f"{path(lines).name}.*.part"):
            if not Path("/proc", left.suffixes[-2][1:]).exists():
                shutil.rmtree(left)
        work = Path(f"{path(lines)}.{os.getpid()}.part")
        work.mkdir()
        archive.unpack(lines, work)
        finish(Tree(work))
        (work / "packages").write_text(lines)
        try:
            work.rename(path(lines))
        except OSError:
            # Another run was faster.
            shutil.rmtree(work)
        return Tree(path(lines))

    lines = wanted()
    if path(lines).is_dir():
        return Tree(path(lines))
    with step(f"packages of {name}: {len(lines.splitlines())}"):
        try:
            return unpack(lines)
        except Failure as error:
            # The lists may be older than the archive, which keeps one version of a package.
            print(f"    {error}")
            archive.update()
            return unpack(wanted())


def tools(archive):
    """QEMU and the programs of the guests."""
    def wanted():
        # igb arrived in QEMU 8.0; Debian 12 has a newer QEMU in its backports.
        release = Path("/etc/os-release").read_text()
        old = 'ID=debian\n' in release and 'VERSION_ID="12"\n' in release
        return archive.closure(*TOOLS, suite="bookworm-backports" if old else None)
    return unpacked(archive, "tools", wanted)


def prometheus(archive):
    """Prometheus with its promtool, which is linked statically."""
    return unpacked(archive, "prometheus", lambda: archive.exactly("prometheus"))


def browser(archive):
    """A browser without a window, and a font. It reads files of the package beside it, which would
    be left out where the machine has that."""
    names = ("chromium-headless-shell", "chromium-common", "fonts-dejavu-core")
    return unpacked(archive, "browser", lambda: archive.closure(*names))


def pictures(archive):
    """What makes pictures small."""
    return unpacked(archive, "pictures", lambda: archive.closure("pngquant"))


if __name__ == "__main__":
    try:
        print(python(sys.argv[1]))
    except Failure as error:
        sys.exit(str(error))
