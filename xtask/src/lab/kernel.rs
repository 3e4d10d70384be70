//! `cargo xtask lab kernel`: every BPF program on every kernel of the range.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use super::archive::Archive;
use super::guest::{Clock, Machine};
use super::initrd::Initrd;
use super::packages::{Kernel, Tree};
use super::script::{self, FUNCTIONS, Transcript};
use crate::build_ebpf;
use crate::setup::{self, Group};
use crate::step::{self, step};

#[derive(clap::Args)]
pub struct KernelLab {
    #[command(flatten)]
    setup: setup::Install,
    /// Boot only this kernel
    #[arg(long)]
    kernel: Option<Kernel>,
}

/// Kernels on which the programs have to work, and one that is too old.
const ROWS: [Kernel; 4] = [Kernel::V5_10, Kernel::V6_1, Kernel::V6_12, Kernel::Newest];
/// Test programs that the guest runs.
const PROGRAMS: [&str; 5] = ["traffic_live", "xdp", "watch", "responder", "engine"];
const MODULES: [&str; 5] = ["veth", "sch_ingress", "cls_bpf", "act_mirred", "vxlan"];
/// A kernel takes at most two minutes; several times as long on a busy machine.
const LIMIT: Duration = Duration::from_secs(900);
/// Mebibytes: the initial RAM disk is unpacked into at most half of it.
const MEMORY: u32 = 1024;

/// Every program is loaded and counts as the host does. No step depends on time, so the guest uses
/// the host's clock: counting instructions makes the verifier ten times slower.
const COUNTS: &str = r#"
export VALIDATOR_FRAMES=3000 VALIDATOR_SKIPS=/tmp/skips RUST_BACKTRACE=0
cd /tmp
tests traffic_live accounts::root_every_frame_let_go
# account and watch count arbitrary frames as the host does.
tests xdp differential::
tests watch differential::
tests responder program::
# Each loads the object anew, which takes the verifier seconds here.
tests engine program::root_stamped program::root_pauses program::root_captured counts::root_flows \
    fast::root_thousands
tests watch counting::root_pause clsact::root_frames merged::root_frames
# Attached by the driver and by the stack.
tests xdp attach::root_frames_on_a_wire_are_counted_in_both_modes
tests responder attach::root_requests_are_dropped_on_the_wire
tests xdp refused:: trace::
tests watch trace::
# Without tcx a killed `watch` leaves its filter, which the next one takes away.
filters() { /tools/tc filter show dev v0 ingress | grep -c watch_tc; }
a_killed_watch_is_cleared() {
    $ip link add v0 type veth peer name v1 && $ip link set v0 up && $ip link set v1 up || return 1
    /tools/validator watch v0 --attach tc > /dev/null 2>&1 & watch=$!
    until [ "$(filters)" != 0 ]; do kill -0 $watch || return 1; usleep 10000; done
    kill -9 $watch; wait $watch
    [ "$(filters)" != 0 ] || return 1
    /tools/validator watch v0 --attach tc --duration 1s || return 1
    [ "$(filters)" = 0 ]
    code=$?
    $ip link del v0
    return $code
}
case $(uname -r) in 6.1.*) step "watch without tcx, killed" a_killed_watch_is_cleared ;; esac
for log in /tmp/validator-verifier-*; do [ -e "$log" ] && tail -n 40 "$log"; done
[ -e /tmp/skips ] && sed 's/^/lab: skipped /' /tmp/skips
echo "lab: done"
"#;

/// One repetition of each family ends in a verdict, in virtual time.
const VERDICTS: &str = r#"
cd /tmp
sim="--testbed /configs/testbeds/sim.toml"
step "run --plan mad" /tools/validator run $sim --plan mad
step "run --plan rc" /tools/validator run $sim --plan rc
step "run --plan kernel" /tools/validator run $sim --plan /configs/plans/kernel.toml \
    --set 'testbed.ports.line_rate="100M"'
for log in /tmp/validator-verifier-*; do [ -e "$log" ] && tail -n 40 "$log"; done
echo "lab: done"
"#;

/// Each command names what the kernel lacks: in one line, or as one item of a table.
const REFUSES: &str = r#"
cd /tmp
refuses() {
    /tools/validator "$@" > /tmp/said 2>&1 && return 1
    cat /tmp/said
    [ "$(grep -c "this kernel lacks .*Linux 6\.1" /tmp/said)" = 1 ]
}
sim="--testbed /configs/testbeds/sim.toml"
step "watch names what is missing" refuses watch lo
step "run names what is missing" refuses run $sim --plan /configs/plans/kernel.toml
checks() {
    /tools/validator check $sim > /tmp/said 2>&1 && return 1
    cat /tmp/said
    tr -s ' \n' ' ' < /tmp/said |
        grep -q "problem kernel Linux 5\.10.*expected: Linux 6\.1 or newer"
}
step "check names the kernel" checks
echo "lab: done"
"#;

/// Boots the kernels one after the other.
pub fn run(root: &Path, options: &KernelLab) -> Result<ExitCode> {
    setup::run(&[Group::Build], &options.setup)?;
    build_ebpf::run(root)?;
    let rows = options.kernel.map_or(ROWS.to_vec(), |kernel| vec![kernel]);
    test(root, &rows)
}

/// Boots these in turn. `target/release/validator` must be up to date.
pub fn test(root: &Path, rows: &[Kernel]) -> Result<ExitCode> {
    let archive = Archive::open()?;
    let tools = Tree::tools(&archive)?;
    let (mut passed, mut failed) = (0, Vec::new());
    for kernel in rows {
        let tree = match Tree::kernel(&archive, *kernel) {
            Ok(tree) => tree,
            // The archive may have dropped one and not have the other yet.
            Err(error) if !kernel.is_of_the_range() => {
                println!("==> Linux {kernel} is left out: {error:#}");
                continue;
            }
            Err(error) => return Err(error),
        };
        let lab = Lab {
            root,
            tools: &tools,
            kernel: *kernel,
            tree: &tree,
        };
        let transcript = step(&format!("Linux {kernel}"), || lab.run())?;
        println!(
            "    {} steps in {}",
            transcript.passed,
            step::elapsed(transcript.elapsed)
        );
        passed += transcript.passed;
        failed.extend(
            transcript
                .failed
                .iter()
                .map(|line| format!("Linux {kernel}: {line}")),
        );
    }
    let closed = script::close(passed, &failed);
    Ok(if closed.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A kernel and everything that its guests are made of.
struct Lab<'a> {
    root: &'a Path,
    tools: &'a Tree,
    kernel: Kernel,
    tree: &'a Tree,
}

impl Lab<'_> {
    fn run(&self) -> Result<Transcript> {
        if self.kernel == Kernel::V5_10 {
            return self.boot("refuses", REFUSES, Clock::Virtual, &[]);
        }
        let mut all = self.boot("counts", COUNTS, Clock::Real, &PROGRAMS)?;
        all.add(self.boot("verdicts", VERDICTS, Clock::Virtual, &[])?);
        Ok(all)
    }

    /// Boots once with one script.
    fn boot(
        &self,
        name: &str,
        script: &str,
        clock: Clock,
        programs: &[&str],
    ) -> Result<Transcript> {
        let folder = self
            .root
            .join(format!("target/lab/kernel-{}-{name}", self.kernel));
        let script = [FUNCTIONS, script].concat();
        let mut initrd = Initrd::begin(&folder, self.tools, self.tree, &MODULES, &script)?;
        let validator = self.root.join("target/release/validator");
        initrd.stripped(&validator, "tools/validator")?;
        if !programs.is_empty() {
            for (program, name) in script::test_programs(self.root, programs)?
                .iter()
                .zip(programs)
            {
                initrd.stripped(program, &format!("tools/{name}"))?;
            }
            for name in ["tc", "ethtool"] {
                initrd.program(&self.tools.program(name)?, &format!("tools/{name}"))?;
            }
            // The test programs look for both where cargo has them.
            initrd.link("/tools/validator", &validator)?;
            initrd.link("/configs", &self.root.join("configs"))?;
        }
        initrd.copy_folder(&self.root.join("configs"), "configs")?;
        let initrd = initrd.pack()?;
        let machine = Machine {
            tools: self.tools,
            kernel: self.tree,
            initrd: &initrd,
            clock,
            cpus: 2,
            memory: MEMORY,
            devices: Vec::new(),
        };
        script::run(&machine, LIMIT)
    }
}
