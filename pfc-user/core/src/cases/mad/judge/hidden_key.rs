//! M_KEY_DUT in packets that a requester may see who did not send it.

use std::cmp::Reverse;

use ib_mad::attr::{Attribute, PortInfo};
use ib_mad::mad::{AttributeId, CLASS_SUBN_DIRECTED, Method};
use ib_mad::smp::{DATA as DATA_OCTETS, MAX_HOPS};

use super::decoded::{Asked, Stray, View};
use super::strays::{unseen, unseen_traps};
use crate::cases::finding::Finding;
use crate::evidence::mad::Purpose;
use crate::quantity::ms;
use crate::verdict::{Subject, Verdict};

/// Octets of a key.
const KEY: usize = 8;
/// The M_Key of the header, before which no octet is judged here.
const HEADER_KEY: usize = 24;
/// First octet of the data.
const DATA: usize = 64;
/// First octets of the initial and of the return path.
const PATHS: [usize; 2] = [128, 192];
/// Fewest octets of a key, neither 0 nor of a path, that identify it: with fewer, other values may
/// look like it.
const TELLING: usize = 3;

/// Records where M_KEY_DUT is shown to a requester who did not send it.
pub(super) fn judge(view: &View<'_>, finding: &mut Finding) {
    if view.protect_bits() == 0 {
        return;
    }
    // Before the first Set of it the DUT has another key, or none.
    let is_set = |asked: &&Asked| asked.purpose == Purpose::KeySet;
    let Some(set) = view.asked.iter().find(is_set).map(|asked| asked.sent) else {
        return;
    };
    for asked in view.asked.iter().filter(|asked| asked.sent > set) {
        if let Some((_, answer)) = &asked.answer {
            Shown::to(asked, answer.octets()).record(view, finding);
        }
    }
    for stray in view.strays.iter().filter(|stray| stray.at > set) {
        if let Some(shown) = Shown::by(view, stray) {
            shown.record(view, finding);
        }
    }
    if finding.verdict == Verdict::Pass
        && let Some(unseen) = unseen(view).or_else(|| unseen_traps(view))
    {
        finding.undecided("M_KEY_DUT in traps", "nowhere", unseen);
    }
}

/// A packet that the DUT sent, or may have sent.
struct Shown<'v> {
    octets: &'v [u8],
    /// The request that it answers.
    asked: Option<&'v Asked>,
    /// The packet, for people.
    what: String,
    subject: Subject,
    /// True if another node than the DUT may have sent the packet.
    is_uncertain: bool,
}

impl<'v> Shown<'v> {
    fn to(asked: &'v Asked, octets: &'v [u8]) -> Self {
        Self {
            octets,
            asked: Some(asked),
            what: format!("answer to {} without M_KEY_DUT", asked.name()),
            subject: asked.subject(),
            is_uncertain: false,
        }
    }

    /// Returns `None` for packets that are neither a trap nor a response, and for responses that
    /// are judged in another repetition.
    fn by(view: &'v View<'_>, stray: &'v Stray<'_>) -> Option<Self> {
        let method = Method(*stray.octets.get(3)?);
        let asked = match stray.of {
            _ if method == Method::TRAP => None,
            _ if !method.is_response() || stray.is_judged_elsewhere => return None,
            Some(of) => Some(&view.asked[of]),
            None if stray.of_earlier => None,
            // The packet came while the tester waited for the answer to that request.
            None => view.asked.iter().rfind(|asked| asked.sent <= stray.at),
        };
        let kind = match method {
            Method::TRAP => "trap",
            _ => "answer without M_KEY_DUT",
        };
        Some(Self {
            octets: stray.octets,
            asked,
            what: format!("{kind} at {}", ms(stray.at)),
            subject: Subject::Packet(stray.at),
            is_uncertain: stray.of_earlier && stray.of.is_none()
                || asked.is_some_and(|asked| asked.purpose == Purpose::TesterPort),
        })
    }

    fn record(self, view: &View<'_>, finding: &mut Finding) {
        let key = view.dut_key().0.to_be_bytes();
        // A path is none.
        let sent = |asked: &'v Asked| &asked.request.octets()[..PATHS[0]];
        let has_sent = |asked: &'v Asked| places(sent(asked), key).next().is_some();
        if self.asked.is_some_and(has_sent) || self.is_public() {
            return;
        }
        let found = view.port();
        let places = places(self.octets, key)
            .filter(|at| !self.is_judged(*at) && !self.was_there(found.as_ref(), *at))
            .map(|at| (at, self.telling(at)));
        // The first of the places with the most telling octets.
        let Some((at, telling)) = places.min_by_key(|(_, telling)| Reverse(*telling)) else {
            return;
        };
        let expected = "M_KEY_DUT nowhere";
        match telling {
            0 => {}
            1..TELLING => {
                let found = format!("in octet {at}; a key with fewer octets 0 would decide");
                finding.undecided(self.what, expected, found);
            }
            _ if self.is_uncertain => {
                let found = format!("in octet {at}; it may be no answer of the DUT");
                finding.undecided(self.what, expected, found);
            }
            _ => {
                let found = format!("in octet {at}");
                finding.expect_about([self.subject], self.what, expected, found, false);
            }
        }
    }

    /// True where the DUT was reset or restored, and its answer shows protect bits 0, at which
    /// anybody may read the key.
    fn is_public(&self) -> bool {
        use Purpose::{Reset, ResetShown, Restore, Restored};
        let ends = |asked: &Asked| [Reset, ResetShown, Restore, Restored].contains(&asked.purpose);
        let shows_key = |port: PortInfo| port.m_key_protect_bits() == 0;
        self.asked.is_some_and(ends) && self.port().is_some_and(shows_key)
    }

    /// The steps that read PortInfo:M_Key in the answer to M_KEY_OTHER judge it.
    fn is_judged(&self, at: usize) -> bool {
        let is_other = |asked: &Asked| asked.purpose == Purpose::OtherKey;
        at == DATA && self.asked.is_some_and(is_other) && self.port().is_some()
    }

    /// True where the same octets stood there before the DUT had the key.
    fn was_there(&self, found: Option<&PortInfo>, at: usize) -> bool {
        let there = |port: &PortInfo| {
            let before = port.data().get(at.checked_sub(DATA)?..)?.get(..KEY)?;
            Some(*before == self.octets[at..at + KEY])
        };
        self.port().is_some() && found.and_then(there).unwrap_or(false)
    }

    /// Octets of the key at `at` that are neither 0 nor a port of the path.
    fn telling(&self, at: usize) -> usize {
        let hops = match self.asked {
            Some(asked) => asked.request.path().map_or(0, |path| path.ports().len()),
            None if self.octets[1] == CLASS_SUBN_DIRECTED => usize::from(self.octets[7]),
            None => 0,
        };
        let hops = hops.min(MAX_HOPS);
        let is_path = |at: usize| {
            PATHS
                .iter()
                .any(|path| (path + 1..=path + hops).contains(&at))
        };
        let is_telling = |at: &usize| self.octets[*at] != 0 && !is_path(*at);
        (at..at + KEY).filter(is_telling).count()
    }

    /// The data of a packet that is about PortInfo.
    fn port(&self) -> Option<PortInfo> {
        let attribute = self.octets.get(16..18)?.try_into().ok()?;
        let data: [u8; DATA_OCTETS] = self.octets.get(DATA..DATA + DATA_OCTETS)?.try_into().ok()?;
        (AttributeId(u16::from_be_bytes(attribute)) == PortInfo::ID)
            .then(|| PortInfo::from_data(data))
    }
}

/// Each octet at which `key` begins, from the header's M_Key on.
fn places(octets: &[u8], key: [u8; KEY]) -> impl Iterator<Item = usize> {
    let windows = octets.windows(KEY).enumerate().skip(HEADER_KEY);
    windows
        .filter(move |(_, window)| *window == key)
        .map(|(at, _)| at)
}
