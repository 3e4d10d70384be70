//! Results go into a folder without harm to what is not the tool's own.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::resource::{Resource, setrlimit};
use validator::report::{self, Folder};
use validator_core::cases;
use validator_core::verdict::Exit;

use super::samples::{every_verdict, evidence, files};

/// A case that waits for nothing, so that its verdict is the same on a machine without time.
const CASE: &str = "mad.c14-024-10-01";

/// A run of it on the simulated device.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
    command
        .args(["run", "--plan", "mad", "--case", CASE, "--testbed"])
        .arg(repository.join("configs/testbeds/sim.toml"))
        .args(arguments)
        .current_dir(folder)
        .env("VALIDATOR_JOURNAL", folder.join("journal"));
    command
}

/// Exit code, standard output and standard error of a run.
fn ended(output: Output) -> (Option<i32>, String, String) {
    let text = |octets| String::from_utf8(octets).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    ended(command(folder, arguments).output().unwrap())
}

#[test]
fn a_run_replaces_the_results_of_another_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (code, shown, error) = run(folder, &["--out", "results"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(
        shown.ends_with("\nthe page to look at: results/report.html\n"),
        "{shown}"
    );
    let out = folder.join("results");
    let first = files(&out);
    // As of a run with PFC cases, and of a user.
    let marker = fs::read_to_string(out.join("validator.txt")).unwrap();
    fs::write(out.join("validator.txt"), marker + "captures/ours.pcapng\n").unwrap();
    for name in ["captures/ours.pcapng", "captures/mine.pcapng", "notes.txt"] {
        fs::write(out.join(name), name).unwrap();
    }
    let (code, _, error) = run(folder, &["--out", "results"]);
    assert_eq!(code, Some(0), "{error}");
    let mut expected = first.clone();
    expected.extend(["captures/mine.pcapng", "notes.txt"].map(str::to_owned));
    expected.sort();
    assert_eq!(files(&out), expected);
    for name in ["captures/mine.pcapng", "notes.txt"] {
        assert_eq!(fs::read_to_string(out.join(name)).unwrap(), name);
    }
}

#[test]
fn a_folder_of_others_is_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("precious")).unwrap();
    let refused = |name: &str, arguments: &[&str], way_out: &str| {
        let (code, shown, error) = run(folder, arguments);
        assert_eq!((code, shown.as_str()), (Some(2), ""), "{error}");
        assert_eq!(
            error,
            format!(
                "validator: precious: `{name}` there is not of an earlier run, and is neither \
                 removed nor overwritten; name another folder with --out{way_out}\n"
            )
        );
        let kept = folder.join("precious").join(name);
        assert_eq!(fs::read_to_string(kept).unwrap(), "kept");
    };
    let (plain, forced) = (["--out", "precious"], ["--out", "precious", "--force"]);
    // No results can go beside a file that has the name of one of theirs.
    for name in ["report.json", "validator.txt"] {
        let file = folder.join("precious").join(name);
        fs::write(&file, "kept").unwrap();
        refused(name, &plain, "");
        refused(name, &forced, "");
        assert_eq!(files(folder), [format!("precious/{name}")]);
        fs::remove_file(file).unwrap();
    }

    fs::write(folder.join("precious/notes.txt"), "kept").unwrap();
    refused("notes.txt", &plain, ", or write beside it with --force");
    assert_eq!(files(folder), ["precious/notes.txt"]);
    let (code, _, error) = run(folder, &forced);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(
        fs::read_to_string(folder.join("precious/notes.txt")).unwrap(),
        "kept"
    );
    assert!(report::read_evidence(&folder.join("precious")).is_ok());

    // In a folder of the tool a user's file may have a name that results have.
    fs::write(folder.join("precious/trace.log"), "kept").unwrap();
    refused("trace.log", &plain, "");
    refused("trace.log", &forced, "");
    assert!(report::read_evidence(&folder.join("precious")).is_ok());
}

#[test]
fn a_run_that_is_refused_leaves_the_results_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // MAD cases write nothing there.
    let (code, _, error) = run(folder, &["--trace", "--out", "results"]);
    assert_eq!(code, Some(0), "{error}");
    let first = files(&folder.join("results"));
    let testbed = "name = \"t\"\n[mad]\ntransport = \"umad\"\ndevice = \"none_0\"\n";
    fs::write(folder.join("none.toml"), testbed).unwrap();
    for out in ["results", "new"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_validator"));
        command
            .args("run --plan mad --testbed none.toml --trace --out".split(' '))
            .arg(out)
            .current_dir(folder)
            .env("VALIDATOR_JOURNAL", folder.join("journal"));
        let (code, _, error) = ended(command.output().unwrap());
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains("none_0"), "{error}");
    }
    assert_eq!(files(&folder.join("results")), first);
    assert!(!folder.join("new").exists());
    assert!(report::read_evidence(&folder.join("results")).is_ok());
}

#[test]
fn a_run_without_a_folder_says_that_its_evidence_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let gone = "nothing was kept: without --out DIR the evidence of a run is gone\n";
    let (code, shown, error) = run(folder.path(), &[]);
    assert_eq!(code, Some(0), "{error}");
    assert!(shown.ends_with(gone), "{shown}");
    let (_, shown, error) = run(folder.path(), &["--format", "json"]);
    serde_json::from_str::<serde_json::Value>(&shown).unwrap();
    assert!(error.ends_with(gone), "{error}");
}

/// A limit on the length of files acts as a full disk does, but SIGXFSZ comes before the error.
#[test]
fn a_run_whose_files_do_not_fit_tells_its_verdict_and_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let limited = |arguments: &[&str]| {
        let mut command = command(folder, &["--out", "results"]);
        let limit = || Ok(setrlimit(Resource::RLIMIT_FSIZE, 4096, 4096)?);
        // SAFETY: the closure makes one system call and touches no memory of others.
        unsafe { command.args(arguments).pre_exec(limit) };
        ended(command.output().unwrap())
    };
    let (code, shown, error) = limited(&[]);
    assert_eq!(code, Some(2), "{error}");
    assert!(
        shown.ends_with("\nverdict: pass (cases: 1 passed; exit code 2)\n"),
        "{shown}"
    );
    let expected = "validator: results/evidence.json: cannot be written: File too large (os error \
                    27)\n";
    assert!(error.ends_with(expected), "{error}");
    // No part of a file is left, be it under another name.
    assert_eq!(files(&folder.join("results")), ["validator.txt"]);

    let (code, shown, error) = limited(&["--format", "json"]);
    assert_eq!(code, Some(2), "{error}");
    let report: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(report["exit_code"], 2);
    assert_eq!(report["cases"][0]["verdict"], "pass");
}

#[test]
fn a_run_whose_summary_does_not_fit_keeps_its_results_and_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = command(folder, &["--out", "results"]);
    let output = command.stdout(full).stderr(Stdio::piped()).spawn();
    let (code, _, error) = ended(output.unwrap().wait_with_output().unwrap());
    assert_eq!(code, Some(2), "{error}");
    let message = "standard output cannot be written: No space left on device (os error 28)";
    assert_eq!(error.matches(message).count(), 1, "{error}");
    let evidence = report::read_evidence(&folder.join("results")).unwrap();
    let results = cases::judge(&evidence);
    assert_eq!(Exit::of(&results, evidence.interrupted), Exit::Passed);
    assert!(folder.join("results/report.html").exists());
}

#[test]
fn a_list_of_files_from_elsewhere_leads_to_none_that_the_tool_does_not_write() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    report::write(&out, &evidence(), &[every_verdict()], Exit::Failed).unwrap();
    let others = ["precious.pcapng", "out/mine.pcapng", "out/captures/note"];
    for name in others {
        fs::write(folder.path().join(name), "kept").unwrap();
    }
    let marker = out.join("validator.txt");
    let listed = fs::read_to_string(&marker).unwrap()
        + "captures/../../precious.pcapng\n../precious.pcapng\nmine.pcapng\ncaptures/note\n";
    fs::write(&marker, listed).unwrap();
    Folder::make(&out).unwrap();
    let mut expected = others.to_vec();
    expected.push("out/validator.txt");
    expected.sort();
    assert_eq!(files(folder.path()), expected);
}

#[test]
fn reports_are_written_again_where_a_copy_has_lost_the_list_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    report::write(out, &evidence(), &[every_verdict()], Exit::Failed).unwrap();
    let before = files(out);
    fs::remove_file(out.join("validator.txt")).unwrap();
    fs::write(out.join("report.html"), "").unwrap();
    let mut again = Folder::of_evidence(out).unwrap();
    report::render(&mut again, &evidence(), &[every_verdict()], Exit::Failed).unwrap();
    assert_eq!(files(out), before);
    assert!(fs::metadata(out.join("report.html")).unwrap().len() > 0);
}
