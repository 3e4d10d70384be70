//! Arguments of `validator dut sma`.

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;
use ib_mad::mad::{Lid, MKey};
use ib_mad::sma::fault::Fault;
use ib_mad::sma::{NodeConfig, NodeKind};

/// Name of the tester's node, for SIM_HOST.
pub const TESTER: &str = "Hca1";
/// LID of the tester's node, the destination of traps.
const TESTER_LID: Lid = Lid(1);
/// GUIDs, locally administered.
const TESTER_GUID: u64 = 0x0200_0000_0000_0100;
const DUT_GUID: u64 = 0x0200_0000_0000_0200;

/// A subnet management agent, simulated: port 1 of the tester's node Hca1 (LID 1) is linked with
/// port 1 of the node Dut. It speaks ibsim's protocol on abstract sockets, so that infiniband-diags
/// and opensm work with it under libumad2sim.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = Fault::help())]
pub struct SmaArgs {
    /// Name of the server, for IBSIM_SOCKNAME; unique within a network namespace.
    #[arg(long, value_name = "NAME")]
    pub(super) socket: String,
    /// Kind of the DUT.
    #[arg(long, value_enum, default_value_t)]
    node: Node,
    /// External ports of a switch.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 4,
        value_parser = RangedU64ValueParser::<u8>::new().range(1..=254)
    )]
    ports: u8,
    /// SwitchInfo:LinearFDBCap.
    #[arg(long, value_name = "ENTRIES", default_value_t = 0)]
    linear_fdb_cap: u16,
    /// SwitchInfo:RandomFDBCap.
    #[arg(long, value_name = "ENTRIES", default_value_t = 1024)]
    random_fdb_cap: u16,
    /// M_Key of the DUT from the start, such as 0x1122334455667788; 0 is none.
    #[arg(long, value_name = "KEY", default_value = "0", value_parser = m_key)]
    m_key: MKey,
    /// M_KeyProtectBits.
    #[arg(
        long,
        value_name = "0 to 3",
        default_value_t = 0,
        value_parser = RangedU64ValueParser::<u8>::new().range(0..=3)
    )]
    protect_bits: u8,
    /// M_KeyLeasePeriod; 0 means that the lease never ends.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    lease: u16,
    /// RespTimeValue: the DUT answers within 4.096 us * 2^n.
    #[arg(
        long,
        value_name = "n",
        default_value_t = 8,
        value_parser = RangedU64ValueParser::<u8>::new().range(0..=31)
    )]
    response_time_value: u8,
    /// SubnetTimeOut: 4.096 us * 2^n.
    #[arg(
        long,
        value_name = "n",
        default_value_t = 8,
        value_parser = RangedU64ValueParser::<u8>::new().range(0..=31)
    )]
    subnet_timeout: u8,
    /// State of the link.
    #[arg(long, value_enum, default_value_t)]
    port_state: State,
    /// LID of the DUT; 1 is the tester's.
    #[arg(
        long,
        value_name = "LID",
        default_value_t = 2,
        value_parser = RangedU64ValueParser::<u16>::new().range(2..=0xbfff)
    )]
    lid: u16,
    /// Inject a fault; may be given several times.
    #[arg(long = "fault", value_name = "NAME[=VALUE]")]
    pub(super) faults: Vec<Fault>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Node {
    /// Switch.
    #[default]
    Switch,
    /// Channel adapter with one port.
    Ca,
}

/// PortState, by number.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum State {
    /// No link: no answers.
    Down = 1,
    /// The link is up, and only SMPs pass.
    Initialized,
    /// Waits for the SM to make it active.
    Armed,
    /// All packets pass.
    #[default]
    Active,
}

impl SmaArgs {
    /// The tester's node and the DUT.
    pub(super) fn nodes(&self) -> [NodeConfig; 2] {
        let dut = NodeConfig {
            kind: match self.node {
                Node::Switch => NodeKind::Switch(self.ports),
                Node::Ca => NodeKind::ChannelAdapter,
            },
            description: "Dut".into(),
            guid: DUT_GUID,
            lid: Lid(self.lid),
            master_sm_lid: TESTER_LID,
            port_state: self.port_state as u8,
            linear_fdb_cap: self.linear_fdb_cap,
            random_fdb_cap: self.random_fdb_cap,
            m_key: self.m_key,
            m_key_protect_bits: self.protect_bits,
            m_key_lease_period: self.lease,
            response_time_value: self.response_time_value,
            subnet_timeout: self.subnet_timeout,
        };
        let tester = NodeConfig {
            kind: NodeKind::ChannelAdapter,
            description: TESTER.into(),
            guid: TESTER_GUID,
            lid: TESTER_LID,
            m_key: MKey(0),
            m_key_protect_bits: 0,
            m_key_lease_period: 0,
            ..dut.clone()
        };
        [tester, dut]
    }
}

fn m_key(text: &str) -> Result<MKey, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map(MKey).map_err(|_| {
        format!("expected a number of 64 bits such as 0x1122334455667788, found {text:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dut::parsed;

    fn options(line: &str) -> Result<SmaArgs, String> {
        parsed(line)
    }

    #[test]
    fn a_name_is_enough() {
        let args = options("sma --socket t1").unwrap();
        assert_eq!((args.socket.as_str(), &args.faults), ("t1", &Vec::new()));
        let [tester, dut] = args.nodes();
        assert_eq!(
            (dut.kind, dut.lid, dut.linear_fdb_cap, dut.random_fdb_cap),
            (NodeKind::Switch(4), Lid(2), 0, 1024)
        );
        assert_eq!(
            (
                dut.m_key,
                dut.response_time_value,
                dut.subnet_timeout,
                dut.port_state
            ),
            (MKey(0), 8, 8, 4)
        );
        assert_eq!(
            (tester.kind, tester.lid, tester.description.as_str()),
            (NodeKind::ChannelAdapter, Lid(1), "Hca1")
        );
        assert_eq!((tester.port_state, dut.master_sm_lid), (4, tester.lid));
    }

    #[test]
    fn everything_can_be_set() {
        let line = "sma --socket t --node ca --ports 9 --linear-fdb-cap 5 --random-fdb-cap 6 \
                    --m-key 0x1122334455667788 --protect-bits 2 --lease 7 --response-time-value 18 \
                    --subnet-timeout 19 --port-state armed --lid 300 --fault twice --fault busy=2";
        let args = options(line).unwrap();
        let [tester, dut] = args.nodes();
        let expected = NodeConfig {
            kind: NodeKind::ChannelAdapter,
            description: "Dut".into(),
            guid: DUT_GUID,
            lid: Lid(300),
            master_sm_lid: Lid(1),
            port_state: 3,
            linear_fdb_cap: 5,
            random_fdb_cap: 6,
            m_key: MKey(0x1122_3344_5566_7788),
            m_key_protect_bits: 2,
            m_key_lease_period: 7,
            response_time_value: 18,
            subnet_timeout: 19,
        };
        assert_eq!(dut, expected);
        assert_eq!(args.faults, [Fault::Twice, Fault::Busy(2)]);
        // Only the DUT has the key.
        assert_eq!(
            (
                tester.m_key,
                tester.m_key_protect_bits,
                tester.m_key_lease_period
            ),
            (MKey(0), 0, 0)
        );
        let args = options("sma --socket t --node switch --ports 9 --m-key 77").unwrap();
        assert_eq!(args.nodes()[1].kind, NodeKind::Switch(9));
    }

    #[test]
    fn wrong_values_say_what_was_expected() {
        for (line, message) in [
            ("sma", "--socket <NAME>"),
            (
                "sma --socket t --m-key 0xzz",
                "expected a number of 64 bits such as 0x1122334455667788, found \"0xzz\"",
            ),
            ("sma --socket t --protect-bits 4", "4 is not in 0..=3"),
            ("sma --socket t --ports 0", "0 is not in 1..=254"),
            ("sma --socket t --lid 1", "1 is not in 2..=49151"),
            (
                "sma --socket t --response-time-value 32",
                "32 is not in 0..=31",
            ),
            (
                "sma --socket t --port-state up",
                "[possible values: down, initialized, armed, active]",
            ),
            (
                "sma --socket t --fault nonsense",
                "no fault is called \"nonsense\"",
            ),
        ] {
            let error = options(line).unwrap_err();
            assert!(error.contains(message), "{line}: {error}");
        }
    }
}
