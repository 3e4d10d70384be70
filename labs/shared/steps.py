"""Steps with their durations, the commands in them, and a closing line like libtest's."""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# `cargo xtask test` names those of its own build.
PROFILE = os.environ.get("VALIDATOR_PROFILE", "release")
FEATURES = os.environ.get("VALIDATOR_FEATURES", "pfc-user/otg")
VALIDATOR = ROOT / "target" / PROFILE / "validator"


class Failure(Exception):
    """An error for the user, whose text says all."""


@contextmanager
def step(headline):
    """Prints a headline, and how long what is done under it took."""
    print(f"==> {headline}", flush=True)
    start, word = time.monotonic(), "failed"
    try:
        yield
        word = "done"
    finally:
        print(f"    {word} after {elapsed(time.monotonic() - start)}", flush=True)


def elapsed(seconds):
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def shown(command):
    return shlex.join(str(word) for word in command)


def run(*command, **options):
    """Runs a command with its output shown; a failure of it is one of the lab."""
    status = subprocess.run(command, **options).returncode
    if status != 0:
        raise Failure(f"{shown(command)} ended with {status}")


def output(*command, **options):
    """What a command prints; a failure of it is one of the lab, with what it said."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        raise Failure(f"{shown(command)} ended with {done.returncode}: {said}")
    return done.stdout.strip()


def bound(*command, by="KILL"):
    """The command, which gets that signal when the lab ends for whatever reason."""
    return ["setpriv", "--pdeathsig", by, "--", *command]


def cargo(*arguments):
    return [os.environ.get("CARGO", "cargo"), *arguments]


def tests(program):
    """Command for a test program, chosen as `cargo xtask test` does, which then finds it built."""
    return cargo("test", "--workspace", "--exclude", "xtask", "--features", FEATURES,
                 "--profile", PROFILE, "--test", program)


def need_root(why):
    if os.geteuid() != 0:
        raise Failure(f"{why} needs root; run it with sudo or as root")


def wait_for(what, look, limit=120, pause=0.2):
    """Calls `look` until it returns (True, result) and not (False, what it saw instead)."""
    until = time.monotonic() + limit
    while True:
        done, seen = look()
        if done:
            return seen
        if time.monotonic() > until:
            raise Failure(f"{what}: waited for {limit} s, last seen: {seen}")
        time.sleep(pause)


class Tally:
    """How the checks of a lab ended, by name."""

    def __init__(self):
        self.passed, self.failed, self.skipped = [], [], []

    def check(self, name, holds, found=""):
        """Notes a check; `found` is what was found where it does not hold."""
        print(f"test {name} ... {'ok' if holds else 'FAILED'}", flush=True)
        if holds:
            self.passed.append(name)
        else:
            self.failed.append(f"{name}: {found}")
        return holds

    @contextmanager
    def trying(self, name):
        """Notes what is done under it as a check that holds unless it fails."""
        try:
            with step(name):
                yield
            self.passed.append(name)
        except (Failure, OSError) as error:
            self.failed.append(f"{name}: {error}")

    def close(self):
        """Prints the closing line, after what failed and could not run; returns the exit code."""
        for line in self.failed:
            print(f"failed: {line}")
        for line in self.skipped:
            print(f"skipped: {line}")
        word = "FAILED" if self.failed else "ok"
        print(f"test result: {word}. {len(self.passed)} passed; {len(self.failed)} failed; "
              f"{len(self.skipped)} ignored", flush=True)
        return 1 if self.failed else 0


def options_of(name, description):
    """A parser for the options of `cargo xtask lab NAME`."""
    return argparse.ArgumentParser(
        prog=f"cargo xtask lab {name}", description=description,
        epilog="With --no-install nothing is installed that is missing.",
        formatter_class=argparse.RawDescriptionHelpFormatter)


def main(lab):
    """Runs a lab, and ends with the exit code that it returns. A signal lets it clean up first."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        sys.exit(lab())
    except (Failure, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(1)
