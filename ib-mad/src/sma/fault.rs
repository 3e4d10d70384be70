//! The faults of the simulated agent, by name.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::catalogue::{Kind, MILLISECONDS};
use crate::mad::AttributeId;

/// Attributes that an agent can be silent about, by name; `None` stands for all.
const ATTRIBUTES: [(&str, Option<AttributeId>); 5] = [
    ("everything", None),
    ("node-info", Some(AttributeId::NODE_INFO)),
    ("switch-info", Some(AttributeId::SWITCH_INFO)),
    ("port-info", Some(AttributeId::PORT_INFO)),
    (
        "linear-forwarding-table",
        Some(AttributeId::LINEAR_FORWARDING_TABLE),
    ),
];

/// Parts of an answer's header that an agent can spoil, by name.
const PARTS: [(&str, Part); 11] = [
    ("base-version", Part::BaseVersion),
    ("class", Part::Class),
    ("class-version", Part::ClassVersion),
    ("method", Part::Method),
    ("attribute", Part::Attribute),
    ("direction", Part::Direction),
    ("tid", Part::Tid),
    ("tid-zero", Part::TidZero),
    ("tid-swapped", Part::TidSwapped),
    ("modifier", Part::Modifier),
    ("path", Part::Path),
];

/// A part of an answer's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Base version.
    BaseVersion,
    /// Management class: that of the other routing.
    Class,
    /// Class version.
    ClassVersion,
    /// Method: another that has the response bit.
    Method,
    /// Attribute id.
    Attribute,
    /// D bit of a directed route.
    Direction,
    /// One bit of the upper half of the TID.
    Tid,
    /// Upper half of the TID: 0.
    TidZero,
    /// Upper half of the TID: its octets in the reverse order.
    TidSwapped,
    /// Attribute modifier of PortInfo.
    Modifier,
    /// Initial path of a directed route.
    Path,
}

/// Components of PortInfo that an agent can change when the M_Key is set, by name.
const COMPONENTS: [(&str, Component); 6] = [
    ("lid", Component::Lid),
    ("sm-lid", Component::MasterSmLid),
    ("lmc", Component::Lmc),
    ("sm-sl", Component::MasterSmSl),
    ("capability-mask", Component::CapabilityMask),
    ("gid-prefix", Component::GidPrefix),
];

/// A component of PortInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// LID.
    Lid,
    /// MasterSMLID.
    MasterSmLid,
    /// LMC.
    Lmc,
    /// MasterSMSL.
    MasterSmSl,
    /// CapabilityMask.
    CapabilityMask,
    /// GidPrefix.
    GidPrefix,
}

const CODE: Kind<u8> = Kind {
    read: |text| text.parse().ok().filter(|code| *code < 8),
    ..Kind::number("N", "a status code of 0 to 7")
};
const RESP_TIME_VALUE: Kind<u8> = Kind {
    read: |text| text.parse().ok().filter(|value| *value < 32),
    ..Kind::number("N", "a RespTimeValue of 0 to 31")
};
const BLOCK: Kind<u16> = Kind {
    read: |text| text.parse().ok().filter(|block| *block < 768),
    ..Kind::number("N", "a block of 0 to 767")
};
const BIT: Kind<u32> = Kind {
    read: |text| text.parse().ok().filter(|bit| *bit < 64),
    ..Kind::number("N", "a bit of 0 to 63")
};
const ATTRIBUTE: Kind<Option<AttributeId>> = Kind {
    shape: "ATTRIBUTE",
    expected: "everything, node-info, switch-info, port-info or linear-forwarding-table",
    read: |text| named(&ATTRIBUTES, text),
    write: |about| name_of(&ATTRIBUTES, about),
};
const PART: Kind<Part> = Kind {
    shape: "PART",
    expected: "base-version, class, class-version, method, attribute, direction, tid, tid-zero, \
               tid-swapped, modifier or path",
    read: |text| named(&PARTS, text),
    write: |part| name_of(&PARTS, part),
};
const COMPONENT: Kind<Component> = Kind {
    shape: "COMPONENT",
    expected: "lid, sm-lid, lmc, sm-sl, capability-mask or gid-prefix",
    read: |text| named(&COMPONENTS, text),
    write: |component| name_of(&COMPONENTS, component),
};

/// The value of that name.
fn named<T: Copy>(all: &[(&str, T)], text: &str) -> Option<T> {
    let known = all.iter().find(|(name, _)| *name == text);
    known.map(|(_, value)| *value)
}

/// The name of that value.
fn name_of<T: PartialEq>(all: &[(&str, T)], value: &T) -> String {
    let known = all.iter().find(|(_, known)| known == value);
    known.map_or("", |(name, _)| name).into()
}

const REQUESTS: Kind<u64> = Kind::number("N", "a number of requests");
const EVERY: Kind<NonZeroU64> = Kind::number("N", "a number of requests above 0");

crate::faults! {
    /// A way in which a simulated agent departs from the specification.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Fault of "sma" under "Faults, each with what it makes fail:" {
        AnswersWrongKey
            "answers-wrong-key": "answers a Get with a wrong M_Key at protect bits 2 and 3, and \
             counts it"
                => "no-answer";
        AnswersWrongKeyLate(by: Duration, MILLISECONDS, "700")
            "answers-wrong-key-late": "answers a Get with a wrong M_Key at protect bits 2 and 3 so \
             much (700) after its time, and counts it"
                => "no-answer";
        ShowsKey
            "shows-key": "returns the M_Key to a Get with another at protect bits 1"
                => "other-key-value";
        HidesKey
            "hides-key": "returns M_Key 0 to a Get with another at protect bits 0"
                => "other-key-value";
        NoViolations
            "no-violations": "counts no M_Key violation" => "one-violation";
        CountsTwice
            "counts-twice": "counts every M_Key violation twice" => "one-violation";
        CountsGoodKey
            "counts-good-key": "counts a violation for every Get(PortInfo) with the right M_Key"
                => "no-violation, before-wrong-key";
        CountsOwnKey
            "counts-own-key": "counts the first Get(PortInfo) with the right M_Key at protect bits \
             2 and 3, and none with a wrong one"
                => "before-wrong-key";
        CountsEverySecond
            "counts-every-second": "counts every second M_Key violation" => "one-violation";
        CountsEveryThird
            "counts-every-third": "counts every third M_Key violation" => "one-violation";
        CountsBusy
            "counts-busy": "answers a Get with a wrong M_Key at protect bits 2 and 3 with BUSY, and \
             counts it"
                => "no-answer, one-violation";
        BusyWrongKey(first: u64, REQUESTS, "1")
            "busy-wrong-key": "answers the first N (1) Gets with a wrong M_Key at protect bits 2 \
             and 3 with BUSY"
                => "none: asked again";
        ShowsOneViolation
            "shows-one-violation": "shows M_KeyViolations 1 whatever has happened"
                => "before-wrong-key, reset";
        DropsProtection
            "drops-protection": "sets its protect bits to 0 after a violation"
                => "dut-key-value";
        ShowsOtherKey
            "shows-other-key": "shows another M_Key than its own, and that to its owner too, after \
             a violation"
                => "dut-key-value";
        KeyInHeader
            "key-in-header": "carries its M_Key in the header of traps, and of answers to another \
             M_Key at protect bits 1"
                => "header";
        KeyInNotice
            "key-in-notice": "names its own M_Key in the notice of trap 256, and not the wrong one"
                => "header";
        KeyInReserved
            "key-in-reserved": "carries its M_Key in reserved octets after the attribute, in traps \
             and in answers to another M_Key at protect bits 1"
                => "header";
        ComparesUpperHalf
            "compares-upper-half": "compares the upper half of an M_Key alone"
                => "other-key-value, no-answer, one-violation";
        ComparesLowerHalf
            "compares-lower-half": "compares the lower half of an M_Key alone"
                => "other-key-value, no-answer, one-violation";
        IgnoresKeyBit(bit: u32, BIT, "0")
            "ignores-key-bit": "compares all bits of an M_Key but bit N (0)"
                => "other-key-value, no-answer, one-violation";
        Changes(component: Component, COMPONENT, "lmc")
            "changes": "changes one COMPONENT with each Set(PortInfo): lid, sm-lid, lmc, sm-sl, \
             capability-mask or gid-prefix"
                => "nothing-else-changed";
        IgnoresKeySet
            "ignores-key-set": "answers a Set of the M_Key with status 0 and does not apply it"
                => "key-set, own-key-value";
        IgnoresProtectBits
            "ignores-protect-bits": "answers a Set of the protect bits with status 0 and does not \
             apply them"
                => "key-set";
        RefusesItsKey
            "refuses-its-key": "answers no Get(PortInfo) with the right M_Key at protect bits 2 \
             and 3"
                => "own-key-answered";
        RefusesOtherKey
            "refuses-other-key": "answers no Get(PortInfo) with a wrong M_Key at protect bits 0 \
             and 1"
                => "other-key-answered";
        ForgetsKey
            "forgets-key": "has no M_Key any more once a Get(PortInfo) has shown it"
                => "own-key-value";
        LocksOut
            "locks-out": "answers no Get(PortInfo) with the right M_Key at protect bits 2 and 3 \
             after a violation"
                => "dut-key-answered";
        KeepsKey
            "keeps-key": "answers a Set of M_Key 0 with status 0 and keeps the M_Key"
                => "reset, restored";
        KeepsViolations
            "keeps-violations": "clears no violations when they are set to 0"
                => "before-wrong-key, reset";
        OneKey
            "one-key": "takes the first M_Key that is set, and acknowledges others without \
             applying them"
                => "restored";
        RefusesLid0
            "refuses-lid-0": "does a Set(PortInfo) with LID or MasterSMLID 0, and answers it with \
             status code 7"
                => "none: inconclusive";
        LftStatus(code: u8, CODE, "0")
            "lft-status": "answers LinearForwardingTable with status code N (0)"
                => "set-status, get-status";
        LftGetStatus(code: u8, CODE, "0")
            "lft-get-status": "answers Get(LinearForwardingTable) with status code N (0)"
                => "get-status";
        LftSetStatus(code: u8, CODE, "0")
            "lft-set-status": "answers Set(LinearForwardingTable) with status code N (0)"
                => "set-status";
        LftOneBlock(block: u16, BLOCK, "500")
            "lft-one-block": "answers block N (500) of LinearForwardingTable with status 0"
                => "set-status, get-status";
        LftAttribute
            "lft-attribute": "answers LinearForwardingTable as RandomForwardingTable"
                => "set-attribute, get-attribute";
        LftModifier
            "lft-modifier": "answers LinearForwardingTable with the next modifier"
                => "set-modifier, get-modifier";
        LftData
            "lft-data": "answers Get(LinearForwardingTable) with data that is not 0" => "get-data";
        NoRandomFdb
            "no-random-fdb": "has RandomFDBCap 0" => "random-fdb-cap";
        PortInfoStatus(code: u8, CODE, "7")
            "port-info-status": "answers Get(PortInfo) with status code N (7)" => "status";
        RespTimeValue(value: u8, RESP_TIME_VALUE, "21")
            "resp-time-value": "has RespTimeValue N (21)" => "resp-time-value";
        Late(by: Duration, MILLISECONDS, "1000")
            "late": "answers so much (1000) too late, which is inconclusive up to the limits of \
             the checks"
                => "in-time, resp-time";
        Twice
            "twice": "answers twice" => "single-answer";
        OtherTid
            "other-tid": "answers with another TID" => "single-answer";
        Truncated
            "truncated": "answers with 200 octets" => "single-answer";
        Header(part: Part, PART, "class-version")
            "header": "answers with a header that is wrong in one PART: base-version, class, \
             class-version, method, attribute, direction, tid (a bit of the upper half), tid-zero, \
             tid-swapped (all of that half), modifier (of PortInfo) or path"
                => "header, single-answer, port-state";
        Silent(about: Option<AttributeId>, ATTRIBUTE, "everything")
            "silent": "never answers; ATTRIBUTE: everything, node-info, switch-info, port-info or \
             linear-forwarding-table"
                => "port-state, node-info, switch-info, set-answered, get-answered";
        Busy(first: u64, REQUESTS, "1")
            "busy": "answers the first N (1) requests with status BUSY" => "none: asked again";
        Drops(nth: NonZeroU64, EVERY, "10")
            "drops": "loses every Nth (10th) request" => "none: asked again";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        assert_eq!("lft-status=3".parse(), Ok(Fault::LftStatus(3)));
        assert_eq!("lft-one-block=767".parse(), Ok(Fault::LftOneBlock(767)));
        assert_eq!(
            "late=20".parse(),
            Ok(Fault::Late(Duration::from_millis(20)))
        );
        assert_eq!("busy=4".parse(), Ok(Fault::Busy(4)));
        assert_eq!(
            "drops=7".parse(),
            Ok(Fault::Drops(NonZeroU64::new(7).unwrap()))
        );
        for (name, attribute) in ATTRIBUTES {
            let fault = Fault::Silent(attribute);
            assert_eq!(format!("silent={name}").parse(), Ok(fault));
            assert_eq!(fault.to_string(), format!("silent={name}"));
        }
    }

    #[test]
    fn parts_of_a_header_and_components_of_portinfo_are_read() {
        let headers = PARTS.map(|(name, part)| (format!("header={name}"), Fault::Header(part)));
        let changes = COMPONENTS.map(|(name, of)| (format!("changes={name}"), Fault::Changes(of)));
        for (text, fault) in headers.into_iter().chain(changes) {
            assert_eq!(text.parse(), Ok(fault));
            assert_eq!(fault.to_string(), text);
        }
    }

    #[test]
    fn wrong_values_are_refused_with_what_was_expected() {
        for (text, message) in [
            (
                "silend",
                "no fault is called \"silend\": see `validator dut sma --help` for all of them",
            ),
            ("twice=2", "twice takes no value, found \"2\""),
            (
                "lft-status=8",
                "lft-status takes a status code of 0 to 7, found \"8\"",
            ),
            (
                "resp-time-value=32",
                "resp-time-value takes a RespTimeValue of 0 to 31, found \"32\"",
            ),
            (
                "lft-one-block=768",
                "lft-one-block takes a block of 0 to 767, found \"768\"",
            ),
            (
                "ignores-key-bit=64",
                "ignores-key-bit takes a bit of 0 to 63, found \"64\"",
            ),
            (
                "late=1s",
                "late takes a number of milliseconds, found \"1s\"",
            ),
            ("busy=-1", "busy takes a number of requests, found \"-1\""),
            (
                "drops=0",
                "drops takes a number of requests above 0, found \"0\"",
            ),
            (
                "header=status",
                "header takes base-version, class, class-version, method, attribute, direction, \
                 tid, tid-zero, tid-swapped, modifier or path, found \"status\"",
            ),
            (
                "changes=mtu",
                "changes takes lid, sm-lid, lmc, sm-sl, capability-mask or gid-prefix, found \
                 \"mtu\"",
            ),
            (
                "silent=notice",
                "silent takes everything, node-info, switch-info, port-info or \
                 linear-forwarding-table, found \"notice\"",
            ),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), message);
        }
    }
}
