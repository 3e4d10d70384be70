"""The pages of report.html in a browser.

Debian's Chromium without a window renders a good, a failing and an inconclusive run of each family
at the width of a telephone, a notebook and a large screen, light and dark. browser-probe.js, added
to a copy of the page, says what is wrong: texts that overlap, errors, what the policy refuses, and
violations of the rules of axe-core.
"""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from shared import packages
from shared.chromium import Chromium
from shared.steps import ROOT, Failure, Tally, main, output, run, shown, step, tests

FOLDER = ROOT / "target/lab/browser"
PROBE = Path(__file__).with_name("browser-probe.js")
# The release of axe-core in use, and its package's hash.
AXE_VERSION = "4.14.1"
AXE_INTEGRITY = ("sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJp"
                 "Ze37OgudVGtQ==")
# Widths of windows, and whether the colours are dark.
WINDOWS = ((360, False), (1024, False), (1920, False), (1024, True))
# Most sheets of the summary on paper.
SHEETS = 4
# A page that has each kind of mistake, to show that the probe finds them.
WRONG = """<!DOCTYPE html><html><head><title>x</title></head><body>
    <p style="position:absolute;top:9px">one text</p>
    <p style="position:absolute;top:9px">another text</p>
    <p style="position:absolute;top:99px;color:#ccc">pale text</p><img src="none.png">
    <script>console.error('planted');throw new Error('thrown')</script></body></html>"""
# What is found there, in a window that is said to be another.
MISTAKES = ("the window is 1024 pixels wide", "the colours are not those that were asked for",
            "texts overlap: one text | another text", "error: Uncaught Error: thrown",
            "axe image-alt", "axe color-contrast", "console: ")


def axe():
    """The source of axe-core, which npm fetches once."""
    folder = packages.cache() / f"axe-core-{AXE_VERSION}"
    file = folder / "axe.min.js"
    if not file.is_file():
        with step(f"axe-core {AXE_VERSION}"):
            folder.mkdir(parents=True, exist_ok=True)
            packed = json.loads(output("npm", "pack", "--json", f"axe-core@{AXE_VERSION}",
                                       cwd=folder))[0]
            if packed["integrity"] != AXE_INTEGRITY:
                raise Failure(f"axe-core {AXE_VERSION}: expected a package with {AXE_INTEGRITY}, "
                              f"found {packed['integrity']}")
            run("tar", "-xzf", packed["filename"], "--strip-components=1", "package/axe.min.js",
                cwd=folder)
    return file.read_text()


class Browser:
    def __init__(self):
        shutil.rmtree(FOLDER, ignore_errors=True)
        self.chromium, self.axe = Chromium(packages.Archive(), FOLDER), axe()

    def mistakes(self, page, window, said):
        """What is wrong with a page in a window of that width and colours. `said` is what the
        probe takes the window for."""
        width, dark = window
        settings = f"const WINDOW = {{ width: {said[0]}, dark: {json.dumps(said[1])} }};"
        before, after = page.split("<head>", 1)
        probed = FOLDER / "probed.html"
        probed.write_text(f"{before}<head><script>{self.axe}{settings}{PROBE.read_text()}</script>"
                          f"{after}")
        command = self.chromium.command(probed, (width, 1000), dark, "--dump-dom",
                                        "--virtual-time-budget=100000", "--enable-logging=stderr")
        done = subprocess.run(command, env=self.chromium.environment, capture_output=True,
                              text=True, errors="replace")
        found = of_probe(done.stdout)
        if found is None:
            raise Failure(f"{shown(command)} ended with {done.returncode} and without a result:\n"
                          f"{done.stderr}")
        lines = done.stderr.splitlines()
        return found + [f"console: {line}" for line in lines if ":CONSOLE:" in line]

    def sheets(self, page):
        """Number of sheets that the page takes on paper."""
        file, paper = FOLDER / "printed.html", FOLDER / "printed.pdf"
        file.write_text(page)
        output(*self.chromium.command(file, (1024, 1000), False, f"--print-to-pdf={paper}"),
               env=self.chromium.environment)
        return sheets_of(paper.read_bytes())


def of_probe(page):
    """The list that the probe has written into the page."""
    found = re.search('data-wrong="([^"]*)"', page)
    return json.loads(html.unescape(found[1])) if found else None


def sheets_of(pdf):
    """Number of page objects in a PDF."""
    return len(re.findall(rb"/Type /Page(?!s)", pdf))


def check(browser, name, page, tally):
    for window in WINDOWS:
        width, dark = window
        found = browser.mistakes(page, window, window)
        tally.check(f"{name}, {width} pixels, {'dark' if dark else 'light'}", not found,
                    "\n    ".join(found))
    # A parser ignores an attribute that is there already.
    sheets = [browser.sheets(page), browser.sheets(page.replace("<details", '<details open=""'))]
    tally.check(f"{name} on paper", sheets[0] == sheets[1] <= SHEETS,
                f"expected at most {SHEETS} sheets, whatever is open; found {sheets[0]}, and "
                f"{sheets[1]} with all parts open")


def lab():
    browser, tally, pages = Browser(), Tally(), FOLDER / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    run(*tests("rules"), "--", "pages::says::every_page", cwd=ROOT,
        env=dict(os.environ, VALIDATOR_PAGES=pages))
    tally.check("there are pages", any(pages.iterdir()), f"none in {pages}")
    for path in sorted(pages.iterdir()):
        with step(f"{path.stem} in the browser"):
            check(browser, path.stem, path.read_text(), tally)
    found = browser.mistakes(WRONG, (1024, False), (360, True))
    missed = [mistake for mistake in MISTAKES
              if not any(line.startswith(mistake) for line in found)]
    tally.check("what is planted is found", not missed, f"missed {missed} in {found}")
    return tally.close()


if __name__ == "__main__":
    main(lab)
