//! Pages and terminals as small PNG files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::terminal::Screen;
use crate::lab::archive::{Archive, cannot_write};
use crate::lab::chromium::Chromium;
use crate::lab::packages::Tree;
use crate::step;

/// Octets of the largest picture: a reader loads several.
pub const LARGEST: usize = 150_000;
/// Width of a character and height of a line in a terminal's picture, in pixels of a font of 13.
const CHARACTER: (f64, f64) = (7.83, 17.0);
/// Pixels around a terminal's text.
const MARGIN: u32 = 16;

/// The browser, and what makes its pictures small.
pub struct Studio {
    chromium: Chromium,
    tree: Tree,
    folder: PathBuf,
}

impl Studio {
    /// Unpacks the programs if necessary.
    pub fn prepare(folder: &Path) -> Result<Self> {
        Ok(Self {
            chromium: Chromium::prepare(folder)?,
            tree: Tree::pictures(&Archive::open()?)?,
            folder: folder.to_owned(),
        })
    }

    /// The part of a page that has this id, by itself: a headless browser draws nothing of a page
    /// that it has scrolled.
    pub fn part(&self, page: &Path, id: &str, window: (u32, u32), image: &Path) -> Result<()> {
        let cannot_read = || format!("cannot read {}", page.display());
        let text = fs::read_to_string(page).with_context(cannot_read)?;
        if !text.contains(&format!("id=\"{id}\"")) {
            bail!("{}: expected a part {id}, found none", page.display());
        }
        let alone = format!(
            "<script>document.body.replaceChildren(document.getElementById(\"{id}\"))</script></body>"
        );
        let part = self.folder.join("part.html");
        fs::write(&part, text.replace("</body>", &alone)).with_context(|| cannot_write(&part))?;
        self.page(&part, window, false, image)
    }

    /// The top of a page.
    pub fn page(&self, page: &Path, window: (u32, u32), dark: bool, image: &Path) -> Result<()> {
        let large = self.folder.join("large.png");
        if large.exists() {
            fs::remove_file(&large).with_context(|| cannot_write(&large))?;
        }
        let mut chromium = self.chromium.command(window, dark);
        chromium
            .args(["--hide-scrollbars", "--virtual-time-budget=5000"])
            .arg(format!("--screenshot={}", large.display()))
            .arg(format!("file://{}", page.display()));
        step::output(&mut chromium)?;
        self.shrink(&large, image)
    }

    /// A terminal with a command and what it shows.
    pub fn terminal(&self, screen: &Screen, image: &Path) -> Result<()> {
        let page = self.folder.join("terminal.html");
        let (text, window) = terminal(screen);
        fs::write(&page, text).with_context(|| cannot_write(&page))?;
        self.page(&page, window, false, image)
    }

    /// Writes the picture with a palette.
    fn shrink(&self, large: &Path, image: &Path) -> Result<()> {
        let mut quant = Command::new(self.tree.program("pngquant")?);
        quant
            .args(["--force", "--strip", "--speed", "1", "--output"])
            .arg(image)
            .arg("--")
            .arg(large)
            .env("LD_LIBRARY_PATH", self.tree.libraries());
        step::run(&mut quant)?;
        let size = fs::metadata(image)
            .with_context(|| format!("there is no {}", image.display()))?
            .len();
        println!("    {}: {:.0} kB", image.display(), size as f64 / 1e3);
        if size >= LARGEST as u64 {
            bail!("expected a picture of less than {LARGEST} octets, found {size}");
        }
        Ok(())
    }
}

/// A page that shows the screen, and the window that it fits.
fn terminal(screen: &Screen) -> (String, (u32, u32)) {
    let typed = format!("$ {}", screen.typed());
    let text = screen.text();
    let lines = || typed.lines().chain(text.lines());
    let widest = lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let pixels = |count: usize, each: f64| (count as f64 * each).ceil() as u32 + 2 * MARGIN;
    let window = (
        pixels(widest, CHARACTER.0),
        pixels(lines().count(), CHARACTER.1),
    );
    let page = format!(
        "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><style>\
         body{{margin:0;background:#1b1f24;color:#d7dde4}}\
         pre{{margin:{MARGIN}px;font:13px/{height}px 'DejaVu Sans Mono',monospace}}\
         b{{color:#fff}}</style></head><body><pre><b>{}</b>\n{}</pre></body></html>",
        escaped(&typed),
        escaped(&text),
        height = CHARACTER.1,
    );
    (page, window)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::super::terminal::{self as on_terminal, Size};
    use super::*;

    #[test]
    fn the_pictures_of_the_documentation_are_there_and_small() {
        let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
        let pictures = fs::read_dir(&images).unwrap().map(|entry| entry.unwrap());
        // The drawing beside them comes from `pfc-user/otg/tests/python/storm.py`.
        let octets: Vec<_> = pictures
            .map(|picture| picture.path())
            .filter(|path| path.extension().is_some_and(|kind| kind == "png"))
            .map(|path| fs::read(path).unwrap())
            .collect();
        assert_eq!(octets.len(), 5);
        for picture in octets {
            assert!(picture.starts_with(b"\x89PNG"));
            // An empty page has some hundred octets.
            assert!(
                (2_000..LARGEST).contains(&picture.len()),
                "{}",
                picture.len()
            );
        }
    }

    #[test]
    fn a_window_fits_what_a_terminal_shows() {
        let size = Size::new(80, 9);
        let mut echo = Command::new("printf");
        echo.args(["a<b\nsecond"]).stdin(Stdio::null());
        let (screen, _) = on_terminal::run(&mut echo, size, |_| false).unwrap();
        let (page, window) = terminal(&screen.titled("printf ab"));
        assert!(
            page.contains("<b>$ printf ab</b>\na&lt;b\nsecond</pre>"),
            "{page}"
        );
        assert_eq!(window, (11 * 783 / 100 + 1 + 32, 3 * 17 + 32));
    }
}
