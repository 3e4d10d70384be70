//! The test programs of pfc-user, by the lanes that they name.
//!
//! A program names its lane in its header, and a module or some tests of it may have another:
//!
//! ```text
//! //! lane: frames
//! //! lane: waiting: interrupt::root_sig
//!
//! mod loss; // lane: programs, 8 at a time
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail};

/// A lane: its tests need the same of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Tests in virtual time, which need CPU time but not at any moment.
    Computing,
    /// Tests that wait for processes, time-outs and windows, with the same result however late they
    /// run.
    Waiting,
    /// Tests of programs in the kernel, in network namespaces of their own. They count frames,
    /// whenever those come.
    Programs,
    /// Tests on real frames in real time: one at a time, with nothing beside them.
    Frames,
}

const NAMES: [(&str, Name); 4] = [
    ("computing", Name::Computing),
    ("waiting", Name::Waiting),
    ("programs", Name::Programs),
    ("frames", Name::Frames),
];

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = NAMES.iter().find(|(name, _)| *name == text);
        known.map(|(_, lane)| *lane).with_context(|| {
            let names = NAMES.map(|(name, _)| name).join(", ");
            format!("no lane is called {text:?}; there are {names}")
        })
    }
}

/// The lane of tests, and how many of them run at a time: `None` for as many as there are CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    lane: Name,
    threads: Option<usize>,
}

impl FromStr for Way {
    type Err = Error;

    /// Reads `LANE` or `LANE, N at a time`.
    fn from_str(text: &str) -> Result<Self> {
        let (lane, threads) = match text.split_once(", ") {
            None => (text, None),
            Some((lane, count)) => {
                let count = count
                    .strip_suffix(" at a time")
                    .and_then(|count| count.parse().ok());
                let count = count.with_context(|| {
                    format!("expected `LANE` or `LANE, N at a time`, found {text:?}")
                })?;
                (lane, Some(count))
            }
        };
        let lane = lane.parse()?;
        if lane == Name::Frames && threads.is_some() {
            bail!("tests of the lane `frames` run one at a time");
        }
        let threads = threads.or((lane != Name::Computing).then_some(1));
        Ok(Self { lane, threads })
    }
}

/// A program with the lane of most of its tests, and the lanes of others by parts of their names.
#[derive(Debug)]
struct Program {
    name: String,
    way: Way,
    others: BTreeMap<Way, Vec<String>>,
}

impl Program {
    /// Reads the marks in the source of a program.
    fn parse(name: &str, source: &str) -> Result<Self> {
        let mut way: Option<Way> = None;
        let mut others: BTreeMap<Way, Vec<String>> = BTreeMap::new();
        for line in source.lines() {
            if let Some(mark) = line.strip_prefix("//! lane: ") {
                match mark.split_once(": ") {
                    Some((of, tests)) => {
                        let tests = tests.split(", ").map(str::to_owned);
                        others.entry(of.parse()?).or_default().extend(tests);
                    }
                    None if way.is_some() => bail!("two lanes are named for all tests"),
                    None => way = Some(mark.parse()?),
                }
            } else if let Some((module, mark)) = line.split_once("; // lane: ") {
                let module = module.rsplit(' ').next().unwrap_or_default();
                others
                    .entry(mark.parse()?)
                    .or_default()
                    .push(format!("{module}::"));
            }
        }
        let way = way.context(
            "no lane is named; add a line such as `//! lane: waiting` to the header \
             (CONTRIBUTING.md says which there are)",
        )?;
        Ok(Self {
            name: name.to_owned(),
            way,
            others,
        })
    }
}

/// All test programs of pfc-user.
#[derive(Debug)]
pub struct Programs(Vec<Program>);

impl Programs {
    /// Reads the programs of a folder of tests. Fails if one names no lane.
    pub fn read(folder: &Path) -> Result<Self> {
        let sources = sources(folder)?;
        let programs = sources.iter().map(|(name, source)| {
            let shown = source.display();
            let text =
                fs::read_to_string(source).with_context(|| format!("cannot read {shown}"))?;
            Program::parse(name, &text).with_context(|| format!("{shown}"))
        });
        Ok(Self(programs.collect::<Result<_>>()?))
    }

    /// Arguments for the programs of the libraries' folders. They name no lane, as they compute.
    /// One with the name of a program here runs beside that: cargo chooses both by the name.
    pub fn of_libraries(&self, folders: &[PathBuf]) -> Result<Vec<String>> {
        let mut names = BTreeSet::new();
        for folder in folders {
            names.extend(sources(folder)?.into_keys());
        }
        for program in &self.0 {
            names.remove(&program.name);
        }
        Ok(names.into_iter().flat_map(test).collect())
    }

    /// One invocation for all programs that are in this lane as a whole and run alike, and one for
    /// each part of a program.
    pub fn of_lane(&self, lane: Name) -> Vec<Arguments> {
        let mut whole: BTreeMap<Way, Vec<&str>> = BTreeMap::new();
        let mut parts = Vec::new();
        for program in &self.0 {
            let name = program.name.as_str();
            for (way, tests) in program.others.iter().filter(|(way, _)| way.lane == lane) {
                let title = format!("{name} {}", tests.join(" "));
                parts.push(Arguments::new(title, &[name], tests.clone(), *way));
            }
            if program.way.lane != lane {
                continue;
            }
            if program.others.is_empty() {
                whole.entry(program.way).or_default().push(name);
                continue;
            }
            let others: BTreeSet<_> = program.others.values().flatten().collect();
            let skips = others
                .into_iter()
                .flat_map(|test| ["--skip".to_owned(), test.clone()]);
            let title = format!("the rest of {name}");
            parts.push(Arguments::new(title, &[name], skips.collect(), program.way));
        }
        let whole = whole
            .into_iter()
            .map(|(way, names)| Arguments::new(names.join(" "), &names, Vec::new(), way));
        whole.chain(parts).collect()
    }
}

/// The programs that cargo finds in a folder of tests, with their main files.
fn sources(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut sources = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let main = path.join("main.rs");
        let source = if path.extension().is_some_and(|extension| extension == "rs") {
            path.clone()
        } else if main.exists() {
            main
        } else {
            continue;
        };
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        sources.insert(name.into_owned(), source);
    }
    Ok(sources)
}

/// Option of cargo that chooses a program.
fn test(name: String) -> [String; 2] {
    ["--test".to_owned(), name]
}

/// Arguments of `cargo test`: the programs, and the arguments passed to them.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    pub name: String,
    pub programs: Vec<String>,
    pub harness: Vec<String>,
}

impl Arguments {
    fn new(name: String, programs: &[&str], mut harness: Vec<String>, way: Way) -> Self {
        harness.extend(
            way.threads
                .map(|threads| format!("--test-threads={threads}")),
        );
        Self {
            name,
            programs: programs
                .iter()
                .flat_map(|program| test((*program).to_owned()))
                .collect(),
            harness,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(arguments: &Arguments) -> String {
        format!(
            "{} / {}",
            arguments.programs.join(" "),
            arguments.harness.join(" ")
        )
    }

    #[test]
    fn every_test_program_names_its_lane() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let programs = Programs::read(&root.join("pfc-user/tests")).unwrap();
        for (_, lane) in NAMES {
            assert!(!programs.of_lane(lane).is_empty(), "{lane:?}");
        }
    }

    #[test]
    fn every_test_is_in_the_one_lane_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let divided = "//! B.\n//!\n//! lane: frames\n//! lane: waiting: x::slow, y::\n\n\
                       mod x;\nmod z; // lane: programs, 8 at a time\nmod w; // lane: waiting\n";
        for (path, text) in [
            ("a.rs", "//! A.\n//!\n//! lane: waiting\n"),
            ("b/main.rs", divided),
            ("b/x.rs", "//! lane: nothing: a module names none\n"),
            ("c.rs", "//! lane: frames\n"),
            ("d/main.rs", "//! lane: frames\n"),
            ("e.rs", "//! lane: computing\n"),
            ("common/mod.rs", ""),
            ("f.json", ""),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let programs = Programs::read(folder.path()).unwrap();
        let of = |lane| programs.of_lane(lane).iter().map(words).collect::<Vec<_>>();
        assert_eq!(of(Name::Computing), ["--test e / "]);
        let waiting = [
            "--test a / --test-threads=1",
            "--test b / x::slow y:: w:: --test-threads=1",
        ];
        assert_eq!(of(Name::Waiting), waiting);
        assert_eq!(of(Name::Programs), ["--test b / z:: --test-threads=8"]);
        let frames = [
            "--test c --test d / --test-threads=1",
            "--test b / --skip w:: --skip x::slow --skip y:: --skip z:: --test-threads=1",
        ];
        assert_eq!(of(Name::Frames), frames);
    }

    #[test]
    fn marks_that_say_nothing_are_refused() {
        for (source, expected) in [
            ("//! A.\n", "no lane is named; add a line"),
            (
                "//! lane: sleeping\n",
                "no lane is called \"sleeping\"; there are computing,",
            ),
            (
                "//! lane: waiting, many\n",
                "expected `LANE` or `LANE, N at a time`",
            ),
            ("//! lane: frames, 2 at a time\n", "run one at a time"),
            (
                "//! lane: frames\n//! lane: waiting\n",
                "two lanes are named",
            ),
        ] {
            let error = format!("{:#}", Program::parse("a", source).unwrap_err());
            assert!(error.contains(expected), "{source:?}: {error}");
        }
    }
}
