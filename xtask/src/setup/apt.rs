//! Packages, by apt. Finishes first what an interrupted call has left behind.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, io};

use anyhow::{Context, Result, bail};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::step::{self, is_root, step};

/// Seconds for which another process may hold dpkg's lock.
const LOCK_TIMEOUT: &str = "DPkg::Lock::Timeout=600";
/// Folders of packages and their files.
const FOLDERS: [&str; 3] = ["/var/cache/apt", "/var/lib/dpkg", "/usr"];

/// Apt's programs, and the one lock that they do not wait for by themselves.
pub struct Apt {
    path: OsString,
    lists_lock: PathBuf,
}

impl Apt {
    pub fn of_this_machine() -> Self {
        Self {
            path: env::var_os("PATH").unwrap_or_default(),
            lists_lock: PathBuf::from("/var/lib/apt/lists/lock"),
        }
    }

    /// The command that a user would type.
    pub fn hint(packages: &[&str]) -> String {
        format!(
            "apt-get install --no-install-recommends {}",
            packages.join(" ")
        )
    }

    /// Packages that dpkg began to install and did not finish, as a kill or a power cut leaves
    /// them.
    pub fn unfinished(&self) -> Vec<String> {
        let mut query = self.program("dpkg-query");
        query.args(["-W", "-f", "${db:Status-Abbrev}\t${binary:Package}\n"]);
        // Without dpkg there are no unfinished packages.
        unfinished(&step::output(&mut query).unwrap_or_default())
    }

    /// Finishes unfinished packages and installs `packages`.
    pub fn install(&self, packages: &[&str]) -> Result<()> {
        let updated = step("apt-get update", || self.update());
        if let Err(error) = &updated {
            println!("    going on with the package lists that are there: {error:#}");
        }
        if !self.unfinished().is_empty() {
            self.finish();
        }
        if packages.is_empty() {
            return Ok(());
        }
        let mut installed = self.install_once(packages);
        if let Err(error) = &installed {
            println!("    once more, after what dpkg has not finished: {error:#}");
            self.finish();
            installed = self.install_once(packages);
        }
        let installed = step::blame_disk(installed, &FOLDERS.map(Path::new));
        match updated {
            Err(error) => installed.with_context(|| {
                format!("the package lists may be old or missing, for before that {error:#}")
            }),
            Ok(()) => installed,
        }
    }

    fn update(&self) -> Result<()> {
        wait_for(&self.lists_lock)?;
        // Apt itself does not report an unreachable archive as an error.
        step::run(&mut self.apt_get(&["update", "-o", "APT::Update::Error-Mode=any"]))
    }

    /// Installs packages, and never removes others for them.
    fn install_once(&self, packages: &[&str]) -> Result<()> {
        let mut install =
            self.apt_get(&["install", "--yes", "--no-install-recommends", "--no-remove"]);
        install.args(packages);
        step(&step::show(&install), || step::run(&mut install))
    }

    /// Finishes what dpkg has begun. Reports a failure only, as the validator may not need the
    /// package that failed.
    fn finish(&self) {
        let finished = step("what dpkg has not finished", || {
            let mut configure = self.program("dpkg");
            // dpkg fails on a package with a missing dependency, which apt then adds.
            let configured = step::run(configure.args(["--configure", "-a"]));
            let mut fix = self.apt_get(&["install", "--yes", "--fix-broken", "--no-remove"]);
            fix.arg("--no-install-recommends");
            step::run(&mut fix).or(configured)
        });
        if let Err(error) = finished {
            println!("    going on: {error:#}; `dpkg --audit` says more");
        }
    }

    fn apt_get(&self, arguments: &[&str]) -> Command {
        let mut apt = self.program("apt-get");
        apt.args(arguments).args(["-q", "-o", LOCK_TIMEOUT]);
        apt
    }

    fn program(&self, name: &str) -> Command {
        let mut program = Command::new(name);
        program
            .env("PATH", &self.path)
            .env("DEBIAN_FRONTEND", "noninteractive");
        program
    }
}

/// Says what to do by hand where this command cannot install.
pub fn check_machine(packages: &[&str], has_apt: bool) -> Result<()> {
    if !has_apt {
        bail!(
            "expected apt-get to install {}, found none: install what is listed above with this \
             system's own package manager, and the Rust sources with \
             `rustup toolchain install nightly --component rust-src` (docs/getting-started.md)",
            packages.join(", ")
        );
    }
    if !is_root() {
        bail!(
            "only root can install packages; run `sudo apt-get update && sudo {}`, then this again",
            Apt::hint(packages)
        );
    }
    Ok(())
}

/// Reads lines of a status and a name. The letters of the status are the wanted state, the actual
/// state, and `R` for a broken package.
fn unfinished(states: &str) -> Vec<String> {
    let is_unfinished = |state: &str| {
        let mut letters = state.chars().skip(1);
        let is = letters.next().unwrap_or(' ');
        "HUFWt".contains(is) || letters.next() == Some('R')
    };
    states
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .filter(|(state, _)| is_unfinished(state))
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Waits until no other process holds `lock`, and says so. Apt waits for dpkg's lock alone.
fn wait_for(lock: &Path) -> Result<()> {
    let file = match OpenOptions::new().write(true).open(lock) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot open {}", lock.display())),
    };
    let whole = || libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let mut holder = whole();
    let locked = fcntl(&file, FcntlArg::F_GETLK(&mut holder)).and_then(|_| {
        if libc::c_int::from(holder.l_type) != libc::F_UNLCK {
            println!(
                "    waiting for {}, which {} holds",
                lock.display(),
                process(holder.l_pid)
            );
        }
        fcntl(&file, FcntlArg::F_SETLKW(&whole()))
    });
    locked.with_context(|| format!("cannot wait for {}", lock.display()))?;
    Ok(())
}

fn process(id: i32) -> String {
    match fs::read_to_string(format!("/proc/{id}/comm")) {
        Ok(name) => format!("{} (process {id})", name.trim()),
        Err(_) => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;

    /// Stand-ins for the programs of apt that record their calls.
    struct Fake(TempDir);

    impl Fake {
        /// `script` is apt-get's; dpkg does nothing, and dpkg-query prints what is in `states`.
        fn new(script: &str) -> Self {
            let fake = Self(tempfile::tempdir().unwrap());
            for (name, body) in [
                ("apt-get", script),
                ("dpkg", ""),
                ("dpkg-query", "cat states"),
            ] {
                let file = fake.0.path().join(name);
                // Not of the called one's own folder: another test may run elsewhere.
                let text = format!(
                    "#!/bin/sh\ncd '{}'\n[ {name} = dpkg-query ] || echo {name} \"$@\" >> calls\n\
                     {body}\n",
                    fake.0.path().display()
                );
                fs::write(&file, text).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            }
            fake.states("ii \tbase-files\n");
            fake
        }

        fn states(&self, states: &str) {
            fs::write(self.0.path().join("states"), states).unwrap();
        }

        fn apt(&self) -> Apt {
            Apt {
                path: format!("{}:/usr/bin:/bin", self.0.path().display()).into(),
                lists_lock: self.0.path().join("lock"),
            }
        }

        /// The calls, without the options that all of them have.
        fn calls(&self) -> Vec<String> {
            let calls = fs::read_to_string(self.0.path().join("calls")).unwrap_or_default();
            let options = [
                " -q -o DPkg::Lock::Timeout=600",
                " --yes",
                " --no-install-recommends",
                " --no-remove",
                " -o APT::Update::Error-Mode=any",
            ];
            calls
                .lines()
                .map(|line| {
                    options
                        .iter()
                        .fold(line.to_owned(), |line, option| line.replace(option, ""))
                })
                .collect()
        }
    }

    const FINISH: [&str; 2] = ["dpkg --configure -a", "apt-get install --fix-broken"];

    #[test]
    fn what_failed_half_way_is_finished_and_tried_again() {
        let script = "case \"$*\" in *tshark*) [ -e again ] || { touch again; exit 100; };; esac";
        let fake = Fake::new(script);
        fake.apt().install(&["tshark"]).unwrap();
        let install = "apt-get install tshark";
        assert_eq!(
            fake.calls(),
            ["apt-get update", install, FINISH[0], FINISH[1], install]
        );
    }

    #[test]
    fn a_call_that_was_killed_is_finished_by_the_next() {
        // The first dies with apt-get, as both do when their terminal closes.
        let script = "case \"$*\" in *tshark*) [ -e again ] || { touch again; \
                      printf 'iHR\\ttshark\\niU \\tlibwireshark\\n' > states; kill -9 $$; };; \
                      *--fix-broken*) [ ! -e again ] || printf 'ii \\ttshark\\n' > states;; esac";
        let fake = Fake::new(script);
        let apt = fake.apt();
        assert!(apt.install_once(&["tshark"]).is_err());
        assert_eq!(apt.unfinished(), ["tshark", "libwireshark"]);
        // Nothing is missing as far as files tell.
        apt.install(&[]).unwrap();
        assert!(apt.unfinished().is_empty());
        assert_eq!(fake.calls()[1..], ["apt-get update", FINISH[0], FINISH[1]]);
    }

    #[test]
    fn without_network_the_lists_that_are_there_are_used() {
        let fake = Fake::new("[ \"$1\" != update ] || exit 100");
        fake.apt().install(&["tshark"]).unwrap();
        assert_eq!(fake.calls(), ["apt-get update", "apt-get install tshark"]);

        let fake = Fake::new("exit 100");
        let error = format!("{:#}", fake.apt().install(&["tshark"]).unwrap_err());
        for part in [
            "lists may be old or missing",
            "update",
            "install",
            "exit status: 100",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn packages_that_cannot_be_finished_do_not_stop_others() {
        let fake = Fake::new("case \"$*\" in *--fix-broken*) exit 100;; esac");
        fake.states("iF \tbroken-elsewhere\n");
        fake.apt().install(&["tshark"]).unwrap();
        assert_eq!(fake.calls().last().unwrap(), "apt-get install tshark");
    }

    #[test]
    fn states_are_read() {
        let states = "ii \ta\nrc \tb\nun \tc\niHR\td\niU \te\niF \tf\niW \tg\nit \th\niiR\ti\n";
        assert_eq!(unfinished(states), ["d", "e", "f", "g", "h", "i"]);
        assert!(unfinished("").is_empty());
    }

    #[test]
    fn a_lock_is_waited_for() {
        let fake = Fake::new("");
        let apt = fake.apt();
        wait_for(&apt.lists_lock).unwrap();
        let file = fs::File::create(&apt.lists_lock).unwrap();
        // One of the open file: that of a process would let us, who are the same, pass.
        let lock = |l_type: libc::c_int| {
            let flock = libc::flock {
                l_type: l_type as libc::c_short,
                l_whence: libc::SEEK_SET as libc::c_short,
                l_start: 0,
                l_len: 0,
                l_pid: 0,
            };
            fcntl(&file, FcntlArg::F_OFD_SETLK(&flock)).unwrap();
        };
        lock(libc::F_WRLCK);
        thread::scope(|scope| {
            let (sender, ended) = mpsc::channel();
            scope.spawn(move || sender.send(apt.update()));
            // An update that does not wait would have ended long since.
            let early = ended.recv_timeout(Duration::from_millis(200));
            assert!(matches!(early, Err(mpsc::RecvTimeoutError::Timeout)));
            assert!(fake.calls().is_empty());
            lock(libc::F_UNLCK);
            ended.recv().unwrap().unwrap();
        });
        assert_eq!(fake.calls(), ["apt-get update"]);
    }
}
