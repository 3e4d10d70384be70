//! The faults of the simulated switch, by name.

use std::fmt;
use std::num::{NonZeroU16, NonZeroU64};
use std::time::Duration;

use ib_mad::catalogue::{Kind, MILLISECONDS};
use pfc_ebpf::units::{Dscp, Nanos, Priority};

/// Number of events of which a fault hits one.
pub type OneIn = NonZeroU64;

/// Frames that a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every frame.
    All,
    /// Frames of lossless priorities.
    Lossless,
    /// Frames of lossy priorities.
    Lossy,
    /// Frames of one priority.
    Priority(Priority),
}

/// A share of the line rate, 1 to 99.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(u8);

impl Percent {
    /// 1 to 99.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Percentage by which a time grows, 1 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PercentLonger(u16);

impl PercentLonger {
    /// Returns `time`, longer by this percentage.
    pub const fn prolong(self, time: Nanos) -> Nanos {
        time + time * self.0 as Nanos / 100
    }
}

const FRAMES: Kind<OneIn> = Kind::number("N", "a number of frames above 0");
const OCTETS: Kind<NonZeroU64> = Kind::number("OCTETS", "a number of octets above 0");
const LOSSES: Kind<(Scope, OneIn)> = Kind {
    shape: "WHICH[:N]",
    expected: "all, lossless, lossy or a priority, and :N for one in N frames",
    read: |text| {
        let (which, n) = text.split_once(':').unwrap_or((text, "100"));
        Some((Scope::read(which)?, n.parse().ok()?))
    },
    write: |(scope, n)| format!("{scope}:{n}"),
};
const LONGER: Kind<PercentLonger> = Kind {
    shape: "PERCENT",
    expected: "1 to 1000 percent",
    read: |text| {
        let percent = text.parse().ok()?;
        (1..=1000)
            .contains(&percent)
            .then_some(PercentLonger(percent))
    },
    write: |longer| longer.0.to_string(),
};
const QUANTA: Kind<NonZeroU16> = Kind::number("QUANTA", "a pause time of 1 to 65535 quanta");
const PERCENT: Kind<Percent> = Kind {
    shape: "PERCENT",
    expected: "a share of 1 to 99 percent",
    read: |text| {
        let percent = text.parse().ok()?;
        (1..100).contains(&percent).then_some(Percent(percent))
    },
    write: |share| share.0.to_string(),
};

const CODE_POINT: Kind<Dscp> = Kind {
    shape: "DSCP",
    expected: "a DSCP of 0 to 63",
    read: |text| Dscp::new(text.parse().ok()?).ok(),
    write: Dscp::to_string,
};

ib_mad::faults! {
    /// A way in which the simulated switch departs from the standard.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Fault of "switch" under "Faults, each with the check that it makes fail, if any:" {
        IgnoresPfc
            "ignores-pfc": "sends on whatever PFC says" => "paused";
        IgnoresRefresh
            "ignores-refresh": "takes no XOFF for a priority that is paused already" => "paused";
        OffByOneClass
            "off-by-one-class": "pauses priority n + 1 when PFC names n" => "paused";
        Leaks(n: OneIn, FRAMES, "100")
            "leaks": "sends one frame for every N (100) that arrive for a paused priority"
                => "paused";
        LeaksForLong(octets: NonZeroU64, OCTETS, "1400")
            "leaks-for-long": "sends one frame for every one of more than so many (1400) octets \
             without FCS that arrives for a paused priority"
                => "paused";
        PfcPausesAll
            "pfc-pauses-all": "pauses all priorities when PFC names any" => "background";
        PausesOtherLossless
            "pauses-other-lossless": "pauses all lossless priorities when PFC names one"
                => "isolation";
        LossyObeysPfc
            "lossy-obeys-pfc": "obeys PFC for lossy priorities" => "test-traffic";
        ObeysPause
            "obeys-pause": "obeys 802.3x PAUSE" => "no-loss";
        LossyObeysFirst(stop: Duration, MILLISECONDS, "30")
            "lossy-obeys-first": "stops lossy priorities for so much (30) at the first PFC in 80 \
             ms"
                => "no-delay";
        ThrottlesLossyInStorm(share: Percent, PERCENT, "80")
            "throttles-lossy-in-storm": "sends lossy frames at so much (80) of half the line rate \
             while PFC pauses anything"
                => "no-dip";
        DelaysLossyInStorm(delay: Duration, MILLISECONDS, "5")
            "delays-lossy-in-storm": "keeps lossy frames for so much (5) while PFC pauses anything"
                => "no-delay";
        DelaysLossyAfterXon(delay: Duration, MILLISECONDS, "20")
            "delays-lossy-after-xon": "keeps lossy frames for so much (20) in the 20 ms after an \
             XON for a lossless priority"
                => "no-delay";
        NeverResumes
            "never-resumes": "lets no pause run out; only XON ends it" => "delivered";
        AddsUpPauses
            "adds-up-pauses": "adds the time of an XOFF to the pause that is left" => "lets-go";
        PausesLonger(percent: PercentLonger, LONGER, "100")
            "pauses-longer": "pauses for so much (100) percent longer" => "lets-go";
        ResumesEarly(percent: Percent, PERCENT, "50")
            "resumes-early": "pauses for so much (50) percent less" => "response";
        CapsQuanta(most: NonZeroU16, QUANTA, "32767")
            "caps-quanta": "pauses for so many (32767) quanta at most" => "response";
        SwapsQuanta
            "swaps-quanta": "reads the octets of a time in the wrong order" => "response";
        ReadsFirstTime
            "reads-first-time": "takes the time of class 0 for that of every class" => "response";
        ReadsNextTime
            "reads-next-time": "takes the time of class n + 1 for that of class n" => "response";
        IgnoresVector
            "ignores-vector": "obeys every time above 0, be its class named or not" => "isolation";
        ZeroVectorNamesAll
            "zero-vector-names-all": "takes a vector of 0 for one that names all classes"
                => "ignored";
        ReadsHighVector
            "reads-high-vector": "takes the reserved octet of the vector for the classes"
                => "paused";
        ReversesVector
            "reverses-vector": "takes bit 7 - n of the vector for class n" => "paused";
        AnyOpcode
            "any-opcode": "takes MAC control frames of every opcode but that of PAUSE for PFC"
                => "ignored";
        AnyDestination
            "any-destination": "obeys PFC to any destination" => "ignored";
        NeighbourDestination
            "neighbour-destination": "obeys PFC to every address from 01-80-C2-00-00-00 to -FF"
                => "ignored";
        HalfEthertype
            "half-ethertype": "takes every frame of an EtherType 0x88xx for MAC control"
                => "ignored";
        WantsZeroes
            "wants-zeroes": "obeys no PFC with a reserved octet that is not 0" => "still-pauses";
        WantsSource
            "wants-source": "obeys no PFC from 00-00-00-00-00-00" => "pauses";
        DiesOfOddFrame
            "dies-of-odd-frame": "obeys PFC no more after a MAC control frame that it cannot read"
                => "alive";
        LossyObeysBeside
            "lossy-obeys-beside": "obeys PFC for lossy priorities that are named beside a lossless \
             one"
                => "response";
        SharesTimer
            "shares-timer": "has one timer for all priorities that are paused" => "response";
        KeepsLonger
            "keeps-longer": "keeps the rest of a pause that is longer than a new one" => "response";
        MissesFirst
            "misses-first": "does not obey a PFC frame before which 20 ms passed without one"
                => "response";
        SlowWhenFull(delay: Duration, MILLISECONDS, "5")
            "slow-when-full": "acts on PFC so much (5) later while the link is full" => "response";
        IgnoresXon
            "ignores-xon": "goes on pausing after XON" => "xon";
        XonLetsGo(n: OneIn, FRAMES, "1")
            "xon-lets-go": "lets N (1) frames go after XON, and goes on pausing" => "xon";
        XonEndsAll
            "xon-ends-all": "ends the pauses of all priorities when an XON names any"
                => "response";
        ZeroPausesIdle
            "zero-pauses-idle": "takes a time of 0 for the longest where no XOFF is in force"
                => "resumes";
        SlowAgain(share: Percent, PERCENT, "20")
            "slow-again": "sends a lossless priority at so much (20) of the line rate for 20 ms \
             after its pause"
                => "response";
        SlowResponse(delay: Duration, MILLISECONDS, "5")
            "slow-response": "acts on PFC so much (5) later" => "response";
        SlowAtTimes(n: OneIn, FRAMES, "40")
            "slow-at-times": "acts 5 ms later on one PFC frame in N (40)" => "response";
        LosesHeld(n: OneIn, FRAMES, "10")
            "loses-held": "loses one in N (10) of the frames that a pause holds back"
                => "delivered";
        LosesShort(octets: NonZeroU64, OCTETS, "125")
            "loses-short": "loses the frames of fewer than so many (125) octets without FCS that a \
             pause holds back"
                => "delivered";
        DiesAfterPause
            "dies-after-pause": "forwards nothing more of a priority after a pause of 100 ms or \
             more"
                => "resume";
        NoUpstreamPfc
            "no-upstream-pfc": "sends no XOFF and overflows" => "delivered";
        AsksFirstPort
            "asks-first-port": "sends XOFF only by the port that was the first to fill its buffer"
                => "asks-each";
        AsksAllPorts
            "asks-all-ports": "sends XOFF by every port when one has filled its buffer"
                => "asks-no-other";
        Floods
            "floods": "sends every frame by all ports but the one at which it came in"
                => "no-reflection";
        PausesAllPorts(most: NonZeroU16, QUANTA, "65535")
            "pauses-all-ports": "PFC at one port pauses all ports, the others for so many (65535) \
             quanta at most"
                => "victim";
        NeverReleasesUpstream
            "never-releases-upstream": "sends no XON, and repeats its XOFF for ever" => "resume";
        AsksEarly(octets: NonZeroU64, OCTETS, "512")
            "asks-early": "sends XOFF for a priority that holds more than so many (512) octets, \
             whatever its threshold"
                => "silent";
        AsksLate(n: OneIn, FRAMES, "100")
            "asks-late": "sends XOFF for a priority only after it has lost N (100) of its frames"
                => "in-time";
        PfcFromGroup
            "pfc-from-group": "sends PFC from a group address" => "well-formed";
        PfcReservedVector
            "pfc-reserved-vector": "sends the classes in both octets of the vector"
                => "well-formed";
        PfcUncleanPadding
            "pfc-unclean-padding": "sends what an earlier frame left behind the times of PFC"
                => "well-formed";
        PfcLong
            "pfc-long": "pads PFC to 64 octets before the FCS" => "well-formed";
        PfcTagged
            "pfc-tagged": "sends PFC with a VLAN tag" => "well-formed";
        PfcToBridges
            "pfc-to-bridges": "sends PFC to 01-80-C2-00-00-00" => "well-formed";
        XoffLosslessInLossyStorm
            "xoff-lossless-in-lossy-storm": "sends XOFF for its lossless priorities while PFC names \
             a lossy one"
                => "background";
        XoffOtherLossless
            "xoff-other-lossless": "sends XOFF for the lossless priorities that PFC does not name \
             while it names one"
                => "isolation";
        XoffForLossy(quanta: NonZeroU16, QUANTA, "16")
            "xoff-for-lossy": "sends an XOFF of so many (16) quanta for one in 1000 frames of lossy \
             priorities"
                => "no-pfc-on-lossy";
        SendsPause
            "sends-pause": "sends a 802.3x PAUSE frame for one in 1000 frames of lossy priorities"
                => "no-pause";
        Drops(losses: (Scope, OneIn), LOSSES, "all")
            "drops": "drops one in N (100) frames; WHICH: all, lossless, lossy or a priority"
                => "delivered";
        DropsLossyInStorm(n: OneIn, FRAMES, "100")
            "drops-lossy-in-storm": "drops one in N (100) lossy frames while PFC pauses anything"
                => "background";
        Throttles(share: Percent, PERCENT, "90")
            "throttles": "sends at so much (90) of the line rate" => "throughput";
        Dips
            "dips": "sends no data for 20 ms in every 250 ms" => "no-dip";
        Duplicates(n: OneIn, FRAMES, "1000")
            "duplicates": "sends one frame in N (1000) twice" => "no-duplicate";
        DuplicatesLate(n: OneIn, FRAMES, "1000")
            "duplicates-late": "sends one frame in N (1000) again after 100 ms"
                => "no-duplicate";
        Reorders(n: OneIn, FRAMES, "1000")
            "reorders": "swaps one frame in N (1000) with the next of its flow" => "no-reorder";
        Corrupts(n: OneIn, FRAMES, "1000")
            "corrupts": "flips a bit in the payload of one frame in N (1000)" => "no-corruption";
        SwapsWords(n: OneIn, FRAMES, "1000")
            "swaps-words": "swaps two 16-bit words in the payload of one frame in N (1000), so \
             that no checksum shows it"
                => "no-corruption";
        ZeroesTail(n: OneIn, FRAMES, "1000")
            "zeroes-tail": "zeroes the last 64 octets of one frame in N (1000), and sets its UDP \
             checksum right"
                => "no-corruption";
        ChangesPort(n: OneIn, FRAMES, "1000")
            "changes-port": "flips a bit of the UDP destination port of one frame in N (1000)"
                => "no-corruption";
        Appends(n: OneIn, FRAMES, "1000")
            "appends": "appends four octets to one frame in N (1000)" => "no-resize";
        Cuts(n: OneIn, FRAMES, "1000")
            "cuts": "cuts the last four octets off one frame in N (1000)" => "no-resize";
        Remarks(n: OneIn, FRAMES, "1000")
            "remarks": "changes the DSCP (or PCP) of one frame in N (1000)" => "no-remark";
        ForwardsControl
            "forwards-control": "forwards PAUSE and PFC frames" => "no-mac-control-forwarded";
        ReflectsControl
            "reflects-control": "sends PAUSE and PFC frames back by the port at which they came in"
                => "no-mac-control-forwarded";
        Reflects(n: OneIn, FRAMES, "1000")
            "reflects": "sends a copy of one frame in N (1000) back by the port at which it came in"
                => "no-reflection";
        MapsOwnDscpAlone
            "maps-own-dscp-alone": "has only the DSCP that is the priority's number in the map; \
             others have priority 0"
                => "paused";
        MapsLowDscpsAlone
            "maps-low-dscps-alone": "has only DSCPs below 32 in the map; others have priority 0"
                => "paused";
        MapsLowBits
            "maps-low-bits": "takes the low three bits of the DSCP for the priority, whatever the \
             map says"
                => "paused";
        MisplacesDscp(dscp: Dscp, CODE_POINT, "46")
            "misplaces-dscp": "takes frames of a DSCP (46) for those of the lowest lossless \
             priority, and those of a lossless one for the lowest lossy"
                => "map";
        TrustsDscp
            "trusts-dscp": "tells priorities by the DSCP, also where it should by the PCP"
                => "paused";
        TrustsPcp
            "trusts-pcp": "tells priorities by the PCP, also where it should by the DSCP"
                => "paused";
    }
}

impl Scope {
    fn read(text: &str) -> Option<Self> {
        Some(match text {
            "all" => Self::All,
            "lossless" => Self::Lossless,
            "lossy" => Self::Lossy,
            priority => Self::Priority(Priority::new(priority.parse().ok()?).ok()?),
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Lossless => f.write_str("lossless"),
            Self::Lossy => f.write_str("lossy"),
            Self::Priority(priority) => priority.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let one_in = |n| OneIn::new(n).unwrap();
        assert_eq!("leaks=7".parse(), Ok(Fault::Leaks(one_in(7))));
        assert_eq!(
            "slow-response=20".parse(),
            Ok(Fault::SlowResponse(Duration::from_millis(20)))
        );
        assert_eq!(
            "drops=lossless:50".parse(),
            Ok(Fault::Drops((Scope::Lossless, one_in(50))))
        );
        assert_eq!(
            "drops=3".parse(),
            Ok(Fault::Drops((
                Scope::Priority(Priority::new(3).unwrap()),
                one_in(100)
            )))
        );
        assert_eq!("throttles=50".parse(), Ok(Fault::Throttles(Percent(50))));
        let longer = Fault::PausesLonger(PercentLonger(10));
        assert_eq!("pauses-longer=10".parse(), Ok(longer));
    }

    #[test]
    fn wrong_values_are_refused_with_what_was_expected() {
        for (text, message) in [
            (
                "dropz",
                "no fault is called \"dropz\": see `validator dut switch --help` for all of them",
            ),
            (
                "leaks=0",
                "leaks takes a number of frames above 0, found \"0\"",
            ),
            ("ignores-pfc=1", "ignores-pfc takes no value, found \"1\""),
            (
                "drops=8",
                "drops takes all, lossless, lossy or a priority, and :N for one in N frames, found \
                 \"8\"",
            ),
            (
                "throttles=100",
                "throttles takes a share of 1 to 99 percent, found \"100\"",
            ),
            (
                "pauses-longer=0",
                "pauses-longer takes 1 to 1000 percent, found \"0\"",
            ),
            (
                "slow-response=5ms",
                "slow-response takes a number of milliseconds, found \"5ms\"",
            ),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), message);
        }
    }
}
