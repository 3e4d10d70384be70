//! `validator check` finds what a run would end with before it asks the DUT anything.

use std::path::Path;
use std::process::Command;

use crate::{Ended, Folder, PROGRAM};

fn check(testbed: &Path) -> Ended {
    let mut command = Command::new(PROGRAM);
    command.args(["check", "--passive", "--plan", "mad", "--testbed"]);
    Ended::of(command.arg(testbed).output().unwrap())
}

#[test]
fn what_a_run_cannot_open_is_a_problem_of_check() {
    let folder = Folder::new();
    for (name, table) in [
        ("umad", "transport = \"umad\"\ndevice = \"none_0\""),
        (
            "ibsim",
            "transport = \"ibsim\"\nsocket = \"nobody\"\nhost = \"H\"",
        ),
    ] {
        let text = format!("name = \"t\"\n[mad]\n{table}\n");
        let testbed = folder.file(&format!("{name}.toml"), &text);
        let ran = folder.run(&testbed, "--plan mad");
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let error = ran.stderr.trim_start_matches("validator: ").trim_end();
        let checked = check(&testbed);
        assert_eq!(checked.code, Some(1), "{checked:?}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = words(&checked.stdout);
        assert!(
            told.contains(&format!("problem way to the DUT {}", words(error))),
            "{told}"
        );
        assert!(
            told.ends_with("1 problems, 0 unknown (exit code 1)"),
            "{told}"
        );
    }
    let sim = folder.file("sim.toml", "name = \"t\"\n[mad]\ntransport = \"sim\"\n");
    let checked = check(&sim);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(
        checked.stdout.contains("way to the DUT  can be opened"),
        "{checked:?}"
    );
}

#[test]
fn only_ports_that_the_plan_uses_are_looked_at() {
    let folder = Folder::new();
    let text = "name = \"t\"\ndut.kind = \"external\"\nqos.dscp_map = \"sonic\"\n\
                qos.lossless = [3]\nports.tx.interface = \"none0\"\n\
                ports.rx.interface = \"none1\"\nmad.transport = \"sim\"\n";
    let checked = check(&folder.file("testbed.toml", text));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(!checked.stdout.contains("none0"), "{checked:?}");
}
