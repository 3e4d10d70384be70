//! The tests of pfc-user, by the lanes that they name.
//!
//! A program is a file of `pfc-user/tests` that lists modules. A module names its lane in its
//! header, and a module or some tests of it may have another:
//!
//! ```text
//! //! lane: frames
//! //! lane: waiting: interrupt::root_sig
//!
//! mod loss; // lane: programs, 8 at a time
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail};

use crate::files;

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
    /// Tests on real frames in real time: one at a time. They have the CPUs before all others.
    Frames,
    /// Tests that keep every CPU busy: nothing else can run beside them.
    Alone,
}

const NAMES: [(&str, Name); 5] = [
    ("computing", Name::Computing),
    ("waiting", Name::Waiting),
    ("programs", Name::Programs),
    ("frames", Name::Frames),
    ("alone", Name::Alone),
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
        if matches!(lane, Name::Frames | Name::Alone) && threads.is_some() {
            bail!("tests of the lanes `frames` and `alone` run one at a time");
        }
        let threads = threads.or((lane != Name::Computing).then_some(1));
        Ok(Self { lane, threads })
    }
}

/// A module of a program, with the lane of most of its tests, and the lanes of others by the
/// beginnings of their names.
#[derive(Debug)]
struct Module {
    program: String,
    name: String,
    way: Way,
    others: BTreeMap<Way, Vec<String>>,
}

impl Module {
    /// Reads the marks in the source of a module.
    fn parse(program: &str, name: &str, source: &str) -> Result<Self> {
        let mut way: Option<Way> = None;
        let mut others: BTreeMap<Way, Vec<String>> = BTreeMap::new();
        for line in source.lines() {
            if let Some(mark) = line.strip_prefix("//! lane: ") {
                match mark.split_once(": ") {
                    Some((of, tests)) => {
                        let tests = tests.split(", ").map(|test| format!("{name}::{test}"));
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
                    .push(format!("{name}::{module}::"));
            }
        }
        let way = way.context(
            "no lane is named; add a line such as `//! lane: waiting` to the header \
             (CONTRIBUTING.md says which there are)",
        )?;
        Ok(Self {
            program: program.to_owned(),
            name: name.to_owned(),
            way,
            others,
        })
    }

    /// Filter that chooses all its tests. libtest looks for it anywhere in a name.
    fn filter(&self) -> String {
        format!("{}::", self.name)
    }
}

/// All tests of pfc-user.
#[derive(Debug)]
pub struct Modules(Vec<Module>);

impl Modules {
    /// Reads the programs of a folder of tests. Fails if a module names no lane, or has a name that
    /// would choose tests of another, too.
    pub fn read(folder: &Path) -> Result<Self> {
        let sources = sources(folder)?;
        let mut texts = BTreeMap::new();
        for (name, path) in &sources {
            texts.insert(name.as_str(), files::read(path)?);
        }
        let mut modules = Vec::new();
        let mut listed = BTreeSet::new();
        for (program, text) in &texts {
            // A module lists modules as well, but in a folder of its own.
            if text.lines().any(|line| line.starts_with("//! lane: ")) {
                continue;
            }
            let before = modules.len();
            for name in text.lines().filter_map(module_of) {
                // What has no file here is shared by tests, and has none.
                let Some(text) = texts.get(name) else {
                    continue;
                };
                listed.insert(name);
                let module = Module::parse(program, name, text);
                modules.push(module.with_context(|| sources[name].display().to_string())?);
            }
            // A program has modules with tests; a file without any has lost its lane.
            if modules.len() > before {
                listed.insert(program);
            }
        }
        if let Some(name) = texts.keys().find(|name| !listed.contains(*name)) {
            bail!("{} is listed by no program", sources[*name].display());
        }
        for module in &modules {
            let mut within = Vec::new();
            names_within(&folder.join(&module.name), &mut within)?;
            let own = modules.iter().filter(|other| other.name != module.name);
            let others: Vec<_> = own
                .filter(|other| other.program == module.program)
                .collect();
            for name in within.iter().chain([&module.name]) {
                let other = others.iter().find(|other| name.ends_with(&other.name));
                if let Some(other) = other {
                    bail!(
                        "the tests of `{name}` in `{}` would run with those of `{}`, whose name \
                         its own ends with; rename one",
                        module.name,
                        other.name
                    );
                }
            }
        }
        Ok(Self(modules))
    }

    /// One invocation for all modules of a program that are in this lane as a whole and run alike,
    /// and one for each part of a module.
    pub fn of_lane(&self, lane: Name) -> Vec<Arguments> {
        let mut whole: BTreeMap<(Way, &str), Vec<&Module>> = BTreeMap::new();
        let mut parts = Vec::new();
        for module in &self.0 {
            let program = module.program.as_str();
            for (way, tests) in module.others.iter().filter(|(way, _)| way.lane == lane) {
                let title = tests.join(" ");
                parts.push(Arguments::new(title, program, tests.clone(), *way));
            }
            if module.way.lane != lane {
                continue;
            }
            if module.others.is_empty() {
                whole.entry((module.way, program)).or_default().push(module);
                continue;
            }
            let others: BTreeSet<_> = module.others.values().flatten().collect();
            let mut harness = vec![module.filter()];
            for test in others {
                harness.extend(["--skip".to_owned(), test.clone()]);
            }
            let title = format!("the rest of {}", module.name);
            parts.push(Arguments::new(title, program, harness, module.way));
        }
        let whole = whole.into_iter().map(|((way, program), modules)| {
            let names: Vec<_> = modules.iter().map(|module| module.name.as_str()).collect();
            let filters = modules.iter().map(|module| module.filter()).collect();
            Arguments::new(names.join(" "), program, filters, way)
        });
        whole.chain(parts).collect()
    }
}

/// The module that a line declares.
fn module_of(line: &str) -> Option<&str> {
    line.strip_prefix("mod ")?.strip_suffix(';')
}

/// Adds the names of all modules below a folder, which may not be there.
fn names_within(folder: &Path, names: &mut Vec<String>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for path in files::entries(folder)? {
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            names.push(name.into_owned());
        }
        names_within(&path, names)?;
    }
    Ok(())
}

/// Arguments for the programs of the libraries' folders. They name no lane, as they compute.
pub fn of_libraries(folders: &[PathBuf]) -> Result<Vec<String>> {
    let mut names = BTreeSet::new();
    for folder in folders {
        names.extend(sources(folder)?.into_keys());
    }
    Ok(names.into_iter().flat_map(test).collect())
}

/// The programs that cargo finds in a folder of tests, with their main files.
fn sources(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut sources = BTreeMap::new();
    for path in files::entries(folder)? {
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

/// Arguments of `cargo test`: the program, and the arguments passed to it.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    pub name: String,
    pub program: [String; 2],
    pub harness: Vec<String>,
}

impl Arguments {
    fn new(name: String, program: &str, mut harness: Vec<String>, way: Way) -> Self {
        harness.extend(
            way.threads
                .map(|threads| format!("--test-threads={threads}")),
        );
        Self {
            name,
            program: test(program.to_owned()),
            harness,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn words(arguments: &Arguments) -> String {
        format!(
            "{} / {}",
            arguments.program.join(" "),
            arguments.harness.join(" ")
        )
    }

    fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn every_test_module_names_its_lane() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let modules = Modules::read(&root.join("pfc-user/tests")).unwrap();
        for (_, lane) in NAMES {
            assert!(!modules.of_lane(lane).is_empty(), "{lane:?}");
        }
    }

    #[test]
    fn every_test_is_in_the_one_lane_that_it_names() {
        let divided = "//! B.\n//!\n//! lane: frames\n//! lane: waiting: x::slow, y::\n\n\
                       mod x;\nmod z; // lane: programs, 8 at a time\nmod w; // lane: waiting\n";
        let folder = folder_of(&[
            ("p.rs", "//! P.\n\nmod a;\nmod b;\nmod common;\nmod f;\n"),
            ("q.rs", "//! Q.\n\nmod c;\nmod d;\nmod e;\n"),
            ("a.rs", "//! A.\n//!\n//! lane: waiting\n"),
            ("b.rs", divided),
            (
                "b/x.rs",
                "//! lane: nothing: a module in a module names none\n",
            ),
            ("c.rs", "//! lane: frames\n"),
            ("d.rs", "//! lane: frames\n"),
            ("e.rs", "//! lane: computing\n"),
            ("f.rs", "//! lane: frames\n"),
            ("common/mod.rs", ""),
            ("f.json", ""),
        ]);
        let modules = Modules::read(folder.path()).unwrap();
        let of = |lane| modules.of_lane(lane).iter().map(words).collect::<Vec<_>>();
        assert_eq!(of(Name::Computing), ["--test q / e::"]);
        let waiting = [
            "--test p / a:: --test-threads=1",
            "--test p / b::x::slow b::y:: b::w:: --test-threads=1",
        ];
        assert_eq!(of(Name::Waiting), waiting);
        assert_eq!(of(Name::Programs), ["--test p / b::z:: --test-threads=8"]);
        let frames = [
            "--test p / f:: --test-threads=1",
            "--test q / c:: d:: --test-threads=1",
            "--test p / b:: --skip b::w:: --skip b::x::slow --skip b::y:: --skip b::z:: \
             --test-threads=1",
        ];
        assert_eq!(of(Name::Frames), frames);
    }

    #[test]
    fn a_test_that_would_run_twice_or_never_is_refused() {
        let lane = "//! lane: waiting\n";
        let refusal = |files: &[(&str, &str)]| {
            let folder = folder_of(files);
            format!("{:#}", Modules::read(folder.path()).unwrap_err())
        };
        let ends_alike = [
            ("p.rs", "mod run;\nmod dry_run;\n"),
            ("run.rs", lane),
            ("dry_run.rs", lane),
        ];
        let error = refusal(&ends_alike);
        assert!(error.contains("`dry_run` in `dry_run`"), "{error}");
        let within = [
            ("p.rs", "mod run;\nmod watch;\n"),
            ("run.rs", lane),
            ("watch.rs", lane),
            ("watch/run.rs", ""),
        ];
        // A module of that name in another module.
        let error = refusal(&within);
        assert!(error.contains("`run` in `watch`"), "{error}");
        let forgotten = [("p.rs", "mod run;\n"), ("run.rs", lane), ("other.rs", lane)];
        let error = refusal(&forgotten);
        assert!(
            error.ends_with("other.rs is listed by no program"),
            "{error}"
        );
        let without_lane = [
            ("p.rs", "mod run;\n"),
            ("run.rs", lane),
            ("other.rs", "mod x;\n#[test]\n"),
        ];
        let error = refusal(&without_lane);
        assert!(
            error.ends_with("other.rs is listed by no program"),
            "{error}"
        );
        let error = refusal(&[("p.rs", "mod run;\n"), ("run.rs", "")]);
        assert!(error.contains("no lane is named; add a line"), "{error}");
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
            let error = format!("{:#}", Module::parse("p", "a", source).unwrap_err());
            assert!(error.contains(expected), "{source:?}: {error}");
        }
    }
}
