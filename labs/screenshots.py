"""The pictures of the documentation, from real runs.

Runs the simulated devices, a good and a faulty one, and `validator watch` beside a run; renders
reports and terminals in Debian's Chromium; and writes docs/images. With --again it draws those of
the last call, without new runs. A terminal is what pyte takes it for, so this runs in the Python
that has it.
"""

import argparse
import fcntl
import html
import os
import pty
import re
import shlex
import struct
import subprocess
import termios

from shared import packages
from shared.chromium import Chromium
from shared.namespaces import Namespace, enter
from shared.steps import ROOT, VALIDATOR, Failure, bound, main, output, run, step

IMAGES, FOLDER = ROOT / "docs/images", ROOT / "target/screenshots"
# Octets of the largest picture: a reader loads several.
LARGEST = 150_000
# A window for a report.
WINDOW = (1120, 900)
# A plan of some seconds on the simulated switch.
RUN = "run --testbed configs/testbeds/sim.toml --plan smoke"
# The cases that a good switch passes on any machine: no stall of it is taken for a dip.
GOOD = ("--case", "pfc.pause-single-lossless", "--case", "pfc.pause-multi-lossless")
# A fault of the switch, as the README has it.
FAULTY = ("--set", 'testbed.dut.faults=["leaks=100"]')
# The place in a report where its first time line is.
FIRST_REPETITION = "case-0-repetition-0"
WATCH = "watch d0 d1 --dscp-map dscp-mod-8 --line-rate 1G"
# The switch's ports d0 and d1 are behind the tester's t0 and t1.
TESTBED = """name = "watched"

[dut]
kind = "external"

[ports]
tx = { interface = "t0" }
rx = { interface = "t1" }
line_rate = "1G"

[qos]
dscp_map = "dscp-mod-8"
lossless = [3]

[limits]
max_residence = "8s"

[facts]
watchdog = "off"
"""
# One repetition with a storm of some seconds.
PLAN = """name = "watched"

[durations]
baseline = "300ms"
lead = "300ms"
traffic = "5s"
tail = "300ms"
resume = "300ms"
drain_max = "2s"

[[case]]
id = "pfc.pause-single-lossless"
repetitions = [{ lossless = [3] }]
"""
# Pixels of a character, of a line, and around the text, with a font of 13.
CHARACTER, LINE, MARGIN = 8, 17, 16
PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><style>
body{{margin:0;background:#1b1f24;color:#d7dde4}}
pre{{margin:{margin}px;font:13px/{line}px 'DejaVu Sans Mono',monospace}}
b{{color:#fff}}</style></head><body><pre><b>{typed}</b>
{text}</pre></body></html>"""


def on_terminal(command, columns, rows, wanted=lambda lines: False, **options):
    """Runs a program on a terminal to its end, or until its screen is one that is wanted; then it
    is ended. Returns the lines of the screen, and the exit code if it was not ended."""
    # The tests of what is below run without it.
    import pyte
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=its,
                             stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"},
                             **options)
    os.close(its)

    def lines():
        return "\n".join(line.rstrip() for line in screen.display).rstrip().splitlines()
    while True:
        try:
            stream.feed(os.read(ours, 4096))
        except OSError:
            # EIO: the last process on the terminal has ended.
            break
        if wanted(lines()):
            child.kill()
            break
    os.close(ours)
    return lines(), child.wait()


def run_on(name, options, expected):
    """Runs the plan, with what it printed on a terminal beside its results."""
    out = FOLDER / name
    lines, status = on_terminal([VALIDATOR, *RUN.split(), *options, "--out", out], 100, 200,
                                cwd=ROOT)
    if status != expected:
        raise Failure(f"expected the exit code {expected}, found {status}; a busy machine can make "
                      "a run inconclusive:\n" + "\n".join(lines))
    keep(name, f"validator {RUN} \\\n      {shlex.join(options)}", lines)


def keep(name, typed, lines):
    (FOLDER / f"{name}.txt").write_text("\n\n".join([typed, "\n".join(lines)]))


def in_storm(lines):
    """True once a whole interval lay in the storm."""
    shares = (re.search(r"^  priority \d.* (\S+) %$", line) for line in lines)
    return any(float(share[1]) > 99 for share in shares if share)


def watch():
    """The screen of `validator watch` at the ports of a simulated switch, in the middle of the
    storm of a run that tests it."""
    (FOLDER / "testbed.toml").write_text(TESTBED)
    (FOLDER / "plan.toml").write_text(PLAN)
    enter()
    tester, device = Namespace(), Namespace.new()
    tester.batch("ip", "".join(
        f"link add name t{port} type veth peer name d{port} netns {device.path}\n"
        f"link set t{port} up\n" for port in range(2)))
    device.batch("ip", "link set d0 up\nlink set d1 up\n")
    switch = "dut switch --port d0 --port d1 --line-rate 1G --lossless 3"
    plan = "run --testbed testbed.toml --plan plan.toml --out watched"
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    beside = [subprocess.Popen(device.bound(VALIDATOR, *switch.split()), **quiet),
              subprocess.Popen(bound(VALIDATOR, *plan.split()), cwd=FOLDER, **quiet)]
    # Rows for the tables of both ports: `watch` shows no more than fit.
    lines, status = on_terminal(device.bound(VALIDATOR, *WATCH.split(), "--duration", "20s"), 112,
                                64, in_storm)
    for child in beside:
        child.kill()
        child.wait()
    if status >= 0:
        raise Failure("expected a storm to be seen, found a last screen:\n" + "\n".join(lines))
    keep("watch", f"validator {WATCH}", lines)


class Studio:
    """The browser, and what makes its pictures small."""

    def __init__(self):
        archive = packages.Archive()
        self.chromium, self.tree = Chromium(archive, FOLDER), packages.pictures(archive)
        IMAGES.mkdir(exist_ok=True)

    def page(self, page, image, window=WINDOW, dark=False):
        """The top of a page, with a palette."""
        large, image = FOLDER / "large.png", IMAGES / image
        large.unlink(missing_ok=True)
        output(*self.chromium.command(page, window, dark, "--hide-scrollbars",
                                      "--virtual-time-budget=5000", f"--screenshot={large}"),
               env=self.chromium.environment)
        run(self.tree.program("pngquant"), "--force", "--strip", "--speed", "1", "--output", image,
            "--", large, env={**os.environ, "LD_LIBRARY_PATH": self.tree.libraries})
        size = image.stat().st_size
        print(f"    {image}: {size / 1e3:.0f} kB")
        if size >= LARGEST:
            raise Failure(f"expected a picture of less than {LARGEST} octets, found {size}")

    def part(self, page, name, image):
        """The part of a page with this id, by itself: a headless browser draws nothing of a page
        that it has scrolled."""
        text = page.read_text()
        if f'id="{name}"' not in text:
            raise Failure(f"{page}: expected a part {name}, found none")
        alone = ("<script>document.body.replaceChildren("
                 f'document.getElementById("{name}"))</script></body>')
        part = FOLDER / "part.html"
        part.write_text(text.replace("</body>", alone))
        self.page(part, image)

    def terminal(self, name, image):
        """A terminal with a command and what it shows."""
        text, window = terminal(*(FOLDER / f"{name}.txt").read_text().split("\n\n", 1))
        page = FOLDER / "terminal.html"
        page.write_text(text)
        self.page(page, image, window)


def terminal(typed, shown):
    """A page that shows a screen, and the window that it fits."""
    typed = f"$ {typed}"
    lines = typed.splitlines() + shown.splitlines()
    window = (max(map(len, lines)) * CHARACTER + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN)
    return PAGE.format(margin=MARGIN, line=LINE, typed=html.escape(typed, quote=False),
                       text=html.escape(shown, quote=False)), window


def lab():
    parser = argparse.ArgumentParser(prog="cargo xtask screenshots", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="without new runs")
    options = parser.parse_args()
    studio = Studio()
    if not options.again:
        with step("a good switch"):
            run_on("good", GOOD, 0)
        with step("a faulty switch"):
            run_on("faulty", FAULTY, 1)
        with step("a switch that is watched"):
            watch()
    with step("pictures"):
        good, faulty = (FOLDER / name / "report.html" for name in ("good", "faulty"))
        studio.page(faulty, "report.png")
        studio.page(good, "report-dark.png", dark=True)
        studio.part(faulty, FIRST_REPETITION, "time-line.png")
        studio.terminal("good", "summary.png")
        studio.terminal("watch", "watch.png")


if __name__ == "__main__":
    main(lab)
