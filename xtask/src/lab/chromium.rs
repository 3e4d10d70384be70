//! Debian's Chromium without a window, unpacked into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::archive::{Archive, cannot_write};
use super::packages::Tree;

/// Seconds after which a page that is not done is given up.
const LIMIT: &str = "120";

/// The browser, and a folder for what it writes.
pub struct Chromium {
    tree: Tree,
    folder: PathBuf,
}

impl Chromium {
    /// Unpacks it if necessary, and makes the folder.
    pub fn prepare(folder: &Path) -> Result<Self> {
        let chromium = Self {
            tree: Tree::browser(&Archive::open()?)?,
            folder: folder.to_owned(),
        };
        fs::create_dir_all(folder).with_context(|| cannot_write(folder))?;
        chromium.write_fonts()?;
        Ok(chromium)
    }

    /// The browser's fonts are those of the tree, whatever the machine has.
    fn write_fonts(&self) -> Result<()> {
        let text = format!(
            "<?xml version=\"1.0\"?><!DOCTYPE fontconfig SYSTEM \"fonts.dtd\">\
             <fontconfig><dir>{}</dir><cachedir>{}</cachedir></fontconfig>",
            self.tree.path("usr/share/fonts").display(),
            self.folder.join("fonts").display()
        );
        let file = self.folder.join("fonts.conf");
        fs::write(&file, text).with_context(|| cannot_write(&file))
    }

    /// The program with a window of that width and height. What it is to do, and the page's
    /// address, are to be added.
    pub fn command(&self, (width, height): (u32, u32), dark: bool) -> Command {
        let mut chromium = Command::new("timeout");
        chromium
            .arg(LIMIT)
            .arg(self.tree.path("usr/lib/chromium/chromium-headless-shell"))
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .arg(format!("--window-size={width},{height}"))
            .arg(format!(
                "--user-data-dir={}",
                self.folder.join("profile").display()
            ))
            .args(dark.then_some("--blink-settings=preferredColorScheme=0"))
            .env("HOME", &self.folder)
            .env("FONTCONFIG_FILE", self.folder.join("fonts.conf"))
            .env("LD_LIBRARY_PATH", self.libraries());
        chromium
    }

    /// Folders of libraries: one of the packages has its own outside the usual ones.
    fn libraries(&self) -> String {
        let own = self.tree.path("usr/lib/x86_64-linux-gnu/pulseaudio");
        format!("{}:{}", self.tree.libraries(), own.display())
    }
}
