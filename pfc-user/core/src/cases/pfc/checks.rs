//! The checks of the PFC cases: rows of each case's table, said once.

use super::judge::preconditions::{
    ACCOUNTING, BASELINE, BASELINE_BESIDE, BASELINE_OF_BACKGROUND, BASELINE_OF_ISOLATION,
    BASELINE_OF_TEST, HONOURED, OWN_STORM, PFC_VISIBLE, PORTS, PORTS_OF_ARRIVALS, PROBE_LATENCY,
    RATE, RATE_BESIDE, RATE_IN_STORM, RATE_OF_BACKGROUND, RATE_OF_ISOLATION, RATE_OF_RESUME,
    RATE_OF_TEST, SENDERS_SEE_PFC, STORM_CONTINUITY, storm_holds_some, storm_names_none,
    storm_names_some,
};
use super::judge::probe::STORM_ARRIVAL;
use super::judge::{
    Pfc, asking, delivery, dip, generation, integrity, latency, lets_go, probe, throughput, victim,
};
use crate::cases::judge::{Judge, Row, Table, needs};

/// A table of rows. The test plan applies to every switch.
pub(super) const fn table(rows: &'static [Row<Pfc>]) -> Table<Pfc> {
    Table {
        rows,
        applies: None,
    }
}

const OFFERED: &str = "of what was offered, time withheld by the DUT's XOFF included, 0.99 within \
    100 ms after the phase";

const PAUSED: Row<Pfc> = Row {
    tolerance: "2 quanta + 100 ppm (802.3 clock tolerance); frames that a gap of the storm let go, \
        up to max_response and the path's latency after it, make it inconclusive",
    needs: needs![
        PORTS,
        OWN_STORM,
        ACCOUNTING,
        BASELINE_OF_TEST,
        RATE_OF_TEST,
        STORM_CONTINUITY
    ],
    ..Row::<Pfc>::new(
        "paused",
        &["4"],
        "no storm-phase test frame is received between the start of data and (last pause frame's \
         departure + pause time)",
        "ignores-pfc",
        delivery::paused,
    )
};

const BACKGROUND: Row<Pfc> = Row {
    tolerance: OFFERED,
    needs: needs![
        PORTS,
        ACCOUNTING,
        BASELINE_OF_BACKGROUND,
        RATE_OF_BACKGROUND,
        STORM_CONTINUITY
    ],
    ..Row::<Pfc>::new(
        "background",
        &["4"],
        "every frame of the lossy priorities is received, those of the storm phase while the storm \
         still runs, and no XOFF of the DUT withholds any",
        "drops-lossy-in-storm",
        delivery::background,
    )
};

const ISOLATION: Row<Pfc> = Row {
    extra: true,
    tolerance: OFFERED,
    needs: needs![
        PORTS,
        ACCOUNTING,
        BASELINE_OF_ISOLATION,
        RATE_OF_ISOLATION,
        STORM_CONTINUITY,
        HONOURED
    ],
    ..Row::<Pfc>::new(
        "isolation",
        &["4"],
        "lossless priorities that are not stormed are not paused: all their frames received, while \
         the storm still runs, and the DUT's XOFF withholds none of them",
        "pauses-other-lossless",
        delivery::isolation,
    )
};

const DELIVERED: Row<Pfc> = Row {
    extra: true,
    tolerance: "bounded wait of 2 s",
    needs: needs![PORTS, ACCOUNTING, BASELINE_OF_TEST, HONOURED],
    ..Row::<Pfc>::new(
        "delivered",
        &["5"],
        "after the storm the DUT drains: every test frame that left is received",
        "loses-held",
        delivery::delivered,
    )
};

const LETS_GO: Row<Pfc> = Row {
    extra: true,
    tolerance: "2 quanta + 100 ppm (802.3 clock tolerance) + the measured uncertainty of the \
        departure; time in which other priorities filled the link back to back does not count \
        (802.1Q 8.6.8); while held frames leave, the link may be idle for max_response + two \
        frames + three quarters of the time, or more where the priority was offered less than a \
        quarter of the line: a device that drains as fast as that passes (a simulated switch in \
        an emulated guest drains at a third), and a drain of a few max_response says little; a \
        stall of the tester or the simulated DUT that is as long, or a record that is missing, \
        makes it inconclusive",
    needs: needs![
        PORTS,
        OWN_STORM,
        ACCOUNTING,
        BASELINE_OF_TEST,
        STORM_CONTINUITY
    ],
    depends_on: &["paused"],
    ..Row::<Pfc>::new(
        "lets-go",
        &["5"],
        "the first frame of each stormed priority arrives within the pause time + max_response + \
         two frames after the storm's last pause frame left, each later one as soon after the one \
         before it, and what was held at no less than a quarter of the line or its \
         offered rate",
        "pauses-longer",
        lets_go::lets_go,
    )
};

const RESUME: Row<Pfc> = Row {
    tolerance: "bounded wait of 2 s; of what was offered, time withheld by the DUT's XOFF \
        included, 0.99 within 100 ms after the phase",
    needs: needs![
        PORTS,
        ACCOUNTING,
        BASELINE_OF_TEST,
        RATE_OF_RESUME,
        HONOURED
    ],
    depends_on: &["delivered"],
    ..Row::<Pfc>::new(
        "resume",
        &["7"],
        "after draining, every resume-phase test frame is received, and the DUT's XOFF withholds \
         none of them",
        "dies-after-pause",
        delivery::resume,
    )
};

const RESPONSE: Row<Pfc> = Row {
    extra: true,
    tolerance: "2 quanta + 100 ppm + the measured uncertainty of the departure; time in which \
        other priorities filled the link back to back does not count (802.1Q 8.6.8)",
    needs: needs![PORTS, OWN_STORM, ACCOUNTING, PROBE_LATENCY, HONOURED],
    depends_on: &["resume"],
    ..Row::<Pfc>::new(
        "response",
        &["probe"],
        "on running traffic an XOFF: the last frame within max_response, none before its quanta \
         expired, each paused priority again within max_response + two frames after they expired \
         and from then on, none lost; a later time replaces an earlier one, no lossy priority that \
         is named too waits, and none that is not named waits from the XOFF or the end of its \
         pause on when the same XOFF is sent twice; each kind of probe measured well enough, one \
         at full load",
        "slow-response",
        probe::response,
    )
};

const XON: Row<Pfc> = Row {
    extra: true,
    tolerance: "the measured uncertainty of the departure; time in which other priorities filled \
        the link back to back does not count (802.1Q 8.6.8)",
    needs: needs![PORTS, OWN_STORM, ACCOUNTING, PROBE_LATENCY],
    depends_on: &["response"],
    ..Row::<Pfc>::new(
        "xon",
        &["probe"],
        "XOFF, then XON (time 0): traffic resumes within max_response + two frames, before the \
         quanta would have expired, and goes on; each kind of probe measured well enough",
        "ignores-xon",
        probe::xon,
    )
};

const TEST_TRAFFIC: Row<Pfc> = Row {
    tolerance: OFFERED,
    needs: needs![
        PORTS,
        ACCOUNTING,
        BASELINE_OF_TEST,
        RATE_OF_TEST,
        STORM_CONTINUITY,
        STORM_ARRIVAL
    ],
    ..Row::<Pfc>::new(
        "test-traffic",
        &["4"],
        "storm on the lossy priorities: every frame of theirs is received, those of the storm \
         phase while the storm still runs, and no XOFF of the DUT withholds any",
        "lossy-obeys-pfc",
        delivery::test_traffic,
    )
};

const BACKGROUND_LOSSLESS: Row<Pfc> = Row {
    tolerance: OFFERED,
    needs: needs![
        PORTS,
        ACCOUNTING,
        BASELINE_OF_BACKGROUND,
        RATE_OF_BACKGROUND,
        STORM_CONTINUITY,
        STORM_ARRIVAL,
        HONOURED
    ],
    ..Row::<Pfc>::new(
        "background",
        &["4"],
        "every frame of the lossless priority is received, those of the storm phase while the \
         storm still runs, and the DUT's XOFF withholds none of them",
        "pfc-pauses-all",
        delivery::background,
    )
};

const NO_DIP: Row<Pfc> = Row {
    needs: needs![
        PORTS,
        ACCOUNTING,
        BASELINE,
        RATE,
        STORM_CONTINUITY,
        STORM_ARRIVAL
    ],
    ..NO_DIP_BESIDE
};

/// Beside priorities that the storm holds.
const NO_DIP_BESIDE: Row<Pfc> = Row {
    extra: true,
    tolerance: "at the edge of a window one frame of each flow, the largest burst that may still \
        wait there, and what the path's least latency and a stall of up to 4 ms hold; windows in \
        which tester or simulated DUT stalled for longer are left out, and at least 0.8 of each \
        phase is watched; longer spans, up to the phase, are held to the same share",
    needs: needs![
        PORTS,
        ACCOUNTING,
        BASELINE_BESIDE,
        RATE_BESIDE,
        STORM_CONTINUITY
    ],
    ..Row::<Pfc>::new(
        "no-dip",
        &["4"],
        "of each priority that no PFC may hold at least 0.99 of what was offered in any 100 ms \
         arrives in them",
        "dips",
        dip::no_dip,
    )
};

const NO_DELAY: Row<Pfc> = Row {
    needs: needs![PORTS, ACCOUNTING, BASELINE, STORM_CONTINUITY, STORM_ARRIVAL],
    ..NO_DELAY_BESIDE
};

/// Beside priorities that the storm holds.
const NO_DELAY_BESIDE: Row<Pfc> = Row {
    extra: true,
    tolerance: "max_response, the next frame of each flow, and at full load the largest burst; at \
        least three spans of 10 ms, those in which tester or simulated DUT stalled left out",
    needs: needs![PORTS, ACCOUNTING, BASELINE_BESIDE, STORM_CONTINUITY],
    ..Row::<Pfc>::new(
        "no-delay",
        &["4"],
        "of each priority that no PFC may hold, the median latency in the storm, and in three \
         spans of 10 ms in a row in the pauses of a probe, is at most the baseline's greatest",
        "delays-lossy-in-storm",
        latency::no_delay,
    )
};

const NO_PAUSE: Row<Pfc> = Row {
    extra: true,
    needs: needs![PORTS_OF_ARRIVALS, PFC_VISIBLE],
    ..Row::<Pfc>::new(
        "no-pause",
        &["Overview"],
        "the DUT, which is configured for PFC, sends no 802.3x PAUSE frame with a time > 0",
        "sends-pause",
        integrity::no_pause,
    )
};

const NO_LOSS: Row<Pfc> = Row {
    needs: IGNORED.needs,
    ..Row::<Pfc>::new(
        "no-loss",
        &["5"],
        "802.3x storm, all 64 DSCPs at line rate: every frame is received, those of the storm \
         phase while the storm still runs",
        "obeys-pause",
        delivery::no_loss,
    )
};

const THROUGHPUT: Row<Pfc> = Row {
    tolerance: "min_throughput (testbed, 0.99); lateness of the tester makes it inconclusive, \
        never a pass",
    needs: needs![
        PORTS,
        ACCOUNTING,
        BASELINE,
        RATE_IN_STORM,
        STORM_CONTINUITY,
        STORM_ARRIVAL
    ],
    ..Row::<Pfc>::new(
        "throughput",
        &["5"],
        "received layer-1 rate >= min_throughput x offered; time withheld by the DUT's XOFF counts \
         as offered",
        "throttles",
        throughput::throughput,
    )
};

const NO_PFC_ON_LOSSY: Row<Pfc> = Row {
    needs: needs![PORTS_OF_ARRIVALS, PFC_VISIBLE],
    ..Row::<Pfc>::new(
        "no-pfc-on-lossy",
        &["Overview"],
        "the DUT sends no XOFF (time > 0) for a lossy priority",
        "xoff-for-lossy",
        integrity::no_pfc_on_lossy,
    )
};

const VICTIM: Row<Pfc> = Row {
    tolerance: "0.01 of the frames may take longer than the longest of the baseline, \
        max_response and the largest burst together; where the DUT's XOFF stopped the further \
        sending port for more than 0.01 of the phase, the check is inconclusive: a buffer of all \
        ports may have been full",
    needs: needs![
        PORTS,
        ACCOUNTING,
        BASELINE,
        RATE,
        STORM_CONTINUITY,
        HONOURED
    ],
    depends_on: &["paused"],
    ..Row::<Pfc>::new(
        "victim",
        &["4"],
        "stormed priorities from the further sending port to the further receiving one: every \
         frame is received, those of the storm phase while the storm still runs, and as soon as in \
         the baseline",
        "pauses-all-ports",
        victim::victim,
    )
};

/// Lossy traffic from tx to the further receiving port.
const VICTIM_BACKGROUND: Row<Pfc> = Row {
    fault: "drops",
    ..BACKGROUND
};

/// Lossless traffic from tx to the further receiving port.
const VICTIM_ISOLATION: Row<Pfc> = Row {
    fault: "xoff-other-lossless",
    ..ISOLATION
};

/// A row of our own on the frames that arrived.
const fn of_arrivals(
    id: &'static str,
    passes_when: &'static str,
    fault: &'static str,
    judge: Judge<Pfc>,
) -> Row<Pfc> {
    Row {
        extra: true,
        needs: needs![PORTS_OF_ARRIVALS, ACCOUNTING, BASELINE],
        ..Row::<Pfc>::new(id, &[], passes_when, fault, judge)
    }
}

const NO_DUPLICATE: Row<Pfc> = Row {
    tolerance: "more than 1024 frames behind, as many as are missing may be late instead",
    ..of_arrivals(
        "no-duplicate",
        "no sequence number arrives twice, over all phases",
        "duplicates",
        integrity::no_duplicate,
    )
};

const NO_REORDER: Row<Pfc> = Row {
    tolerance: "of the frames more than 1024 behind, as many as are missing count here; the others \
        are duplicates",
    ..of_arrivals(
        "no-reorder",
        "no frame arrives after a later one of its flow (RFC 4737), over all phases",
        "reorders",
        integrity::no_reorder,
    )
};

/// Share of the frames that are looked at octet by octet.
const SAMPLED: &str = "above 3 million frames/s or 20 Gbit/s one frame in 16 is verified, evenly \
    spread over each flow; the finding says of how many";

const NO_CORRUPTION: Row<Pfc> = Row {
    tolerance: SAMPLED,
    ..of_arrivals(
        "no-corruption",
        "every checksum, every stamp and, octet by octet, every payload is what was sent, over all \
         phases; damaged frames of other senders do not count",
        "corrupts",
        integrity::no_corruption,
    )
};

const NO_RESIZE: Row<Pfc> = Row {
    tolerance: SAMPLED,
    ..of_arrivals(
        "no-resize",
        "every frame arrives as long as it was sent, over all phases; VLAN tags may be added or \
         removed",
        "appends",
        integrity::no_resize,
    )
};

const NO_REMARK: Row<Pfc> = of_arrivals(
    "no-remark",
    "the trusted field (DSCP or PCP) arrives as it was sent, over all phases; CE may be set",
    "remarks",
    integrity::no_remark,
);

const NO_MAC_CONTROL_FORWARDED: Row<Pfc> = Row {
    extra: true,
    needs: needs![PORTS_OF_ARRIVALS, PFC_VISIBLE],
    ..Row::<Pfc>::new(
        "no-mac-control-forwarded",
        &[],
        "no PAUSE/PFC frame that the rx port sends appears at the tx port or a further one, or \
         comes back to the rx port where such frames reach its program",
        "forwards-control",
        integrity::no_mac_control_forwarded,
    )
};

const NO_REFLECTION: Row<Pfc> = of_arrivals(
    "no-reflection",
    "no test frame comes back to the tx port, or to a further one that it was not sent to, over \
     all phases (802.1Q 8.6.1: a frame does not leave by the port at which it came in; nor by another \
     than the filtering database has for its destination, which the tester makes known first)",
    "reflects",
    integrity::no_reflection,
);

const IGNORED: Row<Pfc> = Row {
    tolerance: OFFERED,
    needs: needs![
        PORTS,
        ACCOUNTING,
        BASELINE,
        RATE,
        STORM_CONTINUITY,
        STORM_ARRIVAL,
        HONOURED
    ],
    applies: Some(storm_names_none),
    ..Row::<Pfc>::new(
        "ignored",
        &["4"],
        "vector 0: every frame is received, those of the storm phase while the storm still runs, \
         and no XOFF of the DUT withholds any",
        "zero-vector-names-all",
        delivery::ignored,
    )
};

const ONLY_ENABLED: Row<Pfc> = Row {
    tolerance: "of the priority whose bit is 1: 2 quanta + 100 ppm (802.3 clock tolerance); of the \
        others: of what was offered, time withheld by the DUT's XOFF included, 0.99 within 100 ms \
        after the phase",
    needs: needs![
        PORTS,
        OWN_STORM,
        ACCOUNTING,
        BASELINE,
        RATE,
        STORM_CONTINUITY,
        STORM_ARRIVAL,
        HONOURED
    ],
    applies: Some(storm_names_some),
    ..Row::<Pfc>::new(
        "only-enabled",
        &["4"],
        "no storm-phase frame of the priorities whose bit is 1 is received before (last pause \
         frame's departure + pause time); every frame of all others is, those of the storm phase \
         while the storm still runs",
        "ignores-vector",
        delivery::only_enabled,
    )
};

const ENABLED_DELIVERED: Row<Pfc> = Row {
    applies: Some(storm_names_some),
    ..DELIVERED
};

const MAP: Row<Pfc> = Row {
    applies: None,
    ..Row {
        id: "map",
        passes_when: "no storm-phase frame whose code point is mapped to a stormed lossless \
            priority is received before (last pause frame's departure + pause time); every frame \
            of all other code points is, those of the storm phase while the storm still runs",
        tolerance: "of what is held: 2 quanta + 100 ppm (802.3 clock tolerance); of the others: of \
            what was offered, time withheld by the DUT's XOFF included, 0.99 within 100 ms after \
            the phase",
        fault: "misplaces-dscp",
        ..ONLY_ENABLED
    }
};

const MAP_DELIVERED: Row<Pfc> = Row {
    applies: Some(storm_holds_some),
    ..DELIVERED
};

const SIZES_PAUSED: Row<Pfc> = Row {
    applies: Some(storm_holds_some),
    fault: "leaks-for-long",
    ..PAUSED
};

const SIZES_OTHERS: Row<Pfc> = Row {
    applies: None,
    ..Row {
        id: "others",
        passes_when: "every frame of the priorities that are lossy or not stormed is received, \
            those of the storm phase while the storm still runs, and no XOFF of the DUT withholds \
            any",
        fault: "drops-lossy-in-storm",
        ..IGNORED
    }
};

const SIZES_DELIVERED: Row<Pfc> = Row {
    fault: "loses-short",
    ..MAP_DELIVERED
};

const SIZES_RESUME: Row<Pfc> = Row {
    applies: Some(storm_holds_some),
    ..RESUME
};

const ZERO_IGNORED: Row<Pfc> = Row {
    tolerance: OFFERED,
    needs: IGNORED.needs,
    ..Row::<Pfc>::new(
        "ignored",
        &["4"],
        "all times 0, and no priority paused: every frame is received, those of the storm phase \
         while the storm still runs, and no XOFF of the DUT withholds any",
        "zero-pauses-idle",
        delivery::ignored,
    )
};

const RESUMES: Row<Pfc> = Row {
    tolerance: XON.tolerance,
    needs: needs![PORTS, OWN_STORM, ACCOUNTING, BASELINE, PROBE_LATENCY],
    ..Row::<Pfc>::new(
        "resumes",
        &["1"],
        "XOFF, then a frame with all eight bits and times of 0: each priority that was paused goes \
         on within max_response + two frames, before the quanta would have expired, and each that \
         was not goes on as soon; none that the XOFF does not name waits at the end of its pause \
         when the same XOFF is sent twice; each kind of probe measured well enough",
        "ignores-xon",
        probe::resumes,
    )
};

const ZERO_NO_DELAY: Row<Pfc> = Row {
    fault: "delays-lossy-after-xon",
    ..NO_DELAY
};

/// A check of a case that consists of its probe.
const fn of_probe(
    id: &'static str,
    passes_when: &'static str,
    fault: &'static str,
    judge: Judge<Pfc>,
) -> Row<Pfc> {
    Row {
        tolerance: RESPONSE.tolerance,
        needs: needs![
            PORTS,
            OWN_STORM,
            ACCOUNTING,
            BASELINE,
            PROBE_LATENCY,
            HONOURED
        ],
        ..Row::<Pfc>::new(id, &["2"], passes_when, fault, judge)
    }
}

const OWN_TIME: Row<Pfc> = of_probe(
    "own-time",
    "each priority that a frame pauses: the last frame within max_response, none before its own \
     time expired, again within max_response + two frames after that and from then on, none of its \
     frames lost; no lossy priority that is named too waits, and none that is not named waits from \
     the XOFF or the end of a pause on when the same XOFF is sent twice; each kind of probe \
     measured well enough, one at full load",
    "shares-timer",
    probe::response,
);

const REPLACED: Row<Pfc> = of_probe(
    "replaced",
    "each paused priority: the last frame within max_response of the first XOFF, none before the \
     time of the last frame that names it expired, again within max_response + two frames after \
     that and from then on, none of its frames lost; no priority that is not named waits from an \
     XOFF or the end of a pause on when the same XOFF is sent twice; each kind of probe measured \
     well enough, one at full load",
    "keeps-longer",
    probe::response,
);

const NOT_EARLY: Row<Pfc> = of_probe(
    "not-early",
    "no frame of a paused priority from max_response after the pause frame on until its time has \
     expired; each pause measured well enough",
    "resumes-early",
    probe::pause_time::not_early,
);

const NOT_LATE: Row<Pfc> = of_probe(
    "not-late",
    "each paused priority again within max_response + two frames after the time expired and from \
     then on, none of its frames lost; each pause measured well enough",
    "pauses-longer",
    probe::pause_time::not_late,
);

const RESPONSE_OF_EACH: Row<Pfc> = of_probe(
    "response",
    "of each XOFF the last frame within max_response, and none until its time has expired; none of \
     the frames lost; each pause measured well enough, on traffic at its full rate",
    "slow-at-times",
    probe::response_time::response,
);

const LINEAR: Row<Pfc> = Row {
    tolerance: "0.01, and the uncertainty of the slope: two frames, and twice the distance from \
        the median within which four of five pauses of a kind lie, over what the kinds differ by; \
        a kind shorter than the longest is not judged where that is more than 0.01",
    depends_on: &["not-early"],
    ..of_probe(
        "linear",
        "of each priority the pauses grow from the shortest kind to each longer one as their \
         quanta do: a slope of 1; most pauses of each kind measured",
        "pauses-longer",
        probe::pause_time::linear,
    )
};

const ODD_IGNORED: Row<Pfc> = Row {
    tolerance: XON.tolerance,
    needs: needs![
        PORTS,
        OWN_STORM,
        ACCOUNTING,
        BASELINE,
        PROBE_LATENCY,
        STORM_ARRIVAL
    ],
    ..Row::<Pfc>::new(
        "ignored",
        &["2"],
        "a frame of opcode 0x0000, 0x0102, 0x0201 or 0xffff, of EtherType 0x8809, to another \
         station, to all, to 01-80-C2-00-00-00 or -02: no wait of any priority that begins with it \
         is longer than max_response + two frames; each kind of probe measured well enough",
        "any-opcode",
        probe::odd::ignored,
    )
};

const STILL_PAUSES: Row<Pfc> = Row {
    steps: &["4"],
    ..of_probe(
        "still-pauses",
        "PFC with the reserved octet of its vector set, or those behind its times: the last frame \
         within max_response, none before the time expired, again within max_response + two \
         frames after that and from then on; each kind of probe measured well enough",
        "wants-zeroes",
        probe::odd::still_pauses,
    )
};

const SOURCE_PAUSES: Row<Pfc> = Row {
    steps: &["1"],
    applies: Some(probe::odd::declares_zero_source),
    ..of_probe(
        "pauses",
        "facts.zero_source declared, PFC from 00-00-00-00-00-00: the last frame within \
         max_response, none before the time expired, again within max_response + two frames after \
         that and from then on; the probe measured well enough",
        "wants-source",
        probe::odd::pauses,
    )
};

const SOURCE_ALIVE: Row<Pfc> = Row {
    fault: "slow-response",
    ..ALIVE
};

const ALIVE: Row<Pfc> = of_probe(
    "alive",
    "PFC behind each other frame pauses, and so does PFC in whose pause another comes: the last \
     frame within max_response, none before the time expired, again within max_response + two \
     frames after that and from then on, no frame of the probes is lost, and no lossy priority \
     waits; each kind of probe measured well enough",
    "dies-of-odd-frame",
    probe::odd::alive,
);

const CONGESTED_DELIVERED: Row<Pfc> = Row {
    needs: needs![PORTS, ACCOUNTING, BASELINE, RATE, HONOURED],
    ..Row::<Pfc>::new(
        "delivered",
        &["3"],
        "more lossless traffic than the line takes: every frame that left is received",
        "no-upstream-pfc",
        delivery::delivered,
    )
};

const UNCONGESTED_DELIVERED: Row<Pfc> = Row {
    steps: &["2"],
    passes_when: "less traffic than the line takes: every frame that left is received",
    fault: "drops",
    ..CONGESTED_DELIVERED
};

const SILENT: Row<Pfc> = Row {
    tolerance: "where more may have queued than limits.xoff declares, by a burst of the tester or \
        a stall where a port is virtual, the check is inconclusive",
    needs: needs![PORTS, ACCOUNTING, BASELINE, RATE, PFC_VISIBLE],
    applies: Some(asking::declares_xoff),
    ..Row::<Pfc>::new(
        "silent",
        &["2"],
        "the DUT, in which less waits than limits.xoff declares, sends neither PFC nor PAUSE",
        "asks-early",
        asking::silent,
    )
};

const ASKS_EACH: Row<Pfc> = Row {
    tolerance: "a port that is not asked fails where another was asked eight times; fewer leave \
        it open, as one buffer may have been the first to fill each time; where the DUT held all \
        that was too much, the check is inconclusive",
    needs: needs![PORTS, ACCOUNTING, BASELINE, RATE, SENDERS_SEE_PFC],
    ..Row::<Pfc>::new(
        "asks-each",
        &["3"],
        "a lossless priority of which too much comes from two ports: XOFF comes in at each of them",
        "asks-first-port",
        asking::asks_each,
    )
};

const ASKS_NO_OTHER: Row<Pfc> = Row {
    needs: needs![PORTS, ACCOUNTING, BASELINE, RATE, SENDERS_SEE_PFC],
    ..Row::<Pfc>::new(
        "asks-no-other",
        &["3"],
        "no XOFF comes in for a lossless priority at a port that does not send it, where PFC is \
         shown to be seen",
        "asks-all-ports",
        asking::asks_no_other,
    )
};

const WELL_FORMED: Row<Pfc> = Row {
    needs: needs![PORTS_OF_ARRIVALS],
    ..Row::<Pfc>::new(
        "well-formed",
        &["3"],
        "every PFC frame of the DUT goes from an individual address to 01-80-C2-00-00-01, untagged, \
         is 64 octets long with FCS, and has zeroes in the upper octet of its vector and behind its \
         times",
        "pfc-long",
        generation::well_formed,
    )
};

const IN_TIME: Row<Pfc> = Row {
    tolerance: "frames are lost before XOFF where fewer arrive in all than had left max_response + \
        the largest burst + every stall before it; where frames are lost, and it is not known \
        when, or where none is lost and no XOFF came, the check is inconclusive",
    needs: needs![
        PORTS,
        OWN_STORM,
        ACCOUNTING,
        BASELINE_OF_TEST,
        RATE_OF_TEST,
        STORM_CONTINUITY,
        SENDERS_SEE_PFC,
        HONOURED
    ],
    ..Row::<Pfc>::new(
        "in-time",
        &["3"],
        "of each stormed priority an XOFF comes before the first frame is lost",
        "asks-late",
        generation::in_time,
    )
};

const GENERATION_DELIVERED: Row<Pfc> = Row {
    extra: false,
    fault: "no-upstream-pfc",
    ..DELIVERED
};

const RELEASES: Row<Pfc> = Row {
    tolerance: "max_response after the last frame of any flow sent in the storm; a stall of the \
        tester or the simulated DUT that is as long makes it inconclusive, and so does a single \
        bunch of later XOFF frames, which may have waited in the tester; the next frame of the \
        priority ends the record",
    needs: needs![
        PORTS,
        OWN_STORM,
        ACCOUNTING,
        BASELINE_OF_TEST,
        RATE_OF_TEST,
        STORM_CONTINUITY,
        SENDERS_SEE_PFC
    ],
    ..Row::<Pfc>::new(
        "releases",
        &["5"],
        "the DUT asks for a pause of each stormed priority, and no more once all that it held has \
         left",
        "never-releases-upstream",
        generation::releases,
    )
};

const GENERATION_RESUME: Row<Pfc> = Row {
    fault: "never-releases-upstream",
    ..RESUME
};

const CONGESTED_RESUME: Row<Pfc> = Row {
    extra: true,
    ..Row {
        steps: &["5"],
        passes_when: "after draining, every resume-phase test frame is received, and the DUT's \
            XOFF withholds none of them",
        fault: "never-releases-upstream",
        ..RESUME
    }
};

/// The rows of a case, and those of all cases; `no pauses`: of a case in which the tester sends no
/// pause frame that could be forwarded.
macro_rules! with_those_of_all {
    (no pauses: $($row:expr),* $(,)?) => { with_those_of_all!(@ [$($row),*] []) };
    (@ [$($row:expr),*] [$($forwarded:expr),*]) => {
        [
            $($row,)*
            NO_PFC_ON_LOSSY,
            NO_PAUSE,
            NO_DUPLICATE,
            NO_REORDER,
            NO_CORRUPTION,
            NO_RESIZE,
            NO_REMARK,
            $($forwarded,)*
            NO_REFLECTION,
        ]
    };
    ($($row:expr),* $(,)?) => {
        with_those_of_all!(@ [$($row),*] [NO_MAC_CONTROL_FORWARDED])
    };
}

/// The table of cases 1 and 2.
pub(super) const LOSSLESS_STORM: [Row<Pfc>; 19] = with_those_of_all![
    PAUSED,
    BACKGROUND,
    ISOLATION,
    NO_DIP_BESIDE,
    NO_DELAY_BESIDE,
    DELIVERED,
    LETS_GO,
    RESUME,
    RESPONSE,
    XON,
];

/// The table of case 3.
pub(super) const LOSSY_STORM: [Row<Pfc>; 13] =
    with_those_of_all![TEST_TRAFFIC, BACKGROUND_LOSSLESS, NO_DIP, NO_DELAY,];

/// The table of case 4.
pub(super) const GLOBAL_PAUSE: [Row<Pfc>; 13] =
    with_those_of_all![NO_LOSS, THROUGHPUT, NO_DIP, NO_DELAY,];

/// The table of pfc.enable-vector.
pub(super) const ENABLE_VECTOR: [Row<Pfc>; 14] =
    with_those_of_all![IGNORED, ONLY_ENABLED, ENABLED_DELIVERED, NO_DIP, NO_DELAY,];

/// The table of pfc.class-map.
pub(super) const CLASS_MAP: [Row<Pfc>; 11] = with_those_of_all![MAP, MAP_DELIVERED];

/// The table of pfc.sizes.
pub(super) const SIZES: [Row<Pfc>; 13] =
    with_those_of_all![SIZES_PAUSED, SIZES_OTHERS, SIZES_DELIVERED, SIZES_RESUME,];

/// The table of pfc.zero-time.
pub(super) const ZERO_TIME: [Row<Pfc>; 13] =
    with_those_of_all![RESUMES, ZERO_IGNORED, NO_DIP, ZERO_NO_DELAY,];

/// The table of pfc.independent-times.
pub(super) const INDEPENDENT_TIMES: [Row<Pfc>; 10] = with_those_of_all![OWN_TIME];

/// The table of pfc.oversubscription.
pub(super) const OVERSUBSCRIPTION: [Row<Pfc>; 12] = with_those_of_all![no pauses:
    CONGESTED_DELIVERED,
    ASKS_EACH,
    ASKS_NO_OTHER,
    CONGESTED_RESUME,
];

/// The table of pfc.no-congestion.
pub(super) const NO_CONGESTION: [Row<Pfc>; 10] =
    with_those_of_all![no pauses: UNCONGESTED_DELIVERED, SILENT];

/// The table of pfc.generation.
pub(super) const GENERATION: [Row<Pfc>; 14] = with_those_of_all![
    WELL_FORMED,
    IN_TIME,
    GENERATION_DELIVERED,
    RELEASES,
    GENERATION_RESUME,
];

/// The table of pfc.victim.
pub(super) const VICTIM_BESIDE: [Row<Pfc>; 16] = with_those_of_all![
    PAUSED,
    VICTIM,
    VICTIM_BACKGROUND,
    VICTIM_ISOLATION,
    NO_DIP_BESIDE,
    DELIVERED,
    LETS_GO,
];

/// The table of pfc.timer-reload.
pub(super) const TIMER_RELOAD: [Row<Pfc>; 10] = with_those_of_all![REPLACED];

/// The table of pfc.invalid-frames.
pub(super) const INVALID_FRAMES: [Row<Pfc>; 12] =
    with_those_of_all![ODD_IGNORED, STILL_PAUSES, ALIVE];

/// The table of pfc.source-address.
pub(super) const SOURCE_ADDRESS: [Row<Pfc>; 11] = with_those_of_all![SOURCE_PAUSES, SOURCE_ALIVE];

/// The table of pfc.pause-time.
pub(super) const PAUSE_TIME: [Row<Pfc>; 12] = with_those_of_all![NOT_EARLY, NOT_LATE, LINEAR];

/// The table of pfc.response-time.
pub(super) const RESPONSE_TIME: [Row<Pfc>; 10] = with_those_of_all![RESPONSE_OF_EACH];
