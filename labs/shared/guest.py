"""Virtual machines of QEMU, with all their files in memory, and scripts that they work through."""

import lzma
import os
import queue
import re
import shutil
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from shared import packages
from shared.packages import Tree
from shared.steps import ROOT, Failure, bound, elapsed, run

SCRIPTS = ROOT / "labs/guests"
# Kernels that the labs boot, and the start of the package's name of each.
KERNELS = {
    "5.10": "linux-image-5.10.",
    "6.1": "linux-image-6.1.",
    "6.12": "linux-image-6.12.",
    "newest": "linux-image-",
}
# Modules that any guest of the labs loads. Four fifths of a kernel's size are others.
MODULES = ("virtio_pci", "virtio_net", "e1000", "e1000e", "vmxnet3", "igb", "veth", "vxlan",
           "bridge", "tun", "sch_ingress", "cls_bpf", "cls_matchall", "act_mirred",
           "crc32_generic", "ib_uverbs", "rdma_rxe")
# KVM hangs if it is nested and half supported; TCG is the same everywhere.
CLOCKS = {
    "real": ["-accel", "tcg"],
    # Virtual time: an instruction takes a nanosecond and waiting takes none. The guest's
    # measurements do not depend on the host's load.
    "virtual": ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max"],
    # The same on QEMU's plainest processor, which is quicker to emulate: it has no vectors of AVX,
    # and memory is not copied octet by octet (ERMS).
    "plain": ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"],
    # Virtual time in which waiting takes its time: frames that go by the host arrive meanwhile,
    # and a busy host slows the guest's clock down rather than the guest.
    "waiting": ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=on", "-cpu", "max"],
}
# On a busy host the timer check sometimes panics, and the clock falls back to hpet.
APPEND = ("console=ttyS0 panic=-1 quiet no_timer_check tsc=reliable mitigations=off "
          "net.ifnames=0")
FAILED = "lab: failed: "


def kernel(archive, name):
    """A tree with a kernel, and of its modules those that guests load."""
    def prune(tree):
        kept = needed_modules(tree, MODULES)
        for file in modules(tree).values():
            if file not in kept:
                file.unlink()
    # Another selection of modules is another tree.
    return packages.unpacked(archive, f"kernel-{name}", lambda: archive.kernel(KERNELS[name]),
                             prune, " ".join(MODULES))


def modules(tree):
    """All modules by the names used to load them."""
    folder = tree.one("lib/modules/*", "usr/lib/modules/*")
    return {file.name.split(".ko")[0].replace("-", "_"): file for file in folder.rglob("*.ko*")}


def bootable(tree):
    """What QEMU boots: the kernel unpacked where its package has it by xz, which takes a guest
    seconds. It is unpacked once."""
    packed = tree.one("lib/modules/*/vmlinuz", "usr/lib/modules/*/vmlinuz", "boot/vmlinuz-*")
    unpacked = tree.folder / "vmlinux"
    if not unpacked.exists():
        _, magic, rest = packed.read_bytes().partition(b"\xfd7zXZ\0")
        if not magic:
            return packed
        # Another lab may do the same.
        part = tree.folder / f"vmlinux.{os.getpid()}.part"
        part.write_bytes(lzma.LZMADecompressor().decompress(magic + rest))
        part.rename(unpacked)
    return unpacked


def contents(file):
    """A module; newer kernels have them compressed."""
    return lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()


def needed_modules(tree, names):
    """The files of these modules after those that they need. A module without a file is built into
    the kernel."""
    known, order = modules(tree), []

    def add(name):
        file = known.get(name)
        if file and file not in order:
            for other in depends(contents(file)):
                add(other)
            order.append(file)
    for name in names:
        add(name)
    return order


def depends(module):
    found = re.search(rb"\0depends=([^\0]*)", module)
    names = found[1].decode().replace("-", "_") if found else ""
    return [name for name in names.split(",") if name]


class Initrd:
    """The files of a guest."""

    def __init__(self, folder, tools, kernel_tree, module_names, script):
        self.root, self.tools = Path(folder) / "initrd", tools
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ("dev", "proc", "sys", "tmp", "run", "root", "var", "etc", "lib"):
            (self.root / name).mkdir(parents=True)
        # The loader and libibverbs look in Debian's folder of libraries.
        (self.root / "lib/x86_64-linux-gnu").symlink_to("/lib")
        self.write("init", (SCRIPTS / "init.sh").read_bytes(), 0o755)
        self.write("script", script.encode())
        self.copy(tools.program("busybox"), "bin/busybox")
        self.program(tools.program("ip"), "tools/ip")
        names = []
        for file in needed_modules(kernel_tree, module_names):
            names.append(file.name.removesuffix(".xz"))
            self.write(f"modules/{names[-1]}", contents(file))
        self.write("modules/order", "".join(f"{name}\n" for name in names).encode())

    def write(self, to, content, mode=0o600):
        path = self.root / to
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)

    def copy(self, source, to):
        self.write(to, Path(source).read_bytes(), 0o755)

    def program(self, source, to):
        """Adds a program with its libraries."""
        self.copy(source, to)
        for library in self.tools.needed(source):
            # The path of the loader is part of every program.
            folder = "lib64" if library.name.startswith("ld-linux") else "lib"
            if not (self.root / folder / library.name).exists():
                self.copy(library, f"{folder}/{library.name}")

    def stripped(self, source, to):
        """Adds a program without its symbols: they are most of its size, and nobody reads them in
        a guest."""
        self.program(source, to)
        run("strip", self.root / to)

    def folder(self, source, to):
        shutil.copytree(source, self.root / to)

    def link(self, to, at):
        """Adds a symbolic link at an absolute path of this machine."""
        path = self.root / Path(at).relative_to("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(to)

    def pack(self):
        """Makes the kernel's archive, uncompressed: unpacking takes longer than loading."""
        packed = self.root.with_suffix(".cpio")
        script = 'find * | "$0" cpio -o -H newc > "$1" 2> /dev/null'
        run("sh", "-euc", script, self.tools.program("busybox"), packed, cwd=self.root)
        return packed


@dataclass
class Machine:
    tools: Tree
    kernel: Tree
    initrd: Path
    clock: str = "real"
    cpus: int = 2
    # Mebibytes: the initial RAM disk is unpacked into at most half of it.
    memory: int = 1024
    # QEMU arguments for the devices and their links.
    devices: list = field(default_factory=list)
    # QEMU hands frames from card to card before any other program runs.
    prompt: bool = False

    def start(self):
        data = [word for folder in ("qemu", "seabios")
                for word in ("-L", self.tools.folder / "usr/share" / folder)]
        modules_of_qemu = self.tools.folder / "usr/lib/x86_64-linux-gnu/qemu"
        command = bound(
            self.tools.program("qemu-system-x86_64"), *data, "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-serial", "stdio", "-m", str(self.memory),
            "-machine", "q35", *CLOCKS[self.clock], "-smp", str(self.cpus), "-kernel",
            bootable(self.kernel), "-initrd", self.initrd, "-append", APPEND, *self.devices)
        guest = Guest(command, {**os.environ, "LD_LIBRARY_PATH": self.tools.libraries,
                                "QEMU_MODULE_DIR": str(modules_of_qemu)})
        if self.prompt:
            hand_on_at_once(guest.qemu.pid)
        return guest

    def work(self, limit):
        """Boots it and shows its script at work, for at most `limit` seconds. A guest that ends
        before its last line counts as a failed step."""
        transcript, start, guest = Transcript(), time.monotonic(), self.start()

        def heard(line):
            print(f"    {time.monotonic() - start:4.0f} s | {line}", flush=True)
            transcript.hear(line)
        try:
            guest.wait_for("lab: done", limit, heard)
        except Failure as error:
            transcript.failed.append(str(error))
        finally:
            guest.end()
        transcript.seconds = time.monotonic() - start
        print(f"    guest ended after {elapsed(transcript.seconds)}")
        return transcript


def hand_on_at_once(qemu):
    """Lets QEMU's first thread run before any other program. It hands frames from card to card,
    with igb a hundredth of the time. Where it waits for a busy host, the guest's clock goes on:
    devices are late and lose frames, and nothing in the guest tells. At a low priority, beside
    four busy programs, two of three good switches failed. The threads of the processors keep
    their priority, for the clock stops with them. Only root may do so."""
    with suppress(PermissionError):
        os.sched_setscheduler(qemu, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


class Guest:
    """A running QEMU, which ends with this process at the latest."""

    def __init__(self, command, environment):
        # Outside the terminal's process group: Ctrl-C ends what runs beside the guest first.
        self.qemu = subprocess.Popen(command, env=environment, process_group=0, text=True,
                                     errors="replace", stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE)
        self.console, self.lines = [], queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.qemu.stdout:
            self.console.append(line.rstrip())
            self.lines.put(line.rstrip())
        self.lines.put(None)

    def wait_for(self, begin, limit, heard=lambda line: None):
        """Waits until a line of the console begins so. Passes every line to `heard`."""
        until = time.monotonic() + limit
        while True:
            try:
                line = self.lines.get(timeout=max(0, until - time.monotonic()))
            except queue.Empty:
                raise Failure(f"expected the guest to say {begin!r} within {elapsed(limit)}, "
                              f"found:\n{self.last_lines()}") from None
            if line is None:
                raise Failure(f"the guest ended before it said {begin!r}; its console:\n"
                              f"{self.last_lines()}")
            heard(line)
            if line.startswith(FAILED):
                raise Failure(f"the guest could not do: {line.removeprefix(FAILED)}; its "
                              f"console:\n{self.last_lines()}")
            if line.startswith(begin):
                return

    def last_lines(self):
        return "\n".join(f"    {line}" for line in self.console[-20:])

    def end(self):
        self.qemu.kill()
        self.qemu.wait()


class Transcript:
    """What a script did."""

    def __init__(self):
        # Steps that ended as required, what is wrong with others, and rows of the lab's table.
        self.passed, self.failed, self.rows = [], [], []
        self.seconds = 0
        # Tests that passed in the step that is going on, once a test program ended in it.
        self._tests = None

    def hear(self, line):
        if line.startswith("lab: begins "):
            self._tests = None
        elif found := re.match(r"test result: .*?\. (\d+) passed", line):
            self._tests = (self._tests or 0) + int(found[1])
        elif line.startswith("lab: skipped "):
            self.failed.append(f"skipped in the guest: {line.removeprefix('lab: skipped ')}")
        elif line.startswith("lab: row "):
            self.rows.append(line.removeprefix("lab: row "))
        elif line.startswith("lab: ended "):
            self._ended(line)

    def _ended(self, line):
        step = re.match(r"lab: ended (\d+) (\d+) \S+ (.*)", line)
        if not step:
            self.failed.append(f"not understood: {line}")
        elif step[1] != step[2]:
            self.failed.append(f"{step[3]}: expected exit code {step[2]}, found {step[1]}")
        elif self._tests == 0:
            # libtest's exit code is 0 where a filter matches no test.
            self.failed.append(f"{step[3]}: expected tests that match, found none")
        else:
            self.passed.append(step[3])
