//! Every key of testbeds and plans, for the documentation. Its tests hold it against the readers.

/// A key as its user finds it in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Path, such as `ports.line_rate`.
    pub path: &'static str,
    /// The shape of its value.
    pub value: &'static str,
    /// Its default: in TOML where it is one value for all, else in words, or empty.
    pub default: &'static str,
    /// Its meaning, and when it may stand.
    pub meaning: &'static str,
}

const fn key(
    path: &'static str,
    value: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key {
        path,
        value,
        default,
        meaning,
    }
}

impl Key {
    /// True if the default is one value for all, and not a rule in words.
    pub fn has_plain_default(&self) -> bool {
        self.default.starts_with(['"', '['])
            || self
                .default
                .starts_with(|first: char| first.is_ascii_digit())
    }
}

/// A table of a file, with its keys in their order.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name in the file; empty for the keys above all tables.
    pub name: &'static str,
    /// Its subject, in a sentence.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

const TIME: &str = "time";
const MAC: &str = "MAC address";

/// Tables of a testbed.
pub const TESTBED: &[Table] = &[
    Table {
        name: "",
        about: "A testbed has a name and at least one of the tables `[dut]`, `[mad]` and `[rc]`.",
        keys: &[key("name", "text", "", "Its name in reports. Mandatory.")],
    },
    Table {
        name: "dut",
        about: "The device under test of the PFC cases, and the description of any.",
        keys: &[
            key(
                "dut.kind",
                "`sim`, `bridge`, `external`",
                "",
                "The simulated switch, a Linux bridge, or a device that is there already. \
                 Mandatory for PFC cases.",
            ),
            key(
                "dut.faults",
                "list of text",
                "[]",
                "Faults of the simulated switch, such as `\"leaks=100\"`. Only with `sim`.",
            ),
            key(
                "dut.args",
                "list of text",
                "[]",
                "Further arguments for its process, such as `\"--xoff\", \"512KiB\"`. Only with \
                 `sim`.",
            ),
            key(
                "dut.scheduler",
                "`strict`, `round-robin`, `drr`",
                "`round-robin`",
                "Order in which the simulated switch serves its priorities: the highest first, \
                 frame by frame, or octet by octet (deficit round robin). Only with `sim`.",
            ),
            key(
                "dut.ports",
                "`{ tx = \"...\", rx = \"...\" }`",
                "",
                "The DUT's own names of the ports that the tester's tx and rx port are cabled to, \
                 for hooks. Only with `external`.",
            ),
            key("dut.vendor", "text", "", "Its maker, for the reports."),
            key("dut.model", "text", "", "Its model, for the reports."),
            key(
                "dut.serial",
                "text",
                "",
                "Its serial number, for the reports.",
            ),
            key(
                "dut.software",
                "text",
                "",
                "Its operating system or firmware with the version, for the reports.",
            ),
        ],
    },
    Table {
        name: "ports",
        about: "The tester's ports of the PFC cases.",
        keys: &[
            key(
                "ports.tx",
                "port",
                "",
                "Sends the data. Mandatory with `external`, and only there.",
            ),
            key(
                "ports.rx",
                "port",
                "",
                "Receives it, and sends the storm. Mandatory with `external`, and only there.",
            ),
            key(
                "ports.line_rate",
                "rate",
                "the link's speed",
                "Speed of the ports. Mandatory with `sim` and `bridge`, and on veth and tap.",
            ),
            key(
                "ports.xdp",
                "`auto`, `driver`, `skb`",
                "\"auto\"",
                "How XDP programs are attached: in the driver, in the kernel's generic path, or \
                 the first of these that works.",
            ),
            key(
                "ports.sender",
                "`auto`, `live-frames`, `sendmmsg`",
                "\"auto\"",
                "What sends the test traffic. `auto` takes live frames, which the kernel makes, \
                 from some 200,000 frames a second on where the tx port takes them.",
            ),
        ],
    },
    Table {
        name: "ports.tx, ports.rx, rc.port",
        about: "A port.",
        keys: &[
            key("interface", "text", "", "Its interface. Mandatory."),
            key(
                "namespace",
                "text",
                "where the tool is started",
                "The named network namespace that it is in.",
            ),
        ],
    },
    Table {
        name: "qos",
        about: "How the DUT of the PFC cases tells priorities, and which are lossless.",
        keys: &[
            key(
                "qos.trust",
                "`dscp`, `pcp`",
                "\"dscp\"",
                "The field that the DUT trusts. With `pcp`, test frames carry a priority tag, and \
                 their DSCP points to another priority than their PCP.",
            ),
            key(
                "qos.vlan",
                "`true`, `false`",
                "`false`",
                "Test frames carry a priority tag with `trust = \"dscp\"` too; its PCP points to \
                 another priority than their DSCP. With `trust = \"pcp\"` they always carry one.",
            ),
            key(
                "qos.dscp_map",
                "`sonic`, `dscp-mod-8`, `dscp-high-bits`, or 64 priorities",
                "`dscp-mod-8` with `sim` and `bridge`",
                "How the DUT maps DSCPs to priorities. Mandatory with `external` and `trust = \
                 \"dscp\"`.",
            ),
            key(
                "qos.lossless",
                "list of priorities",
                "",
                "The lossless priorities that the DUT has now. Mandatory with `external`, and only \
                 there: the simulated switch takes those of each repetition, and a bridge has \
                 none.",
            ),
        ],
    },
    Table {
        name: "addresses",
        about: "Addresses of the test frames.",
        keys: &[
            key(
                "addresses.source_ip",
                "IP address",
                "\"198.18.0.1\"",
                "Source address, IPv4 or IPv6.",
            ),
            key(
                "addresses.destination_ip",
                "IP address",
                "\"198.18.0.2\"",
                "Destination address, of the same family.",
            ),
            key(
                "addresses.source_mac",
                MAC,
                "the tx port's own",
                "Source MAC address.",
            ),
            key(
                "addresses.destination_mac",
                MAC,
                "the rx port's own",
                "Destination MAC address, where the DUT bridges.",
            ),
            key(
                "addresses.gateway_mac",
                MAC,
                "",
                "The DUT's MAC address, where it routes: MAC addresses, TTL and checksum may then \
                 change. Not together with `destination_mac`.",
            ),
        ],
    },
    Table {
        name: "limits",
        about: "What PFC verdicts are judged against.",
        keys: &[
            key(
                "limits.max_response",
                TIME,
                "\"1ms\"",
                "Longest time from a pause frame to the last data frame, and from an XON to the \
                 first. At most 1s.",
            ),
            key(
                "limits.headroom",
                "octets",
                "\"1MiB\"",
                "Octets of one lossless priority that the DUT can take after its own XOFF. At most \
                 1GiB.",
            ),
            key(
                "limits.max_residence",
                TIME,
                "\"1s\"",
                "Longest time that a frame may wait in the DUT without being dropped for it. At \
                 most 1min.",
            ),
            key(
                "limits.min_throughput",
                "share",
                "0.99",
                "Share of the offered rate that has to arrive during the 802.3x storm.",
            ),
            key(
                "limits.load",
                "share",
                "1.0",
                "Share of the line rate that counts as 100 %, at least 0.01. 0.9998 leaves room for two clocks \
                 100 \
                 ppm apart.",
            ),
            key(
                "limits.max_burst",
                TIME,
                "\"4ms\"",
                "The sender's largest burst, at most 4 ms; less where the DUT's lossy queues are \
                 short. Two frames, where those take longer at the line rate.",
            ),
            key(
                "limits.attempts",
                "1 to 10",
                "3",
                "Times that a repetition is measured at most, as long as a check is inconclusive \
                 because the tester itself was disturbed.",
            ),
        ],
    },
    Table {
        name: "facts",
        about: "Facts that cannot be read from here.",
        keys: &[
            key(
                "facts.watchdog",
                "`off`, `on`",
                "`off` with `sim` and `bridge`, else not known",
                "The DUT's PFC watchdog. The PFC checks are inconclusive unless it is declared as \
                 off, or `hooks.prepare` says so. With `on`, cases that need it off are refused.",
            ),
            key(
                "facts.direct",
                "`true`, `false`",
                "`false`",
                "The other end of a port that is a veth is the DUT's own, with no bridge between: \
                 PAUSE and PFC frames of the DUT then reach the program. Only with `external`.",
            ),
            key(
                "facts.pfc_visible",
                "`true`, `false`",
                "`false`",
                "PAUSE and PFC frames of the DUT reach the program on the tx port, whatever the \
                 kind of port. Only with `external`.",
            ),
        ],
    },
    Table {
        name: "hooks",
        about: "Commands of the user, run by the shell, with what they are run for in variables of the \
                environment.",
        keys: &[
            key(
                "hooks.prepare",
                "command",
                "",
                "Makes the DUT ready, once, before anything is measured. Of JSON that it prints, \
                 `\"watchdog\": \"off\"` stands for `facts.watchdog`.",
            ),
            key(
                "hooks.configure",
                "command",
                "",
                "Makes the priorities of `VALIDATOR_LOSSLESS` (such as `3,4`) lossless on the DUT, \
                 before each repetition. One that it fails for is `inconclusive`.",
            ),
            key(
                "hooks.counters",
                "command",
                "",
                "Prints the DUT's counters, before and after each repetition. Of whole numbers in \
                 JSON the reports have the changes.",
            ),
            key(
                "hooks.restore",
                "command",
                "",
                "Puts back what the others have changed, at the end of the run, however it ends. \
                 After a run that was killed, the next one does it.",
            ),
            key(
                "hooks.timeout",
                TIME,
                "\"60s\"",
                "Longest time for each. At most 10min. The first MiB of what they print is kept.",
            ),
        ],
    },
    Table {
        name: "mad",
        about: "The DUT of the MAD cases, and the way to it.",
        keys: &[
            key(
                "mad.transport",
                "`sim`, `ibsim`, `umad`",
                "",
                "The simulated agent, an ibsim that runs already, or a port of a real adapter. \
                 Mandatory.",
            ),
            key(
                "mad.faults",
                "list of text",
                "[]",
                "Faults of the simulated agent, such as `\"shows-key\"`. Only with `sim`.",
            ),
            key(
                "mad.args",
                "list of text",
                "[]",
                "Further arguments for its process, such as `\"--node\", \"ca\"`. Only with `sim`.",
            ),
            key(
                "mad.socket",
                "text",
                "",
                "IBSIM_SOCKNAME of the server. Mandatory with `ibsim`, and only there.",
            ),
            key(
                "mad.host",
                "text",
                "",
                "Node of the fabric that the tester is. Mandatory with `ibsim`, and only there.",
            ),
            key(
                "mad.device",
                "text",
                "",
                "Adapter, such as `mlx5_0`. Mandatory with `umad`, and only there.",
            ),
            key("mad.port", "number", "1", "Its port. Only with `umad`."),
            key(
                "mad.sysfs",
                "folder",
                "\"/sys\"",
                "Where sysfs is. Only with `umad`.",
            ),
            key(
                "mad.path",
                "ports",
                "the next node",
                "Directed route to the DUT: 0, then the egress port of each hop, such as \
                 `\"0,1\"`.",
            ),
            key(
                "mad.lid",
                "number",
                "",
                "The DUT's LID, in place of `path`.",
            ),
            key(
                "mad.m_key_current",
                "key",
                "\"0x0000000000000000\"",
                "The M_Key that the DUT has now; 0 is none.",
            ),
            key(
                "mad.m_key_dut",
                "key",
                "\"0x56414c4944415445\"",
                "M_KEY_DUT, which the DUT has during a subcase.",
            ),
            key(
                "mad.m_key_other",
                "key",
                "\"0x4f54484552204b59\"",
                "M_KEY_OTHER, the wrong key.",
            ),
            key(
                "mad.timeout",
                TIME,
                "\"200ms\"",
                "Least time to wait for an answer, at most 10 s. The DUT's own RespTimeValue and \
                 SubnetTimeOut may make it longer.",
            ),
        ],
    },
    Table {
        name: "rc",
        about: "The DUT of the RC cases, and the tester's port.",
        keys: &[
            key(
                "rc.dut",
                "`sim`, `agent`",
                "",
                "The simulated requester, or an adapter with `validator agent` on its host. \
                 Mandatory.",
            ),
            key(
                "rc.faults",
                "list of text",
                "[]",
                "Faults of the simulated requester, such as `\"one-retry-less\"`. Only with `sim`.",
            ),
            key(
                "rc.args",
                "list of text",
                "[]",
                "Further arguments for its process. Only with `sim`.",
            ),
            key(
                "rc.agent",
                "host:port",
                "",
                "Where the agent listens. Mandatory with `agent`, and only there.",
            ),
            key(
                "rc.token_file",
                "file",
                "the environment variable `VALIDATOR_TOKEN`",
                "File with the shared token. Only with `agent`.",
            ),
            key(
                "rc.port",
                "port",
                "",
                "The tester's port that the adapter's packets come in by. Mandatory with \
                 `agent`, and \
                 only there.",
            ),
            key(
                "rc.address",
                "IP address",
                "`198.18.16.1` with `sim`",
                "The tester's address on that port. Mandatory with `agent`.",
            ),
            key(
                "rc.xdp",
                "`auto`, `driver`, `skb`",
                "\"auto\"",
                "How the XDP program is attached.",
            ),
            key(
                "rc.apm",
                "true, false",
                "the device's own flag",
                "True if the DUT supports Automatic Path Migration, which makes the case not \
                 applicable.",
            ),
        ],
    },
];

const DURATIONS: &[Key] = &[
    key(
        "durations.baseline",
        TIME,
        "\"300ms\"",
        "Data before the storm.",
    ),
    key(
        "durations.lead",
        TIME,
        "\"1s\"",
        "The storm before the data.",
    ),
    key(
        "durations.traffic",
        TIME,
        "\"1s\"",
        "Data during the storm.",
    ),
    key(
        "durations.tail",
        TIME,
        "\"200ms\"",
        "The storm after the data.",
    ),
    key(
        "durations.resume",
        TIME,
        "\"1s\"",
        "Data after the storm, where the case has such a phase.",
    ),
    key(
        "durations.drain_max",
        TIME,
        "\"2s\"",
        "Longest wait for what the DUT still holds.",
    ),
];

/// Tables of a plan.
pub const PLAN: &[Table] = &[
    Table {
        name: "",
        about: "A plan has a name and at least one `[[case]]`.",
        keys: &[
            key("name", "text", "", "Its name in reports. Mandatory."),
            key(
                "short",
                "`true`, `false`",
                "`false`",
                "On an external DUT without `hooks.configure`, whose lossless set stands in the \
                 place of the plan's, a case has no more repetitions than are listed.",
            ),
        ],
    },
    Table {
        name: "durations",
        about: "Times of the PFC cases, each 1ms to 60min. A case may have a table `durations` of its \
                own.",
        keys: DURATIONS,
    },
    Table {
        name: "traffic",
        about: "Test frames of the PFC cases.",
        keys: &[key(
            "traffic.frame",
            "number",
            "1024",
            "Length in octets without FCS: 60 to 3400 for IPv4, 80 to 3400 for IPv6; 4 more for a tag.",
        )],
    },
    Table {
        name: "storm",
        about: "Pause frames of the PFC cases. A case may have a table `storm` of its own.",
        keys: &[
            key(
                "storm.quanta",
                "number",
                "65535",
                "Pause time of each frame, 1 to 65535. A third of it, the default interval, must be \
                 at least 5us.",
            ),
            key(
                "storm.interval",
                TIME,
                "a third of the pause time",
                "Time from one frame to the next; at least 5us, and below the pause time.",
            ),
        ],
    },
    Table {
        name: "[case]",
        about: "A case to run; each case once, in the order of the file.",
        keys: &[
            key("id", "text", "", "Case id. Mandatory."),
            key("durations", "table", "the plan's", "Only of PFC cases."),
            key("storm", "table", "the plan's", "Only of PFC cases."),
            key(
                "repetitions",
                "list of tables",
                "",
                "Sets of priorities. Mandatory for PFC cases, and only there.",
            ),
            key(
                "queue_pairs",
                "list of tables",
                "that of the document",
                "Queue pairs. Only of RC cases.",
            ),
            key(
                "all_key_bits",
                "true or false",
                "false",
                "True: a wrong M_Key for each of the 64 bits, and not for eight of them that each \
                 run draws. Only of `mad.c14-016-get`.",
            ),
        ],
    },
    Table {
        name: "case.repetitions",
        about: "One repetition of a PFC case.",
        keys: &[
            key(
                "lossless",
                "list of priorities",
                "",
                "Lossless priorities. Mandatory.",
            ),
            key(
                "storm",
                "list of priorities",
                "all of them",
                "Those that are stormed. Only of `pfc.pause-multi-lossless`, and of \
                 `pfc.enable-vector`, where the list may be empty.",
            ),
        ],
    },
    Table {
        name: "case.queue_pairs",
        about: "One repetition of an RC case.",
        keys: &[
            key("retry_count", "number", "2", "0 to 7."),
            key(
                "timeout",
                "number",
                "18",
                "Local ACK time-out n, 1 to 31: 4.096 us * 2^n.",
            ),
            key(
                "path_mtu",
                "number",
                "1024",
                "256, 512, 1024, 2048 or 4096 octets.",
            ),
        ],
    },
];
