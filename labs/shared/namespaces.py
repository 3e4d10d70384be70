"""Network namespaces without names: each disappears with the last process that uses it."""

import ctypes
import os
import subprocess

from shared.steps import Failure, bound

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
DISABLE_IPV6 = "/proc/sys/net/ipv6/conf/all/disable_ipv6"


def _must(result):
    if result != 0:
        raise Failure(f"cannot make a network namespace: {os.strerror(ctypes.get_errno())}")


class Namespace:
    """One that exists for as long as this object."""

    def __init__(self):
        """Opens that of this process."""
        self.file = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self):
        os.close(self.file)

    @classmethod
    def new(cls):
        home = cls()
        enter()
        made = cls()
        enter(home.file)
        return made

    @property
    def path(self):
        """A path to it that other processes can open."""
        return f"/proc/{os.getpid()}/fd/{self.file}"

    def bound(self, *command):
        """A command in it, which is killed when this process ends."""
        return bound("nsenter", f"--net={self.path}", "--", *command)

    def batch(self, program, lines):
        """Runs lines of `ip` or `tc`; the first that fails is an error."""
        command = self.bound(program, "-batch", "-")
        status = subprocess.run(command, input=lines, text=True).returncode
        if status != 0:
            raise Failure(f"{program} ended with {status}, and says above which failed:\n{lines}")


def enter(file=None):
    """Puts this process, and all that it starts from now on, into the namespace of an open file, or
    otherwise into a new one."""
    if file is None:
        _must(LIBC.unshare(CLONE_NEWNET))
    else:
        _must(LIBC.setns(file, CLONE_NEWNET))


def enter_with_veths(*cables):
    """The same, with loopback and pairs of veths as cables. Only the lab's programs send there:
    the kernel's own multicasts are IPv6."""
    enter()
    here = Namespace()
    lines = ["link set lo up"]
    for one, other in cables:
        lines.append(f"link add {one} mtu 9500 type veth peer name {other} mtu 9500")
        lines += [f"link set {end} up" for end in (one, other)]
    # A kernel without IPv6 has no such file.
    if os.path.exists(DISABLE_IPV6):
        with open(DISABLE_IPV6, "w") as setting:
            setting.write("1")
    here.batch("ip", "\n".join(lines))
