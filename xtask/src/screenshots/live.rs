//! `validator watch` at the ports of a simulated switch, while a run tests it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::terminal::{self, Screen, Size};
use crate::lab::archive::cannot_write;
use crate::lab::namespace::Namespace;
use crate::lab::network;

/// The switch's ports d0 and d1 are behind the tester's t0 and t1.
const TESTBED: &str = r#"name = "watched"

[dut]
kind = "external"

[ports]
tx = { interface = "t0" }
rx = { interface = "t1" }
line_rate = "1G"

[qos]
dscp_map = "dscp-mod-8"
lossless = [3]

[limits]
max_residence = "8s"

[facts]
watchdog = "off"
"#;
/// One repetition with a storm of some seconds.
const PLAN: &str = r#"name = "watched"

[durations]
baseline = "300ms"
lead = "300ms"
traffic = "5s"
tail = "300ms"
resume = "300ms"
drain_max = "2s"

[[case]]
id = "pfc.pause-single-lossless"
repetitions = [{ lossless = [3] }]
"#;
/// Rows for the tables of both ports: `watch` shows no more than fit.
const SIZE: Size = Size::new(112, 64);
const WATCH: &str = "watch d0 d1 --dscp-map dscp-mod-8 --line-rate 1G";

/// The screen of `validator watch` in the middle of the storm.
pub fn watch(root: &Path, folder: &Path) -> Result<Screen> {
    for (name, text) in [("testbed.toml", TESTBED), ("plan.toml", PLAN)] {
        let file = folder.join(name);
        fs::write(&file, text).with_context(|| cannot_write(&file))?;
    }
    network::in_namespace(|| {
        let tester = Namespace::of_this_thread()?;
        let device = Namespace::new()?;
        let path = device.path();
        let lines: String = (0..2)
            .map(|number| {
                format!(
                    "link add name t{number} type veth peer name d{number} netns {path}\n\
                     link set t{number} up\n"
                )
            })
            .collect();
        tester.batch("ip", &lines)?;
        device.batch("ip", "link set d0 up\nlink set d1 up\n")?;
        let program = root.join("target/release/validator").display().to_string();
        let mut switch = device.bound(&program);
        switch.args("dut switch --port d0 --port d1 --line-rate 1G --lossless 3".split(' '));
        let _switch = Background::start(&mut switch)?;
        let mut run = tester.bound(&program);
        run.arg("run").current_dir(folder);
        run.args("--testbed testbed.toml --plan plan.toml --out watched".split(' '));
        let _run = Background::start(&mut run)?;
        let mut watch = device.bound(&program);
        watch.args(WATCH.split(' ')).args(["--duration", "20s"]);
        let (screen, status) = terminal::run(&mut watch, SIZE, in_storm)?;
        if status.code().is_some() {
            bail!(
                "expected a storm to be seen, found a last screen:\n{}",
                screen.text()
            );
        }
        Ok(screen.titled(&format!("validator {WATCH}")))
    })
}

/// True once a whole interval lay in the storm.
fn in_storm(screen: &str) -> bool {
    let share = |line: &str| {
        line.strip_suffix(" % now")?
            .rsplit(' ')
            .next()?
            .parse()
            .ok()
    };
    screen
        .lines()
        .filter_map(share)
        .any(|percent: f64| percent > 99.0)
}

/// A program whose output nobody wants, killed at the end.
struct Background(Child);

impl Background {
    fn start(command: &mut Command) -> Result<Self> {
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(Self(command.spawn().context("cannot run the validator")?))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_is_told_by_the_share_of_the_last_interval() {
        let screen =
            |share| format!("d1\n  PFC 3   9 XOFF  0 XON  1.000000 s paused  {share} % now\n");
        assert!(in_storm(&screen("100.0")));
        assert!(!in_storm(&screen("41.3")));
        assert!(!in_storm("d1\n"));
    }
}
