//! Compares attributes of random octets with what tshark decodes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, process};

use ib_mad::attr::{Attribute, BadMKey, FieldValue, NodeInfo, Notice, PortInfo, SwitchInfo};
use ib_mad::mad::{Lid, MKey, Method, Status, Tid};
use ib_mad::smp::{Path, Route, Smp};

mod codec_common;
use codec_common::{Random, need_tool};

/// Number of packets of each kind.
const PACKETS: usize = 100;

/// Makes a pcap file of raw IP packets: SMPs in RoCEv2. tshark decodes the MAD if the destination
/// QP is 0.
fn pcap(smps: &[Smp]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 101] {
        out.extend(word.to_le_bytes());
    }
    for smp in smps {
        let udp = 8 + 12 + 8 + smp.octets().len() as u16 + 4;
        let mut packet = vec![0x45, 0];
        packet.extend((20 + udp).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 2]);
        for half in [4791, 4791, udp, 0] {
            packet.extend(half.to_be_bytes());
        }
        // BTH: UD SEND only, default P_Key, destination QP 0, PSN 0. DETH: Q_Key 0, source QP 0.
        packet.extend([0x64, 0, 0xff, 0xff]);
        packet.extend([0; 16]);
        packet.extend(smp.octets());
        packet.extend([0; 4]);
        for word in [0, 0, packet.len() as u32, packet.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(packet);
    }
    out
}

/// Returns the names of tshark's fields that begin with `prefix`.
fn known(prefix: &str) -> BTreeSet<String> {
    let output = Command::new("tshark")
        .args(["-G", "fields"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let names: BTreeSet<String> = text
        .lines()
        .filter(|line| line.starts_with("F\t"))
        .filter_map(|line| line.split('\t').nth(2))
        .map(str::to_owned)
        .collect();
    assert!(
        names.contains("infiniband.mad.method"),
        "tshark -G fields has no InfiniBand"
    );
    names
        .into_iter()
        .filter(|name| name.starts_with(prefix))
        .collect()
}

/// Returns the texts of tshark's fields, for each packet and each of `names`.
fn decode(test: &str, smps: &[Smp], names: &[String]) -> Vec<Vec<Vec<String>>> {
    let path: PathBuf = env::temp_dir().join(format!("ib-mad-{test}-{}.pcap", process::id()));
    fs::write(&path, pcap(smps)).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args([
        "-T",
        "fields",
        "-E",
        "separator=/t",
        "-E",
        "occurrence=a",
        "-E",
        "aggregator=,",
    ]);
    for name in names {
        command.args(["-e", name]);
    }
    let output = command.output().unwrap();
    fs::remove_file(&path).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<Vec<String>>> = text
        .lines()
        .map(|line| {
            line.split('\t')
                .map(|cell| cell.split(',').map(str::to_owned).collect())
                .collect()
        })
        .collect();
    assert_eq!(rows.len(), smps.len(), "packets that tshark saw");
    rows
}

fn number(text: &str) -> u64 {
    let hex = text.strip_prefix("0x");
    hex.map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16))
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Makes responses with `data`, alternately LID-routed and directed.
fn responses<A: Attribute>(method: Method, data: impl Iterator<Item = [u8; 64]>) -> Vec<Smp> {
    let routes = [
        Route::Lid(Lid(2)),
        Route::Directed(Path::new(vec![1]).unwrap()),
    ];
    data.zip(routes.iter().cycle())
        .map(|(data, route)| {
            let mut smp = Smp::request(method, A::ID, 0, route);
            smp.encode(&A::from_data(data));
            smp
        })
        .collect()
}

/// Converts a field's name to tshark's, under `prefix`.
fn theirs(prefix: &str, field: &str) -> String {
    match field {
        "GidPrefix" => format!("{prefix}guid"),
        "EnhancedPort0" => format!("{prefix}enhancedportzero"),
        other => format!("{prefix}{}", other.replace('/', "").to_lowercase()),
    }
}

/// Asserts that every field known to both is equal, and that `only_ours` are all those unknown to
/// tshark.
fn compare(
    test: &str,
    prefix: &str,
    smps: &[Smp],
    fields: impl Fn(&Smp) -> Vec<FieldValue>,
    only_ours: &[&str],
) {
    let known = known(prefix);
    let (both, alone): (Vec<&str>, Vec<&str>) = fields(&smps[0])
        .iter()
        .map(|field| field.name)
        .partition(|name| known.contains(&theirs(prefix, name)));
    assert_eq!(alone, only_ours, "{test}: fields that tshark does not know");
    let names: Vec<String> = both.iter().map(|name| theirs(prefix, name)).collect();
    for (smp, row) in smps.iter().zip(decode(test, smps, &names)) {
        let ours: BTreeMap<&str, u64> = fields(smp)
            .into_iter()
            .map(|field| (field.name, field.value))
            .collect();
        for (name, cell) in both.iter().zip(row) {
            let values: Vec<u64> = cell.iter().map(|text| number(text)).collect();
            assert_eq!(
                values,
                [ours[name]],
                "{test}: {name} of {:02x?}",
                smp.data()
            );
        }
    }
}

fn table<A: Attribute>(
    test: &str,
    prefix: &str,
    fields: fn(&A) -> Vec<FieldValue>,
    only_ours: &[&str],
) {
    if !need_tool(test, "tshark") {
        return;
    }
    let mut random = Random(0x1d);
    let smps = responses::<A>(
        Method::GET_RESP,
        std::iter::repeat_with(|| random.octets()).take(PACKETS),
    );
    compare(
        test,
        prefix,
        &smps,
        |smp| fields(&smp.decode::<A>().unwrap()),
        only_ours,
    );
}

#[test]
fn tshark_node_info() {
    table::<NodeInfo>(
        "tshark_node_info",
        "infiniband.nodeinfo.",
        |info| info.fields().collect(),
        &[],
    );
}

#[test]
fn tshark_switch_info() {
    let alone = ["MulticastFDBTop"];
    table::<SwitchInfo>(
        "tshark_switch_info",
        "infiniband.switchinfo.",
        |info| info.fields().collect(),
        &alone,
    );
}

#[test]
fn tshark_port_info() {
    let alone = [
        "MulticastPKeyTrapSuppressionEnabled",
        "LinkSpeedExtActive2",
        "LinkSpeedExtSupported2",
        "LinkSpeedExtEnabled2",
        "CapabilityMask2",
        "LinkSpeedExtActive",
        "LinkSpeedExtSupported",
        "LinkSpeedExtEnabled",
    ];
    table::<PortInfo>(
        "tshark_port_info",
        "infiniband.portinfo.",
        |info| info.fields().collect(),
        &alone,
    );
}

#[test]
fn tshark_notice() {
    if !need_tool("tshark_notice", "tshark") {
        return;
    }
    let mut random = Random(0x2);
    let smps = responses::<Notice>(
        Method::TRAP,
        std::iter::repeat_with(|| random.octets()).take(PACKETS),
    );
    compare(
        "notice",
        "infiniband.notice.",
        &smps,
        |smp| smp.decode::<Notice>().unwrap().fields().collect(),
        &[],
    );
    let names = ["infiniband.notice.datadetails".to_owned()];
    for (smp, row) in smps.iter().zip(decode("notice_details", &smps, &names)) {
        assert_eq!(
            row[0],
            [hex(smp.decode::<Notice>().unwrap().data_details())]
        );
    }
}

#[test]
fn tshark_bad_m_key() {
    if !need_tool("tshark_bad_m_key", "tshark") {
        return;
    }
    let mut random = Random(0x100);
    let data = std::iter::repeat_with(|| {
        let mut notice = Notice::from_data(random.octets());
        notice.set_is_generic(true).unwrap();
        notice
            .set_trap_number_or_device_id(BadMKey::TRAP_NUMBER)
            .unwrap();
        *notice.data()
    });
    let smps = responses::<Notice>(Method::TRAP, data.take(PACKETS));
    let details = |smp: &Smp| smp.decode::<Notice>().unwrap().bad_m_key().unwrap();
    compare(
        "bad_m_key",
        "infiniband.trap.",
        &smps,
        |smp| details(smp).fields().collect(),
        &[],
    );
    let names = ["infiniband.trap.drnoticereturnpath".to_owned()];
    for (smp, row) in smps.iter().zip(decode("bad_m_key_path", &smps, &names)) {
        assert_eq!(row[0], [hex(&details(smp).octets()[24..])]);
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[test]
fn tshark_headers() {
    if !need_tool("tshark_headers", "tshark") {
        return;
    }
    // Not smpdirected.d: tshark 4.0.17 declares it 64 bits wide with the mask 0x8000, and shows 0
    // for a status of 0x8000 (direction bit set, as smpquery prints it). mad.status has the same 16
    // bits.
    let names = [
        "mad.method",
        "mad.status",
        "mad.transactionid",
        "mad.attributeid",
        "mad.attributemodifier",
        "mad.mgmtclass",
        "smpdirected.hoppointer",
        "smpdirected.hopcount",
        "smpdirected.drslid",
        "smpdirected.drdlid",
        "smpdirected.initialpath",
        "smpdirected.returnpath",
    ]
    .map(|name| format!("infiniband.{name}"));
    let mut random = Random(0x81);
    let smps: Vec<Smp> = (0..PACKETS)
        .map(|hops| {
            let ports = random.octets::<63>()[..hops % 64].to_vec();
            let [method, attribute, pointer] = random.octets();
            let mut smp = Smp::request(
                Method(method),
                ib_mad::mad::AttributeId(attribute.into()),
                random.next() as u32,
                &Route::Directed(Path::new(ports).unwrap()),
            );
            smp.set_tid(Tid(random.next()));
            smp.set_m_key(MKey(random.next()));
            smp.set_status(Status::from_bits(random.next() as u16));
            smp.set_returning(hops % 2 == 0);
            smp.octets_mut()[6] = pointer;
            smp.octets_mut()[32..36].copy_from_slice(&random.octets::<4>());
            *smp.return_path_mut() = random.octets();
            smp
        })
        .collect();
    for (smp, row) in smps.iter().zip(decode("headers", &smps, &names)) {
        let direction = if smp.is_returning() { 0x8000 } else { 0 };
        let ours = [
            smp.method().0.into(),
            u64::from(smp.status().bits() | direction),
            smp.tid().0,
            smp.attribute().0.into(),
            smp.modifier().into(),
            0x81,
            smp.hops().0.into(),
            smp.hops().1.into(),
            smp.dr_slid().0.into(),
            smp.dr_dlid().0.into(),
        ];
        let theirs: Vec<u64> = row[..10].iter().map(|cell| number(&cell[0])).collect();
        assert_eq!(theirs, ours);
        assert_eq!(
            (&row[10][0], &row[11][0]),
            (&hex(smp.initial_path()), &hex(smp.return_path()))
        );
    }
    let smps: Vec<Smp> = smps
        .into_iter()
        .filter(|smp| smp.attribute().name().is_none())
        .collect();
    assert!(smps.len() > PACKETS / 2);
    for (smp, row) in smps.iter().zip(decode(
        "m_key",
        &smps,
        &["infiniband.smplid.mkey".to_owned()],
    )) {
        assert_eq!(number(&row[0][0]), smp.m_key().0);
    }
}
