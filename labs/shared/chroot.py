"""A fresh Debian in a folder, made of packages, with the workspace in it, and commands that run
there. The kernel is this machine's."""

import fcntl
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

from shared import packages
from shared.steps import ROOT, Failure, bound, output, run, shown, step

# Debian 12 and 13.
SUITES = ("bookworm", "trixie")
WORKSPACE = "/root/validator"
# Mounts what a machine has, in namespaces that end with the command, for whatever reason it ends.
ENTER = """
mount --rbind /sys "$0/sys"
mount --rbind /dev "$0/dev"
mount -t proc proc "$0/proc"
exec chroot "$0" env --chdir="$@"
"""
# Variables of a login, and those by which this machine reaches its registry.
LOGIN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
         "LANG": "C.UTF-8"}
PASSED_ON = ("CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTR", "CARGO_SOURCE_")
# Settings of apt that say how to reach mirrors, and whether to trust their dates.
SETTINGS = ("Acquire::http:", "Acquire::https:", "Acquire::Check-", "Acquire::Retries")
# The validator's exit code for an inconclusive run, as on a busy machine, and how often one is
# tried again.
INCONCLUSIVE, TRIES = 3, 3
# A disk with fewer octets left counts as full.
FULL = 256 << 20


def apart(*options):
    """Begins a command in mount and process namespaces of its own. Everything in them ends with
    this process."""
    return bound("unshare", "--mount", "--pid", "--fork", "--kill-child", *options, "--")


def environment(variables):
    def is_passed_on(name):
        # The certificates lie at Debian's own path.
        return name == "TERM" or name.lower().endswith("_proxy") or (
            name.startswith(PASSED_ON) and name != "CARGO_HTTP_CAINFO")
    return {**LOGIN, **{name: variables[name] for name in variables if is_passed_on(name)}}


def sources(targets, suite):
    """Lines of sources.list, on the mirrors of Debian and of its security updates that lines
    `LABEL SITE` name."""
    sites = {}
    for line in targets.splitlines():
        label, site = line.split(" ", 1)
        sites.setdefault(label, site)
    if not {"Debian", "Debian-Security"} <= sites.keys():
        raise Failure("expected apt on this machine to know the labels Debian and "
                      f"Debian-Security, found {sorted(sites)}; this needs Debian, and "
                      "`apt-get update` before")
    debian, security = sites["Debian"], sites["Debian-Security"]
    return [f"deb {debian} {suite} main", f"deb {debian} {suite}-updates main",
            f"deb {security} {suite}-security main"]


def settings(dump):
    """Lines of apt.conf, of what `apt-config dump` prints. Empty settings are left out."""
    return [line for line in dump.splitlines()
            if line.startswith(SETTINGS) and not line.endswith(' "";')]


class Chroot:
    def __init__(self, folder, workspace=WORKSPACE):
        self.folder, self.workspace = Path(folder), workspace

    def path(self, path):
        """Where a path of the chroot is on this machine."""
        return self.folder / path.lstrip("/")

    def command(self, words):
        return [*apart(), "sh", "-euc", ENTER, self.folder, self.workspace, *words]

    def run(self, *words):
        """Runs a command in the workspace, and returns its exit code."""
        return subprocess.run(self.command(words), env=environment(os.environ)).returncode

    def output(self, *words):
        return output(*self.command(words), env=environment(os.environ))

    def must(self, line):
        """Runs a command line without quotes under its own headline. Fails if it does."""
        with step(line):
            if (status := self.run(*line.split())) != 0:
                raise Failure(f"`{line}` ended with {status}")

    def conclude(self, line):
        """Runs a command that ends in a verdict, and again if that is inconclusive: stalls of a
        busy machine come and go. Returns the exit code."""
        for _ in range(TRIES):
            with step(line):
                status = self.run(*line.split())
            if status != INCONCLUSIVE:
                break
        return status

    def kill_at(self, words, mark):
        """Runs a command, and kills it with everything that it has started when it prints a line
        with `mark`."""
        killed = False
        # Its output ends once every process that could print has ended.
        with subprocess.Popen(self.command(words), env=environment(os.environ), text=True,
                              errors="replace", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
            for line in child.stdout:
                print(line, end="", flush=True)
                if not killed and mark in line:
                    killed = True
                    child.kill()
        if not killed:
            raise Failure(f"expected a line with `{mark}`, found none; `{shown(words)}` ended "
                          f"with {child.returncode}")

    def make(self, suite):
        targets = output("apt-get", "indextargets", "--format", "$(LABEL) $(SITE)",
                         "Created-By: Packages", "Origin: Debian")
        lines, options = sources(targets, suite), settings(output("apt-config", "dump"))
        base = minimal(suite, lines, options)
        with step(f"fresh Debian in {self.folder}"):
            self.remove()
            self.folder.mkdir()
            run("tar", "-xf", base, "-C", self.folder)
            self.path("/etc/apt/sources.list").write_text("\n".join(lines) + "\n")
            self.path("/etc/apt/apt.conf.d/90machine").write_text("\n".join(options) + "\n")
            self.connect()
            self.copy_workspace()

    def copy_workspace(self):
        """Copies the working tree without build results. Links to files become files."""
        listed = output("git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached",
                        "--others", "--exclude-standard", cwd=ROOT)
        for file in filter(lambda file: (ROOT / file).is_file(), listed.split("\0")):
            to = self.path(self.workspace) / file
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, to)

    def connect(self):
        """Copies this machine's settings of name resolution, certificates and cargo's registry."""
        for name in ("resolv.conf", "hosts"):
            shutil.copy(Path("/etc", name), self.path(f"/etc/{name}"))
        named = os.environ.get("CARGO_HTTP_CAINFO") or os.environ.get("SSL_CERT_FILE")
        own = "/etc/ssl/certs/ca-certificates.crt"
        certificates = Path(named or own)
        if certificates.is_file():
            shutil.copy(certificates, self.path(own))
        home = os.environ.get("CARGO_HOME") or Path.home() / ".cargo"
        registry = Path(home, "config.toml")
        if registry.is_file():
            self.path("/root/.cargo").mkdir()
            shutil.copy(registry, self.path("/root/.cargo/config.toml"))

    def megabytes(self):
        used = output("du", "--summarize", "--one-file-system", "--block-size=MB", self.folder)
        return used.split("MB")[0]

    def remove(self):
        """Removes the folder, but nothing that may be mounted in it."""
        run("rm", "-rf", "--one-file-system", self.folder)


def minimal(suite, lines, options):
    """The archive of a minimal Debian, which is made if it is missing. apt later upgrades its old
    packages."""
    archive = packages.cache() / f"userspace-{suite}.tar"
    if archive.is_file():
        print(f"==> minimal Debian: {archive}; remove it to make it anew")
        return archive
    part = archive.with_suffix(".part.tar")
    with step(f"minimal Debian: mmdebstrap {suite}"):
        run(*apart("--mount-proc"), "mmdebstrap", "--variant=minbase",
            "--include=ca-certificates", *(f"--aptopt={option}" for option in options),
            suite, part, *lines)
    return part.rename(archive)


@contextmanager
def fresh(suite):
    """A fresh Debian, which is removed unless the work on it fails. One call at a time has it."""
    folder = packages.cache() / f"userspace-{suite}"
    with open(f"{folder}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"    waiting for another call, which holds {folder}.lock", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        chroot = Chroot(folder)
        try:
            chroot.make(suite)
            yield chroot
        except Failure as error:
            print(f"    left for a look: {folder}")
            left = shutil.disk_usage(packages.cache()).free
            if left < FULL:
                raise Failure(f"only {left // 10**6} MB are left on the disk of {folder}: make "
                              f"room, then call this again: {error}") from error
            raise
        print(f"    it took {chroot.megabytes()} MB")
        chroot.remove()
