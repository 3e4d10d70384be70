//! `validator check` finds what a run would end with before it asks the DUT anything.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::mad::{Ended, Folder, PROGRAM};

fn check(testbed: &Path) -> Ended {
    let mut command = Command::new(PROGRAM);
    command.args(["check", "--passive", "--plan", "mad", "--testbed"]);
    Ended::of(command.arg(testbed).output().unwrap())
}

/// A text without its line breaks and columns.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
        let printed = words(&checked.stdout);
        assert!(
            printed.contains(&format!("problem way to the DUT {}", words(error))),
            "{printed}"
        );
        assert!(
            printed.ends_with("1 problems, 0 unknown (exit code 1)"),
            "{printed}"
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

#[test]
fn the_adapter_is_named_with_its_driver_and_firmware() {
    let folder = Folder::new();
    let sysfs = folder.0.path().join("sys");
    let adapter = sysfs.join("class/infiniband/mlx5_0");
    std::fs::create_dir_all(adapter.join("ports/1")).unwrap();
    for (name, text) in [("fw_ver", "28.39.1002\n"), ("board_id", "MT_0000000838\n")] {
        std::fs::write(adapter.join(name), text).unwrap();
    }
    std::fs::create_dir(adapter.join("device")).unwrap();
    symlink("/drivers/mlx5_core", adapter.join("device/driver")).unwrap();
    let text = format!(
        "name = \"t\"\n[mad]\ntransport = \"umad\"\ndevice = \"mlx5_0\"\nsysfs = \"{}\"\n",
        sysfs.display()
    );
    let checked = check(&folder.file("testbed.toml", &text));
    // It cannot be opened, and is named all the same.
    assert_eq!(checked.code, Some(1), "{checked:?}");
    let expected =
        "mad: mlx5_0/1 ok driver mlx5_core, firmware 28.39.1002 (MT_0000000838) mad: umad";
    assert!(words(&checked.stdout).contains(expected), "{checked:?}");
}
