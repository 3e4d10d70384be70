//! The Debian packages: the program, and its debug symbols. dpkg's own tools make them.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};

use super::build::{self, Program};
use super::{Release, empty, sbom};
use crate::files::{entries, read};
use crate::step;
use crate::workspace::VERSION;

/// Name of the package, and of the program in it.
const NAME: &str = "validator";
/// Name of the package of its debug symbols.
const SYMBOLS: &str = "validator-dbgsym";
/// Maintainer that the packages name. No host can have the address' `.invalid` (RFC 2606, 2).
const MAINTAINER: &str = "The validator authors <validator@authors.invalid>";
/// Programs of the package's own that dpkg calls.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Files that dpkg asks about before it replaces changed ones.
const SETTINGS: [&str; 3] = ["validator-watch", "validator-agent", "validator-otg"];
/// Files below `/usr/share/validator`, from `configs`.
const EXAMPLES: [&str; 5] = ["testbeds", "plans", "hooks", "prometheus", "otg"];

/// Writes both packages.
pub fn write(release: &Release, program: &Program, manual: &Path) -> Result<()> {
    let architecture = step::output(Command::new("dpkg").arg("--print-architecture"))?;
    let needs = shared_libraries(release, &program.stripped)?;
    let package = |name: &str| Package {
        release,
        folder: release.work.join(name),
        file: format!("{name}_{VERSION}_{architecture}.deb"),
        architecture: architecture.clone(),
        needs: needs.clone(),
    };
    let main = package(NAME);
    empty(&main.folder)?;
    main.fill(program, manual)?;
    main.finish("control")?;
    let symbols = package(SYMBOLS);
    empty(&symbols.folder)?;
    symbols.fill_symbols(program)?;
    symbols.finish("control-dbgsym")
}

/// Packages of the libraries that the program needs, as dpkg knows them.
fn shared_libraries(release: &Release, program: &Path) -> Result<String> {
    let folder = release.work.join("shlibdeps");
    empty(&folder.join("debian"))?;
    // dpkg-shlibdeps reads names of packages from it, and writes nothing.
    fs::write(
        folder.join("debian/control"),
        "Source: validator\n\nPackage: validator\nArchitecture: any\n",
    )?;
    let mut find = Command::new("dpkg-shlibdeps");
    find.arg("-O").arg(program).current_dir(&folder);
    let found = step::output(&mut find)?;
    let needs = found.strip_prefix("shlibs:Depends=").map(str::to_owned);
    needs.with_context(|| format!("expected shlibs:Depends=..., found {found:?}"))
}

/// A package while it is filled.
struct Package<'a> {
    release: &'a Release<'a>,
    folder: PathBuf,
    file: String,
    architecture: String,
    /// Packages of libraries.
    needs: String,
}

impl Package<'_> {
    fn fill(&self, program: &Program, manual: &Path) -> Result<()> {
        let configs = self.release.root.join("configs");
        self.copy(&program.stripped, "usr/bin/validator")?;
        make_executable(&self.folder.join("usr/bin/validator"))?;
        self.copy_folder(manual, "")?;
        self.copy_folder(&configs.join("systemd"), "usr/lib/systemd/system")?;
        for name in EXAMPLES {
            let examples = configs.join(name);
            if examples.is_dir() {
                self.copy_folder(&examples, &format!("usr/share/validator/{name}"))?;
            }
        }
        let mut settings = String::new();
        for name in SETTINGS {
            let from = configs.join(format!("debian/{name}.default"));
            self.copy(&from, &format!("etc/default/{name}"))?;
            settings += &format!("/etc/default/{name}\n");
        }
        self.put("DEBIAN/conffiles", settings.as_bytes())?;
        for script in SCRIPTS {
            self.copy(
                &configs.join("debian").join(script),
                &format!("DEBIAN/{script}"),
            )?;
            make_executable(&self.folder.join("DEBIAN").join(script))?;
        }
        self.documents(&configs)?;
        // As Debian's policy asks (12.1, 12.3); -n leaves the time out.
        let mut gzip = Command::new("gzip");
        gzip.args(["-9nr", "usr/share/man", "usr/share/doc/validator/NEWS.md"]);
        gzip.arg("usr/share/doc/validator/third-party-licences");
        step::run(gzip.current_dir(&self.folder))
    }

    fn fill_symbols(&self, program: &Program) -> Result<()> {
        self.copy(&program.symbols, &build::path_of_symbols(&program.id))?;
        self.legal(SYMBOLS)
    }

    /// Adds what every package has: whose it is, and its changelog (Debian's policy, 12.5, 12.7).
    fn legal(&self, name: &str) -> Result<()> {
        let root = self.release.root;
        let doc = |file: &str| format!("usr/share/doc/{name}/{file}");
        let copyright = read(&root.join("configs/debian/copyright"))?;
        let licence = read(&root.join("LICENSE-MIT"))?;
        let copyright = copyright.replace("@MIT@\n", &as_field(terms(&licence)?));
        self.put(&doc("copyright"), copyright.as_bytes())?;
        let changelog = self.filled("changelog", 0)?;
        self.put(&doc("changelog"), changelog.as_bytes())?;
        let mut gzip = Command::new("gzip");
        step::run(gzip.arg("-9n").arg(self.folder.join(doc("changelog"))))
    }

    fn documents(&self, configs: &Path) -> Result<()> {
        let root = self.release.root;
        let doc = |name: &str| format!("usr/share/doc/validator/{name}");
        self.legal(NAME)?;
        self.copy(&root.join("CHANGELOG.md"), &doc("NEWS.md"))?;
        self.copy(
            &configs.join("debian/lintian-overrides"),
            "usr/share/lintian/overrides/validator",
        )?;
        self.copy(
            &self.release.out().join(sbom::file_name()),
            &doc("validator.spdx.json"),
        )?;
        self.put(
            &doc("third-party-licences"),
            sbom::licences(self.release)?.as_bytes(),
        )
    }

    /// A template with its values; `octets`: of all that the package installs.
    fn filled(&self, name: &str, octets: u64) -> Result<String> {
        let template = self.release.root.join("configs/debian").join(name);
        let mut date = Command::new("date");
        date.args(["--utc", "--rfc-email"]);
        let date = step::output(date.arg(format!("--date=@{}", self.release.epoch)))?;
        // The address has the sign of a value.
        let (before, after) = MAINTAINER.split_once('@').expect("an address");
        let text = read(&template)?
            .replace("@VERSION@", VERSION)
            .replace("@ARCHITECTURE@", &self.architecture)
            .replace("@DEPENDS@", &self.needs)
            .replace("@DATE@", &date)
            .replace("@SIZE@", &octets.div_ceil(1024).to_string());
        let text = text.replace("@MAINTAINER@", &format!("{before}\0{after}"));
        if let Some(left) = text.split('@').nth(1) {
            bail!("{}: @{left}@ has no value", template.display());
        }
        Ok(text.replace('\0', "@"))
    }

    fn put(&self, path: &str, contents: &[u8]) -> Result<()> {
        let file = self.folder.join(path);
        fs::create_dir_all(file.parent().expect("a file"))
            .and_then(|()| fs::write(&file, contents))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    fn copy(&self, from: &Path, path: &str) -> Result<()> {
        let contents = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.put(path, &contents)
    }

    fn copy_folder(&self, from: &Path, path: &str) -> Result<()> {
        for file in files(from)? {
            let below = file.strip_prefix(from).expect("a file below it");
            let to = Path::new(path).join(below);
            self.copy(&file, &to.to_string_lossy())?;
            if fs::metadata(&file)?.permissions().mode() & 0o111 != 0 {
                make_executable(&self.folder.join(to))?;
            }
        }
        Ok(())
    }

    /// Writes what dpkg has to know, and makes the package.
    fn finish(&self, control: &str) -> Result<()> {
        let shipped = files(&self.folder)?;
        let shipped: Vec<_> = shipped
            .iter()
            .filter_map(|file| file.strip_prefix(&self.folder).ok())
            .filter(|file| !file.starts_with("DEBIAN"))
            .collect();
        let mut sums = Command::new("md5sum");
        let sums = step::output(sums.args(&shipped).current_dir(&self.folder))?;
        self.put("DEBIAN/md5sums", format!("{sums}\n").as_bytes())?;
        let mut octets = 0;
        for file in &shipped {
            octets += fs::metadata(self.folder.join(file))?.len();
        }
        let text = self.filled(control, octets)?;
        self.put("DEBIAN/control", text.as_bytes())?;
        settle(&self.folder, self.release.epoch)?;
        let mut make = Command::new("dpkg-deb");
        // One thread: several compress in blocks, whose size follows from the machine.
        make.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]);
        make.arg(&self.folder)
            .arg(self.release.out().join(&self.file));
        step::run(make.env("SOURCE_DATE_EPOCH", self.release.epoch.to_string()))
    }
}

/// The terms of the MIT licence, which are the same whoever grants them.
fn terms(licence: &str) -> Result<&str> {
    let start = licence.find("Permission is hereby granted");
    let start = start.context("LICENSE-MIT: expected the terms of the MIT licence")?;
    Ok(&licence[start..])
}

/// A text as the continuation of a field: indented, with a dot in place of an empty line.
fn as_field(text: &str) -> String {
    let line = |line: &str| match line.trim() {
        "" => " .\n".to_owned(),
        words => format!(" {words}\n"),
    };
    text.trim().lines().map(line).collect()
}

fn make_executable(file: &Path) -> Result<()> {
    fs::set_permissions(file, Permissions::from_mode(0o755))
        .with_context(|| format!("cannot change {}", file.display()))
}

/// Every file below a folder, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

/// Gives all below a folder the same date, and modes that do not follow from this user's umask.
fn settle(folder: &Path, epoch: u64) -> Result<()> {
    for path in entries(folder)? {
        if path.is_dir() {
            settle(&path, epoch)?;
            continue;
        }
        let program = fs::metadata(&path)?.permissions().mode() & 0o100 != 0;
        let mode = if program { 0o755 } else { 0o644 };
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        set_date(&path, epoch)?;
    }
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    set_date(folder, epoch)
}

fn set_date(path: &Path, epoch: u64) -> Result<()> {
    let date = SystemTime::UNIX_EPOCH + Duration::from_secs(epoch);
    File::open(path)
        .and_then(|file| file.set_modified(date))
        .with_context(|| format!("cannot set the date of {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::env;

    use tempfile::TempDir;

    use super::*;
    use crate::setup;

    #[test]
    fn texts_become_fields() {
        assert_eq!(as_field("a\n\n  b\n"), " a\n .\n b\n");
    }

    /// One paragraph has the terms for all files that are under the MIT licence.
    #[test]
    fn files_of_others_are_theirs_in_the_copyright() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        let copyright = read("configs/debian/copyright");
        let files: Vec<_> = copyright
            .lines()
            .filter_map(|line| line.strip_prefix("Files: "))
            .filter(|files| *files != "*")
            .collect();
        assert_eq!(files, ["pfc-user/otg/model/otg.binpb"]);
        assert!(root.join(files[0]).is_file());
        assert!(copyright.contains("\nCopyright: 2021 Open Traffic Generator\nLicense: MIT\n"));
        let (own, theirs) = (read("LICENSE-MIT"), read("pfc-user/otg/model/LICENSE-MIT"));
        assert_eq!(terms(&own).unwrap(), terms(&theirs).unwrap());
        assert!(theirs.contains("Copyright (c) 2021 Open Traffic Generator\n"));
        assert!(terms("a notice").is_err());
    }

    /// A package that was made.
    struct Made {
        octets: Vec<u8>,
        /// Contents as dpkg lists them.
        contents: String,
        info: String,
        /// Folder whose folder `package` has the files that the package installs.
        folder: TempDir,
    }

    /// The package of a program that is no program, with what `fill` puts into it.
    fn made(control: &str, fill: impl FnOnce(&Package<'_>, &Program, &Path)) -> Made {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path();
        let release = Release {
            root,
            work: to.to_owned(),
            epoch: 1_700_000_000,
        };
        empty(&release.out()).unwrap();
        fs::write(release.out().join(sbom::file_name()), "{}").unwrap();
        let package = Package {
            release: &release,
            folder: to.join("package"),
            file: "validator.deb".to_owned(),
            architecture: "all".to_owned(),
            needs: "libc6".to_owned(),
        };
        let program = Program {
            stripped: root.join("LICENSE-MIT"),
            symbols: root.join("LICENSE-MIT"),
            id: "00ff".to_owned(),
        };
        let manual = to.join("manual");
        fs::create_dir_all(manual.join("usr/share/man/man1")).unwrap();
        fs::write(manual.join("usr/share/man/man1/validator.1"), "x").unwrap();
        fill(&package, &program, &manual);
        package.finish(control).unwrap();
        let file = release.out().join("validator.deb");
        let asked = |option| step::output(Command::new("dpkg-deb").arg(option).arg(&file)).unwrap();
        Made {
            octets: fs::read(&file).unwrap(),
            contents: asked("--contents"),
            info: asked("--info"),
            folder,
        }
    }

    #[test]
    fn the_same_tree_gives_the_same_package_and_dpkg_reads_it() {
        if !setup::in_path("dpkg-deb") {
            return println!("skipped: needs dpkg-deb");
        }
        let made = || {
            made("control", |package, program, manual| {
                package.fill(program, manual).unwrap();
            })
        };
        let (first, second) = (made(), made());
        assert!(
            first.octets == second.octets,
            "two packages of the same tree differ"
        );
        let (contents, info) = (first.contents, first.info);
        let has = |line: &str| contents.lines().any(|found| found.ends_with(line));
        for path in [
            "./usr/bin/validator",
            "./usr/lib/systemd/system/validator-watch@.service",
            "./usr/lib/systemd/system/validator-agent.service",
            "./usr/lib/systemd/system/validator-otg.service",
            "./usr/share/man/man1/validator.1.gz",
            "./usr/share/validator/testbeds/sim.toml",
            "./usr/share/validator/hooks/sonic/prepare",
            "./usr/share/validator/otg/two-veths.toml",
            "./usr/share/doc/validator/third-party-licences.gz",
            "./usr/share/doc/validator/changelog.gz",
            "./usr/share/doc/validator/NEWS.md.gz",
            "./usr/share/lintian/overrides/validator",
            "./etc/default/validator-agent",
            "./etc/default/validator-otg",
        ] {
            assert!(has(path), "{path} is not in:\n{contents}");
        }
        let is_roots = |line: &str| line.contains(" root/root ") && line.contains("2023-11-14");
        assert!(contents.lines().all(is_roots), "{contents}");
        for part in [
            &format!("Version: {VERSION}") as &str,
            &format!("Maintainer: {MAINTAINER}"),
            "Depends: libc6",
            "conffiles",
        ] {
            assert!(info.contains(part), "{part} is not in:\n{info}");
        }
    }

    #[test]
    fn the_package_of_symbols_says_whose_it_is_and_what_changed() {
        if !setup::in_path("dpkg-deb") {
            return println!("skipped: needs dpkg-deb");
        }
        let made = made("control-dbgsym", |package, program, _| {
            package.fill_symbols(program).unwrap();
        });
        for line in [
            "Package: validator-dbgsym",
            &format!("Depends: validator (= {VERSION})"),
            &format!("Maintainer: {MAINTAINER}"),
            "Section: debug",
        ] {
            let mut lines = made.info.lines();
            let info = &made.info;
            assert!(lines.any(|found| found.trim() == line), "{line}:\n{info}");
        }
        let symbols = build::path_of_symbols("00ff");
        let (doc, contents) = ("usr/share/doc/validator-dbgsym", &made.contents);
        let [copyright, changelog] =
            ["copyright", "changelog.gz"].map(|file| format!("{doc}/{file}"));
        for path in [&symbols, &copyright, &changelog] {
            let mut lines = contents.lines();
            let is_there = lines.any(|line| line.ends_with(&format!("./{path}")));
            assert!(is_there, "{path} is not in:\n{contents}");
        }
        let package = made.folder.path().join("package");
        let copyright = read(&package.join(copyright)).unwrap();
        let mut lines = copyright.lines();
        let holder = "Copyright: 2026 the validator authors";
        assert!(lines.any(|line| line == holder), "{copyright}");
        assert!(!copyright.contains("@MIT@"), "{copyright}");
        let mut unpacked = Command::new("gzip");
        let unpacked = unpacked.arg("-dc").arg(package.join(changelog));
        let changelog = step::output(unpacked).unwrap();
        let begin = format!("validator ({VERSION}) ");
        assert!(changelog.starts_with(&begin), "{changelog}");
        let end = format!("\n -- {MAINTAINER}  Tue, 14 Nov 2023 22:13:20 +0000");
        assert!(changelog.ends_with(&end), "{changelog}");
    }

    /// Calls of systemctl by the package's script, with a program in its place that notes them.
    fn calls(argument: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let noted = folder.path().join("noted");
        let stub = folder.path().join("systemctl");
        fs::write(
            &stub,
            format!("#!/bin/sh\necho \"$@\" >> {}\n", noted.display()),
        )
        .unwrap();
        make_executable(&stub).unwrap();
        let path = env::join_paths(
            [folder.path().to_owned()]
                .into_iter()
                .chain(env::split_paths(&env::var_os("PATH").unwrap())),
        );
        let mut script = Command::new("sh");
        script.arg(root.join("configs/debian/prerm")).arg(argument);
        let status = script.env("PATH", path.unwrap()).status().unwrap();
        assert!(status.success());
        fs::read_to_string(noted).unwrap_or_default()
    }

    #[test]
    fn every_unit_is_disabled_when_the_package_is_removed_and_by_no_upgrade() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let units = crate::dist::names(&root.join("configs/systemd")).unwrap();
        let calls_of_removal = calls("remove");
        let disabled = calls_of_removal
            .lines()
            .find_map(|line| line.strip_prefix("disable "));
        let disabled: BTreeSet<_> = disabled.unwrap_or_default().split(' ').collect();
        assert_eq!(disabled, units.iter().map(String::as_str).collect());
        assert_eq!(calls("upgrade"), "");
    }
}
