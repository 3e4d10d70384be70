//! Debian's archive beside the machine's own packages: a private apt root with further suites, for
//! kernels and a QEMU that the machine's release does not have. Nothing from it is installed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step::{self, step};
use crate::{setup, toolchain};

/// Keys of all Debian releases, from the package debian-archive-keyring.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Suites from which the labs take packages: 5.10, 6.1 and 6.12, QEMU with igb, and the newest
/// kernel.
const SUITES: [&str; 4] = [
    "bullseye",
    "bookworm",
    "bookworm-backports",
    "trixie-backports",
];
/// Suites of the security archive: the kernels that users of these releases run.
const SECURITY_SUITES: [&str; 1] = ["bookworm-security"];

/// A private apt root in the cache.
pub struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// Makes the root, and downloads the lists of packages if there are none.
    pub fn open() -> Result<Self> {
        for tool in ["apt-get", "apt-cache", "dpkg"] {
            if !setup::in_path(tool) {
                bail!(
                    "there is no {tool}: the labs take QEMU and kernels from Debian's packages, \
                     on Debian or what derives from it"
                );
            }
        }
        let archive = Self {
            folder: toolchain::cache().join("apt"),
        };
        let sources = sources()?;
        let list = archive.folder.join("sources.list");
        let _alone = archive.alone()?;
        let known = fs::read_to_string(&list).is_ok_and(|found| found == sources);
        if !known || archive.newest("linux-image-6.1.").is_err() {
            for folder in ["lists/partial", "cache/archives/partial"] {
                let folder = archive.folder.join(folder);
                fs::create_dir_all(&folder).with_context(|| cannot_write(&folder))?;
            }
            fs::write(&list, sources).with_context(|| cannot_write(&list))?;
            archive.download_lists()?;
        }
        Ok(archive)
    }

    /// Updates the lists of packages. If a suite has left the archive, only its kernel is lost.
    pub fn update(&self) -> Result<()> {
        let _alone = self.alone()?;
        self.download_lists()
    }

    /// Waits until no other lab changes the lists: apt refuses where it cannot lock them at once.
    /// The lock is held until the file is dropped.
    fn alone(&self) -> Result<File> {
        let path = self.folder.join("alone");
        let lock = || {
            fs::create_dir_all(&self.folder)?;
            let file = File::create(&path)?;
            file.lock()?;
            Ok::<_, std::io::Error>(file)
        };
        lock().with_context(|| cannot_write(&path))
    }

    fn download_lists(&self) -> Result<()> {
        step("lists of Debian's packages, for the labs", || {
            step::run(self.apt("apt-get").args(["-qq", "update"])).or_else(|error| {
                println!("    going on with the lists that there are: {error:#}");
                Ok(())
            })
        })
    }

    /// Finds the package with the highest version among those named `prefix`, a version and
    /// `-amd64`.
    pub fn newest(&self, prefix: &str) -> Result<String> {
        let mut search = self.apt("apt-cache");
        search.args(["pkgnames", prefix]);
        let names = step::output(&mut search)?;
        newest_of(names.lines(), prefix)
            .with_context(|| format!("no suite of Debian has a package {prefix}*-amd64"))
    }

    /// Resolves what has to be unpacked beside the machine's own packages to run `packages`, which
    /// are themselves included. Returns one line per package with name, version, size and hash;
    /// uses no network. `suite` is preferred to others.
    pub fn closure(&self, packages: &[&str], suite: Option<&str>) -> Result<String> {
        let mut simulate = self.apt("apt-get");
        simulate.args(["-s", "--no-install-recommends", "--reinstall", "install"]);
        if let Some(suite) = suite {
            simulate.args(["-t", suite]);
        }
        let simulated = step::output(simulate.args(packages))?;
        self.exactly(&to_install(&simulated).collect::<Vec<_>>())
    }

    /// Returns the same lines for these packages only, each given as `NAME=VERSION` or `NAME`.
    pub fn exactly<S: AsRef<str>>(&self, packages: &[S]) -> Result<String> {
        let mut download = self.apt("apt-get");
        download.args(["-qq", "download", "--print-uris"]);
        let uris = step::output(download.args(packages.iter().map(AsRef::as_ref)))?;
        // The URI is apt's business.
        let mut lines: Vec<&str> = uris
            .lines()
            .filter_map(|line| Some(line.split_once(' ')?.1))
            .collect();
        lines.sort_unstable();
        Ok(lines.join("\n"))
    }

    /// Downloads the packages of such lines and unpacks them below `folder`.
    pub fn unpack(&self, wanted: &str, folder: &Path) -> Result<()> {
        let archives = folder.join("archives");
        fs::create_dir_all(&archives).with_context(|| cannot_write(folder))?;
        let mut download = self.apt("apt-get");
        download.args(["-qq", "download"]);
        download.current_dir(&archives);
        step::run(download.args(wanted.lines().filter_map(pinned)))?;
        for archive in fs::read_dir(&archives)? {
            let path = archive?.path();
            step::run(Command::new("dpkg").arg("-x").arg(path).arg(folder))?;
        }
        Ok(fs::remove_dir_all(&archives)?)
    }

    /// Makes an apt command in this root. Packages of the machine count as installed.
    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let at = |name: &str| self.folder.join(name).display().to_string();
        for option in [
            format!("Dir::Etc::sourcelist={}", at("sources.list")),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("Dir::State::lists={}", at("lists")),
            format!("Dir::Cache={}", at("cache")),
            // Lists and archives lie in folders that only root may write.
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command
    }
}

/// Error message for a place in the cache.
pub fn cannot_write(path: &Path) -> String {
    format!(
        "cannot write to {}; VALIDATOR_CACHE names another folder",
        path.display()
    )
}

/// The private root's list of sources, on the servers of the machine's own list.
fn sources() -> Result<String> {
    let known = index_targets()?;
    let known = if known.is_empty() {
        // apt knows an archive's label only from its lists.
        step::run(Command::new("apt-get").args(["-q", "update"]))?;
        index_targets()?
    } else {
        known
    };
    sources_of(&known).with_context(|| {
        format!("expected Debian and Debian-Security among apt's sources, found:\n{known}")
    })
}

fn index_targets() -> Result<String> {
    let mut targets = Command::new("apt-get");
    targets.args([
        "indextargets",
        "--format",
        "$(LABEL)|$(REPO_URI)|$(SUITE)|$(CODENAME)",
    ]);
    step::output(targets.arg("Created-By: Packages"))
}

fn sources_of(targets: &str) -> Option<String> {
    let of = |label: &'static str| {
        let fields = targets
            .lines()
            .map(|line| line.split('|').collect::<Vec<_>>());
        fields
            .filter(move |fields| fields.len() == 4 && fields[0] == label)
            .map(|fields| (fields[1].to_owned(), fields[3].to_owned()))
    };
    let (debian, release) = of("Debian").next()?;
    let (security, security_release) = of("Debian-Security").next()?;
    let mut lines = Vec::new();
    let mut add = |server: &str, suite: &str| {
        let line = format!("deb [signed-by={KEYRING}] {server} {suite} main\n");
        if !lines.contains(&line) {
            lines.push(line);
        }
    };
    let release = release.split('-').next()?.to_owned();
    add(&debian, &release);
    add(&security, &security_release);
    SUITES.iter().for_each(|suite| add(&debian, suite));
    SECURITY_SUITES
        .iter()
        .for_each(|suite| add(&security, suite));
    Some(lines.concat())
}

/// Of the names that are `prefix`, a version and `-amd64`, returns the one with the highest
/// version.
fn newest_of<'a>(names: impl Iterator<Item = &'a str>, prefix: &str) -> Option<String> {
    let version = |name: &str| -> Option<Vec<u32>> {
        let version = name.strip_prefix(prefix)?.strip_suffix("-amd64")?;
        let numeric = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
        let plain = numeric(version) && version.split(['.', '-']).skip(1).all(numeric);
        let numbers = version
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|number| number.parse().ok());
        plain.then(|| numbers.collect())
    };
    names
        .filter_map(|name| Some((version(name)?, name)))
        .max()
        .map(|(_, name)| name.to_owned())
}

/// Packages that a simulated installation would install or reinstall, as `NAME=VERSION`.
fn to_install(simulated: &str) -> impl Iterator<Item = String> {
    simulated.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
        let version = rest.split_once('(')?.1.split(' ').next()?;
        Some(format!("{name}={version}"))
    })
}

/// Parses `NAME=VERSION` from a line that starts with the archive's name, such as
/// `seabios_1.16.2-1_all.deb`.
fn pinned(line: &str) -> Option<String> {
    let mut parts = line.split(' ').next()?.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some(format!("{name}={}", version.replace("%3a", ":")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_prints_is_read() {
        let simulated = "Remv qemu-utils [1:10.0.2]\n\
            Inst libfdt1 (1.6.1-4+b1 Debian:12.15 [amd64])\n\
            Inst iproute2 [6.1.0-3] (6.1.0-3 Debian:12.15 [amd64])\n\
            Conf libfdt1 (1.6.1-4+b1)\n";
        assert_eq!(
            to_install(simulated).collect::<Vec<_>>(),
            ["libfdt1=1.6.1-4+b1", "iproute2=6.1.0-3"]
        );
        let line = "qemu-system-x86_1%3a7.2+dfsg-7_amd64.deb 8394020 SHA256:0af1";
        assert_eq!(
            pinned(line).as_deref(),
            Some("qemu-system-x86=1:7.2+dfsg-7")
        );
    }

    #[test]
    fn one_lab_at_a_time_changes_the_lists() {
        let folder = std::env::temp_dir().join(format!("validator-apt-{}", std::process::id()));
        let archive = Archive {
            folder: folder.clone(),
        };
        let held = archive.alone().unwrap();
        let other = File::open(folder.join("alone")).unwrap();
        assert!(other.try_lock().is_err(), "it is not held");
        drop(held);
        other.try_lock().expect("it is let go with its file");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_newest_kernel_is_by_number_and_of_the_plain_flavour() {
        let names = [
            "linux-image-6.12.117+deb12-amd64",
            "linux-image-6.12.90+deb12.1-amd64",
            "linux-image-6.12.118+deb12-cloud-amd64",
            "linux-image-6.12.118+deb12-rt-amd64",
            "linux-image-6.12.118+deb12-amd64-dbg",
            "linux-image-6.12-amd64",
            "linux-image-amd64",
        ];
        let newest = |prefix| newest_of(names.into_iter(), prefix);
        let expected = Some("linux-image-6.12.117+deb12-amd64".to_owned());
        assert_eq!(newest("linux-image-6.12."), expected);
        assert_eq!(newest("linux-image-"), expected);
        assert_eq!(newest("linux-image-6.1."), None);
    }

    #[test]
    fn sources_name_each_suite_once_on_the_machines_servers() {
        let targets = "Debian|a://one/|oldstable|bookworm\n\
            Debian|a://one/|oldstable-updates|bookworm-updates\n\
            Debian-Security|a://two/|oldstable-security|bookworm-security\n\
            NodeSource|a://three/|x|x\n";
        let sources = sources_of(targets).unwrap();
        let suites: Vec<&str> = sources
            .lines()
            .map(|line| line.split(' ').nth(3).unwrap())
            .collect();
        let expected = [
            "bookworm",
            "bookworm-security",
            "bullseye",
            "bookworm-backports",
            "trixie-backports",
        ];
        assert_eq!(suites, expected);
        assert!(!sources.contains("three"));
        assert_eq!(sources_of("Ubuntu|a://one/|x|noble\n"), None);
    }
}
