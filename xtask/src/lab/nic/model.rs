//! Network cards that QEMU emulates: as ports of the tester, and their cables.

use crate::lab::guest::Clock;
use crate::lab::packages::Kernel;

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
pub const FULL: [Model; 6] = [
    Model::VirtioNet,
    Model::VirtioNetQueues,
    Model::Igb,
    Model::Vmxnet3,
    Model::E1000e,
    Model::E1000,
];

/// MAC addresses of the tester's ports and the switch's; the last octet is the port's number.
const TESTER_MAC: &str = "52:54:00:00:00:0";
const SWITCH_MAC: &str = "52:54:00:00:01:0";

/// Properties of a model as a port of the tester.
pub struct Port {
    /// Name of the device in QEMU.
    device: &'static str,
    /// Name of its driver in Linux.
    pub driver: &'static str,
    /// Kernel modules of the driver.
    pub modules: &'static [&'static str],
    /// Tables `ports` and `limits` of the testbed.
    pub line_rate: Option<&'static str>,
    load: &'static str,
    max_response: &'static str,
    /// Obeys 802.3x by default.
    pub pauses: bool,
    /// Takes its link down when an offload is changed, as for tags.
    pub resets: bool,
}

impl Model {
    pub fn port(self) -> Port {
        // The real link's speed is 1 Gbit/s; an emulated machine manages a tenth of it.
        let gigabit = Port {
            device: "",
            driver: "",
            modules: &[],
            line_rate: None,
            load: "0.1",
            max_response: "2ms",
            pauses: true,
            resets: false,
        };
        match self {
            // Knows no speed, so the testbed names one that the machine manages.
            Self::VirtioNet | Self::VirtioNetQueues => Port {
                device: "virtio-net-pci",
                driver: "virtio_net",
                line_rate: Some("100M"),
                load: "1.0",
                pauses: false,
                // The switch of the guest was seen to take 2.6 ms.
                max_response: "4ms",
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
                resets: true,
                ..gigabit
            },
            Self::E1000 => Port {
                device: "e1000",
                driver: "e1000",
                modules: &["e1000"],
                load: "0.08",
                max_response: "4ms",
                resets: true,
                ..gigabit
            },
        }
    }

    /// Where the driver runs programs: itself, or in the stack.
    pub fn mode(self, kernel: Kernel) -> &'static str {
        match (self, kernel) {
            (Self::E1000e | Self::E1000, _) | (Self::Vmxnet3, Kernel::V6_1) => "skb",
            _ => "driver",
        }
    }

    /// Its driver, in the table of drivers.
    pub fn name(self) -> String {
        let driver = self.port().driver;
        match self {
            Self::VirtioNetQueues => format!("{driver}, 2 queues"),
            _ => driver.to_owned(),
        }
    }

    /// Taps of the tester's ports and of the switch's, where hubs do not do.
    pub fn cables(self) -> Vec<(String, String)> {
        let taps = |number| (format!("tester{number}"), format!("switch{number}"));
        match self {
            Self::VirtioNetQueues => (0..2).map(taps).collect(),
            _ => Vec::new(),
        }
    }

    /// The guest's clock. Frames that go by the host need time in which the guest waits for them.
    pub fn clock(self) -> Clock {
        match self {
            Self::VirtioNetQueues => Clock::VirtualWaiting,
            _ => Clock::Virtual,
        }
    }

    /// QEMU arguments of the tester's two ports and the switch's.
    pub fn devices(self) -> Vec<String> {
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

    pub fn testbed(self) -> String {
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
             [hooks]\nconfigure = \"/switch\"\n[facts]\nwatchdog = \"off\"\n"
        )
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
