//! A fresh Debian in a folder with the workspace in it, and commands that run there.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

use super::debian::{self, Apt, Suite};
use crate::step::{self, step};
use crate::{toolchain, workspace};

/// Path of the workspace on the fresh Debian.
const WORKSPACE: &str = "/root/validator";
/// Mounts what a machine has, in namespaces that end with the command, for whatever reason it ends.
const ENTER: &str = r#"
    mount --rbind /sys "$0/sys"
    mount --rbind /dev "$0/dev"
    mount -t proc proc "$0/proc"
    exec chroot "$0" env --chdir="$@"
"#;

pub struct Chroot {
    folder: PathBuf,
    /// Path in the chroot.
    workspace: &'static str,
}

/// Runs `work` on a fresh Debian. The chroot is removed unless the work fails.
pub fn with<T>(root: &Path, suite: Suite, work: impl FnOnce(&Chroot) -> Result<T>) -> Result<T> {
    let parent = toolchain::cache();
    fs::create_dir_all(&parent).with_context(|| {
        format!(
            "cannot write to {}; VALIDATOR_CACHE names another folder",
            parent.display()
        )
    })?;
    let _held = hold(&suite.path(".lock"))?;
    let chroot = Chroot {
        folder: suite.path(""),
        workspace: WORKSPACE,
    };
    let done = chroot.make(root, suite).and_then(|()| work(&chroot));
    match &done {
        Ok(_) => {
            println!("    it took {} MB", chroot.megabytes()?);
            chroot.remove()?;
        }
        Err(_) => println!("    left for a look: {}", chroot.folder.display()),
    }
    step::blame_disk(done, &[&parent])
}

/// Locks the folder: one call at a time may use it.
fn hold(path: &Path) -> Result<File> {
    let lock = || -> io::Result<File> {
        let file = File::create(path)?;
        if file.try_lock().is_err() {
            println!(
                "    waiting for another call, which holds {}",
                path.display()
            );
            file.lock()?;
        }
        Ok(file)
    };
    lock().with_context(|| format!("cannot lock {}", path.display()))
}

/// Splits a command line without quotes into words.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

impl Chroot {
    fn make(&self, root: &Path, suite: Suite) -> Result<()> {
        let apt = Apt::of_this_machine(suite)?;
        let base = debian::base(suite, &apt)?;
        step(
            &format!("fresh Debian in {}", self.folder.display()),
            || {
                self.remove()?;
                fs::create_dir(&self.folder)?;
                let mut unpack = Command::new("tar");
                unpack.arg("-xf").arg(base).arg("-C").arg(&self.folder);
                step::run(&mut unpack)?;
                self.connect(&apt)
                    .context("cannot connect it as this machine is")?;
                self.copy_workspace(root)
            },
        )
    }

    fn megabytes(&self) -> Result<String> {
        let mut du = Command::new("du");
        du.args(["--summarize", "--one-file-system", "--block-size=MB"]);
        let line = step::output(du.arg(&self.folder))?;
        Ok(line.split("MB").next().unwrap_or_default().to_owned())
    }

    /// Removes the folder, but nothing that may be mounted in it.
    fn remove(&self) -> Result<()> {
        step::run(
            Command::new("rm")
                .args(["-rf", "--one-file-system"])
                .arg(&self.folder),
        )
    }

    /// Copies this machine's settings of name resolution, mirrors, certificates and cargo's
    /// registry.
    fn connect(&self, apt: &Apt) -> io::Result<()> {
        let etc = self.folder.join("etc");
        fs::write(etc.join("apt/sources.list"), apt.sources.join("\n") + "\n")?;
        fs::write(
            etc.join("apt/apt.conf.d/90machine"),
            apt.options.join("\n") + "\n",
        )?;
        for name in ["resolv.conf", "hosts"] {
            fs::copy(Path::new("/etc").join(name), etc.join(name))?;
        }
        let set = |name: &&str| env::var_os(name);
        let certificates = ["CARGO_HTTP_CAINFO", "SSL_CERT_FILE"]
            .iter()
            .find_map(set)
            .map_or("/etc/ssl/certs/ca-certificates.crt".into(), PathBuf::from);
        if certificates.is_file() {
            fs::copy(certificates, etc.join("ssl/certs/ca-certificates.crt"))?;
        }
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
        let settings = home.unwrap_or_default().join("config.toml");
        if settings.is_file() {
            fs::create_dir_all(self.folder.join("root/.cargo"))?;
            fs::copy(settings, self.folder.join("root/.cargo/config.toml"))?;
        }
        Ok(())
    }

    /// Copies the working tree without build results.
    fn copy_workspace(&self, root: &Path) -> Result<()> {
        workspace::copy(root, &self.path(self.workspace))
    }

    /// Where a path of the chroot is on this machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path.trim_start_matches('/'))
    }

    /// Runs a command in the workspace.
    pub fn run(&self, words: &[String]) -> Result<ExitStatus> {
        let mut command = self.command(words);
        command
            .status()
            .with_context(|| format!("cannot run {}", step::show(&command)))
    }

    /// Runs a command in the workspace and returns its output; an error if it fails.
    pub fn output(&self, words: &[&str]) -> Result<String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        step::output(&mut self.command(&words))
    }

    /// Runs a command line under its own headline. Fails if the command does.
    pub fn must(&self, line: &str) -> Result<()> {
        step(line, || {
            let status = self.run(&words(line))?;
            if !status.success() {
                bail!("`{line}` ended with {status}");
            }
            Ok(())
        })
    }

    /// Runs a command, and kills it with everything that it has started when it prints a line with
    /// `mark`.
    pub fn kill_at(&self, words: &[String], mark: &str) -> Result<()> {
        let mut command = self.command(words);
        let shown = words.join(" ");
        let (output, into) = io::pipe()?;
        command
            .stdin(Stdio::null())
            .stdout(into.try_clone()?)
            .stderr(into);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run {shown}"))?;
        // It holds the other end of the pipe; kept open, the output would never end.
        drop(command);
        let mut killed = false;
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            if !killed && line.contains(mark) {
                killed = true;
                child.kill()?;
            }
        }
        // Every process that could print has ended.
        let status = child.wait()?;
        if !killed {
            bail!("expected a line with `{mark}`, found none; `{shown}` ended with {status}");
        }
        Ok(())
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = super::bound();
        command.args(["--", "sh", "-euc", ENTER]);
        command.arg(&self.folder).arg(self.workspace).args(words);
        command.env_clear().envs(environment(env::vars_os()));
        command
    }
}

type Variable = (OsString, OsString);

/// Variables of a login, and those by which this machine reaches its registry.
fn environment(vars: impl Iterator<Item = Variable>) -> impl Iterator<Item = Variable> {
    const OWN: [(&str, &str); 3] = [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        ("HOME", "/root"),
        ("LANG", "C.UTF-8"),
    ];
    const PASSED_ON: [&str; 4] = [
        "CARGO_NET_",
        "CARGO_HTTP_",
        "CARGO_REGISTR",
        "CARGO_SOURCE_",
    ];
    let is_passed_on = |name: &str| {
        name == "TERM"
            || name.to_lowercase().ends_with("_proxy")
            // The certificates lie at Debian's own path.
            || (PASSED_ON.iter().any(|start| name.starts_with(start))
                && name != "CARGO_HTTP_CAINFO")
    };
    let own = OWN.map(|(name, value)| (name.into(), value.into()));
    own.into_iter()
        .chain(vars.filter(move |(name, _)| is_passed_on(&name.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_registry_is_passed_on_and_nothing_else() {
        let vars = [
            "https_proxy",
            "NO_PROXY",
            "CARGO_NET_OFFLINE",
            "CARGO_HTTP_CAINFO",
            "CARGO_HOME",
            "CARGO",
            "RUSTFLAGS",
            "LD_LIBRARY_PATH",
            "TERM",
        ];
        let names: Vec<_> = environment(vars.iter().map(|name| (name.into(), "x".into())))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(
            names,
            [
                "PATH",
                "HOME",
                "LANG",
                "https_proxy",
                "NO_PROXY",
                "CARGO_NET_OFFLINE",
                "TERM"
            ]
        );
    }

    #[test]
    fn what_is_killed_leaves_no_process_and_no_mount() {
        if !step::is_root() {
            return println!("skipped: needs root");
        }
        let chroot = Chroot {
            folder: PathBuf::from("/"),
            workspace: "/",
        };
        let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
        let before = mounts();
        let script = "test $$ = 1; sleep 1000 & echo ready; wait";
        let command = ["sh", "-euc", script].map(str::to_owned);
        // It returns only when no process holds its output; a surviving `sleep` would.
        chroot.kill_at(&command, "ready").unwrap();
        assert_eq!(mounts(), before);

        let error = chroot.kill_at(&words("true"), "ready").unwrap_err();
        assert!(error.to_string().contains("found none"), "{error}");
        assert!(chroot.run(&words("false")).unwrap().code() == Some(1));
    }
}
