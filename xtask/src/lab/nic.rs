//! `cargo xtask lab nic`: tester, simulated switch and pairs of network cards in one guest with
//! virtual time; QEMU hubs are the cables. A card with several queues is cabled by taps of the host
//! instead, for a hub has one queue.

mod model;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use self::model::{FULL, Model, Port};
use super::archive::Archive;
use super::guest::Machine;
use super::initrd::Initrd;
use super::network;
use super::packages::{Kernel, Tree};
use super::script::{self, FUNCTIONS, Transcript};
use crate::build_ebpf;
use crate::setup::{self, Group};
use crate::step::{self, step};

#[derive(clap::Args)]
pub struct NicLab {
    #[command(flatten)]
    setup: setup::Install,
    /// Models of the tester's ports (default: all)
    #[arg(long, value_enum)]
    model: Vec<Model>,
    /// Kernels of the guest (default: 6.1 and 6.12)
    #[arg(long, value_enum)]
    kernel: Vec<Kernel>,
    /// One repetition per model, as in `cargo xtask test`, instead of five
    #[arg(long)]
    quick: bool,
}

const KERNELS: [Kernel; 2] = [Kernel::V6_1, Kernel::V6_12];
/// Part of `cargo xtask test`: a driver that takes its link down when a program is attached.
const QUICK: (Model, Kernel) = (Model::Igb, Kernel::V6_12);

/// A repetition takes up to a minute; several times as long on a busy machine.
const LIMIT: Duration = Duration::from_secs(1800);
const MEMORY: u32 = 1024;
/// Modules of the switch's ports, and of the cable that replaces the switch at first.
const COMMON_MODULES: [&str; 5] = [
    "virtio_pci",
    "virtio_net",
    "sch_ingress",
    "cls_matchall",
    "act_mirred",
];
/// Starts the simulated switch with the lossless priorities of the repetition, in place of the one
/// that may be there.
const SWITCH: &str = r#"#!/bin/sh
if [ -e /tmp/switch.pid ]; then
    kill "$(cat /tmp/switch.pid)"
    while [ -e "/proc/$(cat /tmp/switch.pid)/exe" ]; do usleep 10000; done
fi
setsid /tools/validator dut switch --port d0 --port d1 --line-rate "$RATE" --trust "$TRUST" \
    --lossless "$VALIDATOR_LOSSLESS" > /tmp/switch 2>&1 < /dev/null &
echo $! > /tmp/switch.pid
until grep -q ready /tmp/switch; do
    kill -0 $! 2>/dev/null || { cat /tmp/switch >&2; exit 1; }
    usleep 10000
done
"#;

/// Interfaces are numbered in the order of their modules, so they are renamed by their address.
const SCRIPT: &str = r#"
cd /tmp
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
for pair in 00:00=t0 00:01=t1 01:00=d0 01:01=d1; do
    for interface in /sys/class/net/*; do
        if [ "$(cat "$interface/address")" = "52:54:00:00:${pair%=*}" ]; then
            $ip link set "${interface##*/}" name "${pair#*=}" || fail "rename ${interface##*/}"
        fi
    done
done
for port in t0 t1 d0 d1; do $ip link set "$port" up || fail "no port $port"; done
awaited() { until [ "$(cat "/sys/class/net/$1/carrier")" = 1 ]; do usleep 10000; done; }
for port in t0 t1 d0 d1; do awaited $port; done
checks() {
    /tools/validator check --testbed /testbed.toml "$@" > /tmp/check; code=$?
    cat /tmp/check
    return $code
}
# The lines of a table may be wrapped.
said() { tr -s ' \n' ' ' < /tmp/check | grep -o "$1"; }
# First a cable in place of the switch: the self-test's PFC frames arrive.
for pair in d0=d1 d1=d0; do
    $ip link set "${pair%=*}" promisc on
    /tools/tc qdisc add dev "${pair%=*}" clsact || fail "clsact"
    /tools/tc filter add dev "${pair%=*}" ingress matchall \
        action mirred egress redirect dev "${pair#*=}" || fail "mirred"
done
if [ -n "$PAUSE" ]; then
    # As the first check advises: the port itself neither obeys nor sends pause frames.
    ends 1 "check on $DRIVER names its pause settings" checks --passive
    grep -q "802.3x pause *rx on" /tmp/check || fail "expected pause settings to be named"
    for port in t0 t1; do
        /tools/ethtool -A $port autoneg off rx off tx off || fail "ethtool -A $port"
    done
fi
if [ "$RATE" = 1G ]; then
    # The switch drains at 1 Gbit/s, which the guest is too slow for: the ring has to hold it. QEMU
    # does not count what e1000e and igb have no room for, and a good switch would fail; vmxnet3
    # counts it, and the run would be inconclusive.
    for port in t0 t1; do
        /tools/ethtool -G $port rx 4096 || fail "ethtool -G $port"
    done
fi
step "check --fix on $DRIVER, cabled" checks --fix
mode=$(said 'was attached in mode [a-z]*' | sed 's/.* //' | tr '\n' ' ')
step "both programs were attached in mode $MODE" [ "$mode" = "$MODE $MODE " ]
# As that check advises, so that it is known without the cable.
step "check on $DRIVER says how to write down what was seen" said 'facts.pfc_visible = true'
echo 'pfc_visible = true' >> /testbed.toml
for port in d0 d1; do /tools/tc qdisc del dev $port clsact; $ip link set $port promisc off; done
export RATE TRUST=dscp
VALIDATOR_LOSSLESS=3,4 /switch || fail "the simulated switch"
step "check on $DRIVER, with the switch" checks
queues=$(sed -n 's/^  [a-z]* *queues *//p' /tmp/check | head -n 1)
watches() {
    /tools/validator watch t1 --duration 4s --json > /tmp/watch & watch=$!
    awaited t1
    until grep -q '"watching"' /tmp/watch; do kill -0 $watch || return 1; usleep 10000; done
    awaited t1
    $ip address add 192.0.2.1/24 dev t0
    /bin/arping -q -c 3 -w 2 -I t0 192.0.2.9
    wait $watch || return 1
    $ip address del 192.0.2.1/24 dev t0
    tail -n 1 /tmp/watch
    tail -n 1 /tmp/watch | grep -q '"frames":3[,}]'
}
runs() {
    plan=$1; shift
    /tools/validator run --testbed /testbed.toml --plan "/configs/plans/$plan.toml" "$@" \
        > /tmp/run 2>&1; code=$?
    cat /tmp/run
    return $code
}
step "watch on $DRIVER" watches
step "run --plan $PLAN on $DRIVER" runs $PLAN
verdict=$(sed 's/\x1b\[[0-9;]*m//g' /tmp/run | sed -n 's/^verdict: \([a-z]*\).*/\1/p')
if [ -n "$RESETS" ]; then
    # Tags stay in the frames, for which the driver takes its link down.
    TRUST=pcp
    step "run --plan nic-quick on $DRIVER, by PCP" runs nic-quick --set 'testbed.qos.trust="pcp"'
fi
echo "lab: row $(uname -r) | ${mode%% *} | ${queues:-?} | ${verdict:-none}"
echo "lab: done"
"#;

/// Boots a guest for each model and kernel, and prints a table.
pub fn run(root: &Path, options: &NicLab) -> Result<ExitCode> {
    setup::run(&[Group::Build], &options.setup)?;
    build_ebpf::run(root)?;
    let models = if options.model.is_empty() {
        FULL.to_vec()
    } else {
        options.model.clone()
    };
    let kernels = if options.kernel.is_empty() {
        KERNELS.to_vec()
    } else {
        options.kernel.clone()
    };
    let pairs: Vec<_> = models
        .iter()
        .flat_map(|model| kernels.iter().map(|kernel| (*model, *kernel)))
        .collect();
    test(
        root,
        &pairs,
        if options.quick { "nic-quick" } else { "nic" },
    )
}

/// Part of `cargo xtask test`; `target/release/validator` must be up to date.
pub fn test_one(root: &Path) -> Result<ExitCode> {
    test(root, &[QUICK], "nic-quick")
}

/// What a guest found.
struct Row {
    model: Model,
    kernel: Kernel,
    /// Cells of the table: kernel, mode, queues, verdict.
    cells: String,
    elapsed: Duration,
}

fn test(root: &Path, pairs: &[(Model, Kernel)], plan: &str) -> Result<ExitCode> {
    let archive = Archive::open()?;
    let tools = Tree::tools(&archive)?;
    let (mut passed, mut failed, mut rows) = (0, Vec::new(), Vec::new());
    for (model, kernel) in pairs {
        let tree = Tree::kernel(&archive, *kernel)?;
        let name = format!("{} on Linux {kernel}", model.name());
        let found = step(&name, || boot(root, &tools, &tree, (*model, *kernel), plan))?;
        passed += found.passed;
        failed.extend(found.failed.iter().map(|line| format!("{name}: {line}")));
        rows.extend(found.rows.into_iter().map(|cells| Row {
            model: *model,
            kernel: *kernel,
            cells,
            elapsed: found.elapsed,
        }));
    }
    println!(
        "\n| driver | kernel | XDP | queues | plan {plan} | time |\n|---|---|---|---|---|---|"
    );
    for row in &rows {
        let (driver, elapsed) = (row.model.port().driver, step::elapsed(row.elapsed));
        println!("| {driver} | {} | {elapsed} |", row.cells);
    }
    let mode = |model, kernel| {
        let row = rows
            .iter()
            .find(|row| (row.model, row.kernel) == (model, kernel));
        row.and_then(|row| row.cells.split(" | ").nth(1))
            .unwrap_or("-")
    };
    println!("\n{}", modes(pairs, mode));
    let closed = script::close(passed, &failed);
    Ok(if closed.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Where programs run, by driver and kernel: the table of the README.
fn modes<'a>(pairs: &[(Model, Kernel)], mode: impl Fn(Model, Kernel) -> &'a str) -> String {
    let mut models: Vec<_> = pairs.iter().map(|(model, _)| *model).collect();
    models.dedup();
    let mut kernels: Vec<Kernel> = Vec::new();
    for (_, kernel) in pairs {
        if !kernels.contains(kernel) {
            kernels.push(*kernel);
        }
    }
    let names = kernels.iter().map(|kernel| format!(" Linux {kernel} |"));
    let mut table = format!("| driver |{}\n", names.collect::<String>());
    table += &format!("|---|{}\n", "---|".repeat(kernels.len()));
    for model in models {
        let cells = kernels
            .iter()
            .map(|kernel| format!(" {} |", mode(model, *kernel)));
        table += &format!("| {} |{}\n", model.name(), cells.collect::<String>());
    }
    table
}

fn boot(
    root: &Path,
    tools: &Tree,
    tree: &Tree,
    (model, kernel): (Model, Kernel),
    plan: &str,
) -> Result<Transcript> {
    let Port {
        driver,
        modules,
        line_rate,
        pauses,
        resets,
        ..
    } = model.port();
    let flag = |set| if set { "1" } else { "" };
    let settings = format!(
        "DRIVER={driver} RATE={} PLAN={plan} MODE={} PAUSE={} RESETS={}\n",
        line_rate.unwrap_or("1G"),
        model.mode(kernel),
        flag(pauses),
        flag(resets)
    );
    let script = [&settings, FUNCTIONS, SCRIPT].concat();
    let folder = root.join(format!("target/lab/nic-{driver}"));
    let modules = [&COMMON_MODULES, modules].concat();
    let mut initrd = Initrd::begin(&folder, tools, tree, &modules, &script)?;
    initrd.stripped(&root.join("target/release/validator"), "tools/validator")?;
    for name in ["tc", "ethtool"] {
        initrd.program(&tools.program(name)?, &format!("tools/{name}"))?;
    }
    initrd.copy_folder(&root.join("configs"), "configs")?;
    initrd.write("switch", SWITCH.as_bytes(), 0o755)?;
    initrd.write("testbed.toml", model.testbed().as_bytes(), 0o644)?;
    let initrd = initrd.pack()?;
    let machine = Machine {
        tools,
        kernel: tree,
        initrd: &initrd,
        clock: model.clock(),
        cpus: 2,
        memory: MEMORY,
        devices: model.devices(),
    };
    match model.cables().as_slice() {
        [] => script::run(&machine, LIMIT),
        cables => network::with_cables(cables, || script::run(&machine, LIMIT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_every_driver_on_every_kernel_with_its_mode() {
        let pairs: Vec<_> = FULL
            .into_iter()
            .flat_map(|model| KERNELS.map(|kernel| (model, kernel)))
            .collect();
        let table = modes(&pairs, Model::mode);
        assert!(
            include_str!("../../../README.md").contains(&table),
            "expected in README.md:\n{table}"
        );
    }
}
