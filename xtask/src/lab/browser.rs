//! Part of `cargo xtask test --full`: the pages of `report.html` in a browser.
//!
//! Debian's Chromium without a window renders a good, a failing and an inconclusive run of each
//! family at the width of a telephone, a notebook and a large screen, light and dark. The script
//! `PROBE`, added to a copy of the page, says what is wrong: texts that overlap, errors, what the
//! policy refuses, and violations of the rules of axe-core.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use super::archive::cannot_write;
use super::chromium::Chromium;
use super::script;
use crate::step::{self, step};
use crate::toolchain;

const PROBE: &str = include_str!("browser/probe.js");

/// The release of axe-core in use, and its package's hash.
const AXE_VERSION: &str = "4.14.1";
const AXE_INTEGRITY: &str = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==";

/// Widths of windows, and whether the colours are dark.
const WINDOWS: [(u32, bool); 4] = [(360, false), (1024, false), (1920, false), (1024, true)];

/// Most sheets of the summary on paper.
const SHEETS: usize = 4;

/// A page that has each kind of mistake, to show that the probe finds them.
const WRONG: &str = "<!DOCTYPE html><html><head><title>x</title></head><body>\
    <p style=\"position:absolute;top:9px\">one text</p>\
    <p style=\"position:absolute;top:9px\">another text</p>\
    <p style=\"position:absolute;top:99px;color:#ccc\">pale text</p><img src=\"none.png\">\
    <script>console.error('planted');throw new Error('thrown')</script></body></html>";
/// What is found there, in a window that is said to be another.
const MISTAKES: [&str; 7] = [
    "the window is 1024 pixels wide",
    "the colours are not those that were asked for",
    "texts overlap: one text | another text",
    "error: Uncaught Error: thrown",
    "axe image-alt",
    "axe color-contrast",
    "console: ",
];

/// Prints a closing line like libtest's.
pub fn test(root: &Path) -> Result<ExitCode> {
    let folder = root.join("target/lab/browser");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| cannot_write(&folder))?;
    }
    let browser = Browser {
        chromium: Chromium::prepare(&folder)?,
        axe: axe()?,
        folder,
    };
    let pages = browser.folder.join("pages");
    let mut example = step::cargo();
    example
        .args(["run", "--quiet", "--package", "validator-core"])
        .args(["--example", "pages", "--"])
        .arg(&pages)
        .current_dir(root);
    step::run(&mut example)?;
    let mut failed = Vec::new();
    let mut passed = 0;
    let mut names: Vec<PathBuf> = fs::read_dir(&pages)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    names.sort();
    for path in names {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let page = fs::read_to_string(&path)?;
        step(&format!("{name} in the browser"), || {
            for (width, dark) in WINDOWS {
                let colours = if dark { "dark" } else { "light" };
                let found = browser.mistakes(&page, (width, dark), (width, dark))?;
                let mistakes = found
                    .iter()
                    .map(|wrong| format!("{name}, {width} pixels, {colours}: {wrong}"));
                if found.is_empty() {
                    passed += 1;
                }
                failed.extend(mistakes);
            }
            match browser.paper(&page)? {
                [printed, open] if printed == open && printed <= SHEETS => passed += 1,
                [printed, open] => failed.push(format!(
                    "{name}: expected at most {SHEETS} sheets, whatever is open; found {printed}, \
                     and {open} with all parts open"
                )),
            }
            Ok(())
        })?;
    }
    let found = browser.mistakes(WRONG, (1024, false), (360, true))?;
    let missed = MISTAKES
        .iter()
        .filter(|mistake| !found.iter().any(|found| found.starts_with(*mistake)));
    let missed: Vec<String> = missed
        .map(|mistake| format!("planted, and not found: {mistake:?} in {found:?}"))
        .collect();
    if missed.is_empty() {
        passed += 1;
    }
    failed.extend(missed);
    let closed = script::close(passed, &failed);
    Ok(if closed.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Browser {
    chromium: Chromium,
    /// The source of axe-core.
    axe: String,
    folder: PathBuf,
}

impl Browser {
    /// Renders a page in a window of that width and colours, and returns what is wrong with it.
    /// `said` is what the probe takes the window for.
    fn mistakes(
        &self,
        page: &str,
        (width, dark): (u32, bool),
        said: (u32, bool),
    ) -> Result<Vec<String>> {
        let (before, after) = page
            .split_once("<head>")
            .context("expected a page with <head>")?;
        let window = format!("const WINDOW = {{ width: {}, dark: {} }};", said.0, said.1);
        let axe = &self.axe;
        let probed = format!("{before}<head><script>{axe}{window}{PROBE}</script>{after}");
        let file = self.folder.join("probed.html");
        fs::write(&file, probed).with_context(|| cannot_write(&file))?;
        let mut chromium = self.chromium.command((width, 1000), dark);
        chromium
            .args(["--virtual-time-budget=100000", "--enable-logging=stderr"])
            .arg("--dump-dom")
            .arg(format!("file://{}", file.display()));
        let output = chromium
            .output()
            .with_context(|| format!("cannot run {}", step::show(&chromium)))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let log = String::from_utf8_lossy(&output.stderr);
        let Some(mut found) = of_probe(&printed) else {
            bail!(
                "{} ended with {} and without a result:\n{log}",
                step::show(&chromium),
                output.status
            );
        };
        let console = log.lines().filter(|line| line.contains(":CONSOLE:"));
        found.extend(console.map(|line| format!("console: {line}")));
        Ok(found)
    }

    /// Number of sheets that the page takes on paper, and that it takes with all parts open.
    fn paper(&self, page: &str) -> Result<[usize; 2]> {
        // A parser ignores an attribute that is there already.
        let open = page.replace("<details", "<details open=\"\"");
        Ok([self.sheets(page)?, self.sheets(&open)?])
    }

    /// Number of sheets that the browser prints.
    fn sheets(&self, page: &str) -> Result<usize> {
        let [file, paper] = ["printed.html", "printed.pdf"].map(|name| self.folder.join(name));
        fs::write(&file, page).with_context(|| cannot_write(&file))?;
        let mut chromium = self.chromium.command((1024, 1000), false);
        chromium
            .arg(format!("--print-to-pdf={}", paper.display()))
            .arg(format!("file://{}", file.display()));
        step::output(&mut chromium)?;
        let printed = fs::read(&paper).with_context(|| format!("no {}", paper.display()))?;
        Ok(sheets_of(&printed))
    }
}

/// Number of page objects in a PDF.
fn sheets_of(pdf: &[u8]) -> usize {
    let text = String::from_utf8_lossy(pdf);
    let pages = text.match_indices("/Type /Page");
    pages
        .filter(|(at, found)| !text[at + found.len()..].starts_with('s'))
        .count()
}

/// The list that the probe has written into the page.
fn of_probe(page: &str) -> Option<Vec<String>> {
    let (_, rest) = page.split_once("data-wrong=\"")?;
    let (list, _) = rest.split_once('"')?;
    let list = list
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&nbsp;", " ")
        .replace("&amp;", "&");
    serde_json::from_str(&list).ok()
}

/// The source of axe-core, which npm fetches once.
fn axe() -> Result<String> {
    let folder = toolchain::cache().join(format!("axe-core-{AXE_VERSION}"));
    let file = folder.join("axe.min.js");
    if !file.is_file() {
        step(&format!("axe-core {AXE_VERSION}"), || fetch_axe(&folder))?;
    }
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

fn fetch_axe(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| cannot_write(folder))?;
    let mut pack = Command::new("npm");
    pack.args(["pack", "--json", &format!("axe-core@{AXE_VERSION}")])
        .current_dir(folder);
    let packed: serde_json::Value = serde_json::from_str(&step::output(&mut pack)?)?;
    let found = packed[0]["integrity"].as_str().unwrap_or_default();
    if found != AXE_INTEGRITY {
        bail!("axe-core {AXE_VERSION}: expected a package with {AXE_INTEGRITY}, found {found}");
    }
    let archive = packed[0]["filename"].as_str().unwrap_or_default();
    let mut unpack = Command::new("tar");
    unpack
        .args([
            "-xzf",
            archive,
            "--strip-components=1",
            "package/axe.min.js",
        ])
        .current_dir(folder);
    step::run(&mut unpack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_mistakes_is_read_from_the_page() {
        let page = "<body data-wrong=\"[&quot;a &lt;b&gt; &amp;amp;&quot;]\"></body>";
        assert_eq!(of_probe(page), Some(vec!["a <b> &amp;".to_owned()]));
        assert_eq!(of_probe("<body data-wrong=\"[]\">"), Some(Vec::new()));
        assert_eq!(of_probe("<body>"), None);
    }

    #[test]
    fn sheets_are_pages_and_not_their_list() {
        let pdf = b"%PDF-1.4\n<</Type /Pages>>\n<</Type /Page\n>> <</Type /Page>>\xff";
        assert_eq!(sheets_of(pdf), 2);
    }
}
