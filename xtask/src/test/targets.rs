//! The test programs of pfc-user, divided by what they need of the machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Tests of one program: those whose names contain one of `tests`, or all.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub program: &'static str,
    tests: &'static [&'static str],
    /// At a time; `None`: as many as there are CPUs.
    threads: Option<usize>,
}

const fn all(program: &'static str, threads: Option<usize>) -> Group {
    Group {
        program,
        tests: &[],
        threads,
    }
}

const fn some(program: &'static str, tests: &'static [&'static str], threads: usize) -> Group {
    Group {
        program,
        tests,
        threads: Some(threads),
    }
}

/// In virtual time: they take CPU, whenever it comes.
pub const COMPUTING: &[Group] = &[
    all("config_errors", None),
    all("config_files", None),
    all("config_mad", None),
    all("config_rc", None),
    all("faults", None),
    all("mad_faults", None),
    all("preconditions", None),
    all("preflight", None),
    all("rc_faults", None),
    all("report_results", None),
    all("report_views", None),
];

/// They wait for processes, time-outs and windows, and find the same however late they are served. Those of `run` are about files,
/// signals, killed runs and reports, and not about a verdict on a device.
pub const WAITING: &[Group] = &[
    all("agent", Some(1)),
    all("host_link", Some(1)),
    all("host_process", Some(1)),
    all("mad_journal", Some(1)),
    all("mad_run", Some(1)),
    all("responder", Some(1)),
    all("sma_process", Some(1)),
    some(
        "requester",
        &["faults::", "frames::", "model::", "virtual_time::"],
        1,
    ),
    some("traffic_wire", &["root_tshark"], 1),
    some(
        "run",
        &[
            "bad_input::",
            "check::",
            "interrupt::root_a_killed_run",
            "interrupt::root_sig",
            "rates::",
            "reports::",
        ],
        1,
    ),
];

/// On programs in the kernel, in network namespaces of their own, and each frame that was sent is counted whenever it comes. The first
/// wait some seconds each for the end of a window.
pub const PROGRAMS: &[Group] = &[
    some("watch", &["loss::", "own_side::"], 8),
    some(
        "watch",
        &[
            "counting::",
            "differential::",
            "exposition::",
            "lifetime::",
            "program::",
        ],
        1,
    ),
    some("traffic_live", &["refusals::"], 1),
    some(
        "xdp",
        &["account::", "attach::", "differential::", "scapy::"],
        1,
    ),
];

/// What tells `cargo test --package pfc-user` which tests to run: selection of programs, and arguments of these.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    pub name: String,
    pub programs: Vec<String>,
    pub harness: Vec<String>,
}

impl Arguments {
    fn new(programs: &[&str], tests: &[&str], threads: Option<usize>) -> Self {
        let select = programs
            .iter()
            .flat_map(|program| ["--test".to_owned(), (*program).to_owned()]);
        let threads = threads.map(|threads| format!("--test-threads={threads}"));
        let harness = tests
            .iter()
            .map(|test| (*test).to_owned())
            .chain(threads)
            .collect();
        let name = [programs, tests].concat().join(" ");
        Self {
            name,
            programs: select.collect(),
            harness,
        }
    }
}

/// One invocation for all groups that are whole programs and run alike, and one for each part of a program.
pub fn invocations(groups: &[Group]) -> Vec<Arguments> {
    let mut invocations = Vec::new();
    let (whole, parts): (Vec<Group>, _) = groups.iter().partition(|group| group.tests.is_empty());
    for threads in whole
        .iter()
        .map(|group| group.threads)
        .collect::<BTreeSet<_>>()
    {
        let programs: Vec<_> = whole
            .iter()
            .filter(|group| group.threads == threads)
            .map(|group| group.program)
            .collect();
        invocations.push(Arguments::new(&programs, &[], threads));
    }
    invocations.extend(
        parts
            .iter()
            .map(|part| Arguments::new(&[part.program], part.tests, part.threads)),
    );
    invocations
}

/// All tests that are in none of the groups: on real frames and in real time, one at a time.
pub fn remainder(root: &Path, groups: &[Group]) -> Result<Vec<Arguments>> {
    let of = |program: &str| {
        groups
            .iter()
            .filter(|group| group.program == program)
            .collect::<Vec<_>>()
    };
    let programs = programs(&root.join("pfc-user/tests"))?;
    let untouched: Vec<&str> = programs
        .iter()
        .map(String::as_str)
        .filter(|program| of(program).is_empty())
        .collect();
    let mut invocations = vec![Arguments::new(&untouched, &[], Some(1))];
    for program in &programs {
        let others = of(program);
        if !others.is_empty() && others.iter().all(|group| !group.tests.is_empty()) {
            let skipped: Vec<_> = others
                .iter()
                .flat_map(|group| group.tests)
                .flat_map(|test| ["--skip", test])
                .collect();
            let mut rest = Arguments::new(&[program], &skipped, Some(1));
            rest.name = format!("the rest of {program}");
            invocations.push(rest);
        }
    }
    Ok(invocations)
}

/// What cargo finds in a folder of tests.
fn programs(folder: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            || path.join("main.rs").exists()
        {
            found.extend(
                path.file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned()),
            );
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn every_group_is_of_a_program_that_is_there() {
        let programs = programs(&root().join("pfc-user/tests")).unwrap();
        for group in [COMPUTING, WAITING, PROGRAMS].concat() {
            assert!(programs.contains(group.program), "{group:?}");
        }
    }

    #[test]
    fn what_is_in_no_group_is_the_remainder() {
        let folder = tempfile::tempdir().unwrap();
        let tests = folder.path().join("pfc-user/tests");
        for path in [
            "a.rs",
            "b/main.rs",
            "c.rs",
            "d/main.rs",
            "common/mod.rs",
            "e.json",
        ] {
            fs::create_dir_all(tests.join(path).parent().unwrap()).unwrap();
            fs::write(tests.join(path), "").unwrap();
        }
        let groups = [
            all("a", Some(1)),
            some("b", &["x::", "y::"], 1),
            some("b", &["z::"], 8),
        ];
        let rest = remainder(folder.path(), &groups).unwrap();
        let words = |arguments: &Arguments| {
            format!(
                "{} / {}",
                arguments.programs.join(" "),
                arguments.harness.join(" ")
            )
        };
        let expected = [
            "--test c --test d / --test-threads=1",
            "--test b / --skip x:: --skip y:: --skip z:: --test-threads=1",
        ];
        assert_eq!(rest.iter().map(words).collect::<Vec<_>>(), expected);
        let aside = [
            "--test a / --test-threads=1",
            "--test b / x:: y:: --test-threads=1",
            "--test b / z:: --test-threads=8",
        ];
        assert_eq!(
            invocations(&groups).iter().map(words).collect::<Vec<_>>(),
            aside
        );
    }
}
