//! `cargo xtask lab nic`: tester, simulated switch and pairs of network cards in one guest with
//! virtual time; QEMU hubs are the cables. A card with several queues is cabled by taps of the host
//! instead, for a hub has one queue.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use super::archive::Archive;
use super::guest::{Clock, Machine};
use super::initrd::Initrd;
use super::network;
use super::packages::{Kernel, Tree};
use super::script::{self, FUNCTIONS, Transcript};
use crate::build_ebpf;
use crate::setup::{self, Group};
use crate::step::step;

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
    /// One repetition per model, as in `cargo xtask test`, instead of four
    #[arg(long)]
    quick: bool,
}

/// Network cards that QEMU emulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Model {
    VirtioNet,
    /// With two queues
    VirtioNetQueues,
    Igb,
    Vmxnet3,
    E1000e,
    E1000,
}

/// Models that exercise different paths of the tool.
const FULL: [Model; 6] = [
    Model::VirtioNet,
    Model::VirtioNetQueues,
    Model::Igb,
    Model::Vmxnet3,
    Model::E1000e,
    Model::E1000,
];
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
/// MAC addresses of the tester's ports and the switch's; the last octet is the port's number.
const TESTER_MAC: &str = "52:54:00:00:00:0";
const SWITCH_MAC: &str = "52:54:00:00:01:0";

/// Properties of a model as a port of the tester.
struct Port {
    /// Name of the device in QEMU, and of its driver in Linux.
    device: &'static str,
    driver: &'static str,
    /// Kernel modules of the driver.
    modules: &'static [&'static str],
    /// Tables `ports` and `limits` of the testbed.
    line_rate: Option<&'static str>,
    load: &'static str,
    /// Obeys 802.3x by default.
    pauses: bool,
    max_response: &'static str,
}

impl Model {
    fn port(self) -> Port {
        // The real link's speed is 1 Gbit/s; an emulated machine manages a tenth of it.
        let gigabit = Port {
            device: "",
            driver: "",
            modules: &[],
            line_rate: None,
            load: "0.1",
            pauses: true,
            max_response: "2ms",
        };
        match self {
            // Knows no speed, so the testbed names one that the machine manages.
            Self::VirtioNet | Self::VirtioNetQueues => Port {
                device: "virtio-net-pci",
                driver: "virtio_net",
                line_rate: Some("100M"),
                load: "1.0",
                pauses: false,
                ..gigabit
            },
            Self::Igb => Port {
                device: "igb",
                driver: "igb",
                modules: &["igb"],
                ..gigabit
            },
            Self::Vmxnet3 => Port {
                device: "vmxnet3",
                driver: "vmxnet3",
                pauses: false,
                modules: &["vmxnet3"],
                ..gigabit
            },
            // Moderates its interrupts: latencies of 1.4 ms were observed.
            Self::E1000e => Port {
                device: "e1000e",
                driver: "e1000e",
                modules: &["e1000e"],
                load: "0.08",
                max_response: "4ms",
                ..gigabit
            },
            Self::E1000 => Port {
                device: "e1000",
                driver: "e1000",
                modules: &["e1000"],
                load: "0.08",
                max_response: "4ms",
                ..gigabit
            },
        }
    }

    /// Taps of the tester's ports and of the switch's, where hubs do not do.
    fn cables(self) -> Vec<(String, String)> {
        let taps = |number| (format!("tester{number}"), format!("switch{number}"));
        match self {
            Self::VirtioNetQueues => (0..2).map(taps).collect(),
            _ => Vec::new(),
        }
    }

    /// The guest's clock. Frames that go by the host need time in which the guest waits for them.
    fn clock(self) -> Clock {
        match self {
            Self::VirtioNetQueues => Clock::VirtualWaiting,
            _ => Clock::Virtual,
        }
    }

    /// QEMU arguments of the tester's two ports and the switch's.
    fn devices(self) -> Vec<String> {
        if self == Self::VirtioNetQueues {
            return self.devices_on_taps();
        }
        self.devices_on_hubs()
    }

    /// The tester's ports have two queues, each with vectors for both directions, and two more.
    fn devices_on_taps(self) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |tap: &str, queues: u32, more: &str, mac: String| {
            arguments.push("-netdev".to_owned());
            arguments.push(format!(
                "tap,id={tap},ifname={tap},script=no,downscript=no,queues={queues}"
            ));
            arguments.push("-device".to_owned());
            arguments.push(format!(
                "virtio-net-pci,netdev={tap},mac={mac},romfile={more}"
            ));
        };
        for (number, (tester, switch)) in self.cables().iter().enumerate() {
            add(
                tester,
                2,
                ",mq=on,vectors=6",
                format!("{TESTER_MAC}{number}"),
            );
            add(switch, 1, "", format!("{SWITCH_MAC}{number}"));
        }
        arguments
    }

    fn devices_on_hubs(self) -> Vec<String> {
        let mut arguments = Vec::new();
        for number in 0..2 {
            let mut add = |id: String, device: &str, mac: &str, bus: &str| {
                arguments.push("-netdev".to_owned());
                arguments.push(format!("hubport,id={id},hubid={number}"));
                arguments.push("-device".to_owned());
                arguments.push(format!(
                    "{device},netdev={id},mac={mac}{number},romfile={bus}"
                ));
            };
            // igb may be a multi-function device and needs a slot of its own behind a root port.
            let bus = if self == Self::Igb {
                format!(",bus=rp{number}")
            } else {
                String::new()
            };
            add(format!("t{number}"), self.port().device, TESTER_MAC, &bus);
            add(format!("d{number}"), "virtio-net-pci", SWITCH_MAC, "");
            if self == Self::Igb {
                let slot = number + 1;
                let root = format!("pcie-root-port,id=rp{number},chassis={slot},slot={slot}");
                arguments.splice(0..0, ["-device".to_owned(), root]);
            }
        }
        arguments
    }

    fn testbed(self) -> String {
        let Port {
            line_rate,
            load,
            max_response,
            ..
        } = self.port();
        let line_rate = line_rate.map_or(String::new(), |rate| format!("line_rate = \"{rate}\"\n"));
        format!(
            "name = \"lab-nic\"\n[dut]\nkind = \"external\"\n\
             [ports]\ntx = {{ interface = \"t0\" }}\nrx = {{ interface = \"t1\" }}\n{line_rate}\
             [qos]\ntrust = \"dscp\"\ndscp_map = \"dscp-mod-8\"\nlossless = [3, 4]\n\
             [limits]\nmax_response = \"{max_response}\"\nmax_residence = \"2s\"\nload = {load}\n\
             [facts]\nwatchdog = \"off\"\n"
        )
    }
}

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
        # The switch drains at 1 Gbit/s, which the guest is too slow for: the ring has to hold it.
        # QEMU does not count what e1000e and igb have no room for, and a good switch would fail.
        /tools/ethtool -G $port rx 4096 || fail "ethtool -G $port"
    done
fi
step "check --fix on $DRIVER, cabled" checks --fix
for port in d0 d1; do /tools/tc qdisc del dev $port clsact; $ip link set $port promisc off; done
/tools/validator dut switch --port d0 --port d1 --line-rate "$RATE" --lossless 3,4 \
    > /tmp/switch 2>&1 &
until grep -q ready /tmp/switch; do
    kill -0 $! 2>/dev/null || { cat /tmp/switch; fail "the simulated switch"; }
    usleep 10000
done
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
row() {
    verdict=$(sed 's/\x1b\[[0-9;]*m//g' /tmp/run | sed -n 's/^verdict: \([a-z]*\).*/\1/p')
    # The line may be wrapped.
    mode=$(tr -s ' \n' ' ' < /tmp/check | grep -o 'was attached in mode [a-z]*' | head -n 1)
    mode=${mode##* }
    queues=$(sed -n 's/^  [a-z]* *queues *//p' /tmp/check | head -n 1)
    echo "lab: row $DRIVER | $(uname -r) | ${mode:-?} | ${queues:-?} | ${verdict:-none}"
}
runs() {
    /tools/validator run --testbed /testbed.toml --plan "/configs/plans/$PLAN.toml" > /tmp/run 2>&1
    code=$?
    cat /tmp/run
    return $code
}
step "watch on $DRIVER" watches
step "run --plan $PLAN on $DRIVER" runs
row
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

fn test(root: &Path, pairs: &[(Model, Kernel)], plan: &str) -> Result<ExitCode> {
    let archive = Archive::open()?;
    let tools = Tree::tools(&archive)?;
    let mut all = Transcript::default();
    for (model, kernel) in pairs {
        let tree = Tree::kernel(&archive, *kernel)?;
        let name = format!("{} on Linux {kernel}", model.port().driver);
        let found = step(&name, || boot(root, &tools, &tree, *model, plan))?;
        all.passed += found.passed;
        all.failed
            .extend(found.failed.iter().map(|line| format!("{name}: {line}")));
        all.rows.extend(found.rows);
    }
    println!("driver | kernel | XDP | queues | verdict of the plan {plan}");
    all.rows.iter().for_each(|row| println!("{row}"));
    let closed = script::close(all.passed, &all.failed);
    Ok(if closed.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn boot(root: &Path, tools: &Tree, tree: &Tree, model: Model, plan: &str) -> Result<Transcript> {
    let Port {
        driver,
        modules,
        line_rate,
        pauses,
        ..
    } = model.port();
    let settings = format!(
        "DRIVER={driver} RATE={} PLAN={plan} PAUSE={}\n",
        line_rate.unwrap_or("1G"),
        if pauses { "1" } else { "" }
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
    fn each_port_of_the_tester_has_a_cable_of_its_own_to_the_switch() {
        for model in FULL.into_iter().filter(|model| model.cables().is_empty()) {
            let devices = model.devices();
            for number in 0..2 {
                let hub = format!("hubid={number}");
                let on_hub = devices.iter().filter(|argument| argument.contains(&hub));
                assert_eq!(on_hub.count(), 2, "{devices:?}");
            }
            assert_eq!(
                devices
                    .iter()
                    .filter(|argument| argument.contains("mac="))
                    .count(),
                4
            );
        }
    }
}
