"""Debian's Chromium without a window, unpacked into the cache."""

import os

from shared import packages
from shared.steps import bound

FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{tree}/usr/share/fonts</dir><cachedir>{folder}/fonts</cachedir></fontconfig>
"""
# Seconds after which a page that is not done is given up.
LIMIT = "120"


class Chromium:
    def __init__(self, archive, folder):
        """`folder` is for what it writes. Its fonts are those of the tree, whatever the machine
        has."""
        self.tree, self.folder = packages.browser(archive), folder
        folder.mkdir(parents=True, exist_ok=True)
        fonts = folder / "fonts.conf"
        fonts.write_text(FONTS.format(tree=self.tree.folder, folder=folder))
        # One of the packages has libraries of its own outside the usual folders.
        own = self.tree.folder / "usr/lib/x86_64-linux-gnu/pulseaudio"
        self.environment = {**os.environ, "HOME": str(folder), "FONTCONFIG_FILE": str(fonts),
                            "LD_LIBRARY_PATH": f"{self.tree.libraries}:{own}"}

    def command(self, page, size, dark, *what):
        """Opens the file in a window of that width and height, and does what is asked of it."""
        width, height = size
        colours = ["--blink-settings=preferredColorScheme=0"] if dark else []
        return bound("timeout", LIMIT,
                     self.tree.folder / "usr/lib/chromium/chromium-headless-shell",
                     "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     f"--window-size={width},{height}", f"--user-data-dir={self.folder}/profile",
                     *colours, *what, f"file://{page}")
