"""A SONiC switch over ssh, for the hooks beside this file. Python 3.7, standard library alone."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys

# Seconds for a connection, and for a command: `show` takes some on a busy switch. All commands of a
# hook have to end within hooks.timeout of the testbed.
CONNECT = 5
ANSWER = 20


class Failed(Exception):
    """The switch did not do what was asked; the text says what to do."""


def main(hook):
    """Runs `hook(switch)`. A failure is one line on standard error, and exit status 1."""
    parser = argparse.ArgumentParser(description=hook.__doc__)
    parser.add_argument("switch", help="where ssh goes, such as admin@switch")
    parser.add_argument("-n", "--namespace", help="ASIC of the ports, such as asic0")
    arguments = parser.parse_args()
    try:
        hook(Switch(arguments.switch, arguments.namespace))
    except Failed as error:
        sys.exit(f"{arguments.switch}: {error}")


class Switch:
    """Commands on the switch, and what they answer."""

    def __init__(self, host, namespace=None):
        self.host = host
        self.asic = ["-n", namespace] if namespace else []

    def run(self, *words):
        """The standard output of a command; an error where it fails."""
        ssh = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT}", self.host, "--"]
        command = " ".join(shlex.quote(word) for word in words)
        try:
            done = subprocess.run(
                [*ssh, command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                universal_newlines=True,
                timeout=ANSWER,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"`{command}` did not end within {ANSWER} s") from None
        if done.returncode == 0:
            return done.stdout
        said = " / ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-3:])
        if done.returncode == 255:
            raise Failed(f"ssh cannot reach it: {said}")
        if "password is required" in said or "Root privileges" in said:
            raise Failed(f"`{command}` needs sudo without a password: {said}")
        if done.returncode == 127:
            raise Failed(f"its image has no `{words[0]}`: {said}")
        if self.asic and "no such option: -n" in said.lower():
            raise Failed(f"`{command}` takes no -n here: PFC by ASIC needs release 202405 or newer")
        raise Failed(f"`{command}` failed with status {done.returncode}: {said}")

    def sudo(self, *words):
        """The same as root, without asking for a password."""
        return self.run("sudo", "-n", *words)

    def lossless(self, port):
        """The priorities of `port` for which PFC is on."""
        answer = self.run("show", "pfc", "priority", port, *self.asic)
        for row in rows(answer):
            if row.get("Interface") == port:
                return {int(one) for one in re.findall(r"[0-7]", row["Lossless priorities"])}
        # The command ends with status 0 all the same.
        said = " ".join(answer.split())
        raise Failed(f"it has no port {port} with a QoS map (dut.ports of the testbed): {said}")

    def set_lossless(self, port, wanted):
        """Turns PFC on for the priorities in `wanted` and off for all others."""
        for priority in sorted(self.lossless(port) ^ wanted):
            word = "on" if priority in wanted else "off"
            change = ["pfc", "priority", port, str(priority), word]
            # The group requires the ASIC. Without it the command itself goes to all ASICs.
            self.sudo("config", "interface", *self.asic, *change, *self.asic)
        found = self.lossless(port)
        if found != wanted:
            raise Failed(f"{port} has lossless priorities {text(found)}, expected {text(wanted)}")

    def watchdogs(self):
        """The watchdog's configuration by port; a port that is not there has it off."""
        answer = self.run("pfcwd", "show", "config", *self.asic)
        if "BIG_RED_SWITCH status is enable" in answer:
            raise Failed("BIG_RED_SWITCH is on: `sudo pfcwd big_red_switch disable` turns it off")
        return {row["PORT"]: row for row in rows(answer) if "PORT" in row}

    def stop_watchdogs(self, those):
        """Turns the watchdog of these ports off."""
        if not those:
            return
        self.sudo("pfcwd", "stop", *those)
        on = [port for port in those if port in self.watchdogs()]
        if on:
            raise Failed(f"the PFC watchdog of {', '.join(on)} is still on after `pfcwd stop`")

    def start_watchdog(self, port, was):
        """Turns the watchdog of `port` on again, as it `was`."""
        options = ["--action", was["ACTION"], "--restoration-time", was["RESTORATION TIME"]]
        if was.get("HISTORY") == "enable":
            options.append("--pfc-stat-history")
        self.sudo("pfcwd", "start", *options, port, was["DETECTION TIME"])
        if self.watchdogs().get(port) != was:
            raise Failed(f"the PFC watchdog of {port} is not as it was: {json.dumps(was)}")


def ports():
    """The switch's ports that the tester's are cabled to."""
    found = os.environ.get("VALIDATOR_PORTS", "").split(",")
    if not all(found):
        raise Failed('name its ports in the testbed: dut.ports = { tx = "Ethernet0", ... }')
    return found


def wanted():
    """The lossless priorities of the repetition, or of the testbed."""
    return {int(one) for one in os.environ.get("VALIDATOR_LOSSLESS", "").split(",") if one}


def note(switch):
    """Writes down how the switch is, before the first change. Returns what was written."""
    path = note_path()
    if not path:
        raise Failed("hooks.restore is missing in the testbed: nothing would put the switch back")
    if os.path.exists(path):
        return noted()
    watchdogs = switch.watchdogs()
    found = {
        port: {"watchdog": watchdogs.get(port), "lossless": sorted(switch.lossless(port))}
        for port in ports()
    }
    for port, was in found.items():
        times = (was["watchdog"] or {}).get("RESTORATION TIME", "0")
        if not times.isdigit():
            raise Failed(
                f"the watchdog of {port} has the restoration time {times}, which `pfcwd start` "
                'cannot set again: stop it by hand, and declare facts.watchdog = "off"'
            )
    draft = path + ".draft"
    with open(draft, "w") as file:
        json.dump(found, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(draft, path)
    return found


def noted():
    """What was written down; nothing where nothing was changed."""
    path = note_path()
    if not path or not os.path.exists(path):
        return {}
    with open(path) as file:
        return json.load(file)


def note_path():
    folder = os.environ.get("VALIDATOR_STATE")
    return os.path.join(folder, "sonic.json") if folder else None


def rows(answer):
    """The rows of all tables in `answer`, by the words of their headings. The rule below a heading
    says where each column ends."""
    found, lines = [], answer.splitlines()
    for index, line in enumerate(lines):
        if not index or not re.fullmatch(r"-+( +-+)*", line.strip()):
            continue
        columns = [match.span() for match in re.finditer(r"-+", line)]
        heading = [lines[index - 1][start:end].strip() for start, end in columns]
        for row in lines[index + 1 :]:
            cells = [row[start:end].strip() for start, end in columns]
            if not any(cells):
                break
            found.append(dict(zip(heading, cells)))
    return found


def number(cell):
    """The number in a cell such as 1,200; None for N/A."""
    digits = cell.replace(",", "")
    return int(digits) if digits.isdigit() else None


def text(priorities):
    return ",".join(str(one) for one in sorted(priorities)) or "none"
