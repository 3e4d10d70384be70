//! Every key of testbeds and plans, for the documentation. Its tests hold it against the readers.

pub use super::testbed::TESTBED;

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

impl Key {
    /// True if the default is one value for all, and not a rule in words.
    pub fn has_plain_default(&self) -> bool {
        self.default
            .starts_with(|first: char| first.is_ascii_digit() || "\"[".contains(first))
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

/// Defines a table and its documentation in one place:
/// `"NAME", "PREFIX" { KEY = "VALUE", "DEFAULT"; }`. PREFIX stands before each key in its path,
/// VALUE is the shape of a value, and comments are the meanings. With `struct` in front, it also
/// defines the type that reads the table, whose constant `TABLE` is the documentation.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        #[derive($($derived:ident),+)]
        $vis:vis struct $Table:ident: $name:literal, $prefix:literal {
            $(
                $(#[doc = $meaning:literal])+
                $(#[serde($serde:ident)])?
                $key_vis:vis $key:ident: $type:ty = $value:literal, $default:literal;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive($($derived),+)]
        #[serde(deny_unknown_fields)]
        $vis struct $Table {
            $($(#[doc = $meaning])+ $(#[serde($serde)])? $key_vis $key: $type,)+
        }

        impl $Table {
            /// Its documentation.
            pub(crate) const TABLE: $crate::config::keys::Table =
                $crate::config::keys::table! {
                    $(#[doc = $about])+
                    $name, $prefix {
                        $($(#[doc = $meaning])+ $key = $value, $default;)+
                    }
                };
        }
    };
    (
        $(#[doc = $about:literal])+
        $name:literal, $prefix:literal {
            $(
                $(#[doc = $meaning:literal])+
                $key:ident = $value:literal, $default:literal;
            )+
        }
    ) => {
        $crate::config::keys::Table {
            name: $name,
            about: concat!($($about),+).trim_ascii(),
            keys: &[$($crate::config::keys::Key {
                path: concat!($prefix, stringify!($key)),
                value: $value,
                default: $default,
                meaning: concat!($($meaning),+).trim_ascii(),
            }),+],
        }
    };
}
pub(super) use table;

/// Tables of a plan.
pub const PLAN: &[Table] = &[
    table! {
        /// A plan has a name and at least one `[[case]]`.
        "", "" {
            /// Its name in reports. Mandatory.
            name = "text", "";
            /// On an external DUT without `hooks.configure`, whose lossless set stands in the place
            /// of the plan's, a case has no more repetitions than are listed.
            short = "`true`, `false`", "`false`";
        }
    },
    table! {
        /// Times of the PFC cases, each 1ms to 60min. A case may have a table `durations` of its
        /// own.
        "durations", "durations." {
            /// Data before the storm.
            baseline = "time", "\"300ms\"";
            /// The storm before the data.
            lead = "time", "\"1s\"";
            /// Data during the storm.
            traffic = "time", "\"1s\"";
            /// The storm after the data.
            tail = "time", "\"200ms\"";
            /// Data after the storm, where the case has such a phase.
            resume = "time", "\"1s\"";
            /// Longest wait for what the DUT still holds.
            drain_max = "time", "\"2s\"";
        }
    },
    table! {
        /// Test frames of the PFC cases.
        "traffic", "traffic." {
            /// Length in octets without FCS: 60 to 3400 for IPv4, 80 to 3400 for IPv6; 4 more for a
            /// tag.
            frame = "number", "1024";
        }
    },
    table! {
        /// Pause frames of the PFC cases. A case may have a table `storm` of its own.
        "storm", "storm." {
            /// Pause time of each frame, 1 to 65535. A third of it, the default interval, must be
            /// at least 5us.
            quanta = "number", "65535";
            /// Time from one frame to the next; at least 5us, and below the pause time.
            interval = "time", "a third of the pause time";
        }
    },
    table! {
        /// A case to run; each case once, in the order of the file.
        "[case]", "" {
            /// Case id. Mandatory.
            id = "text", "";
            /// Only of PFC cases.
            durations = "table", "the plan's";
            /// Only of PFC cases.
            storm = "table", "the plan's";
            /// Sets of priorities. Mandatory for PFC cases, and only there.
            repetitions = "list of tables", "";
            /// Queue pairs. Only of RC cases.
            queue_pairs = "list of tables", "that of the document";
            /// True: a wrong M_Key for each of the 64 bits, and not for eight of them that each run
            /// draws. Only of `mad.c14-016-get`.
            all_key_bits = "true or false", "false";
        }
    },
    table! {
        /// One repetition of a PFC case.
        "case.repetitions", "" {
            /// Lossless priorities. Mandatory.
            lossless = "list of priorities", "";
            /// Priorities that are stormed. Only of `pfc.pause-multi-lossless`, and of
            /// `pfc.enable-vector`, where the list may be empty.
            storm = "list of priorities", "all of them";
        }
    },
    table! {
        /// One repetition of an RC case.
        "case.queue_pairs", "" {
            /// 0 to 7.
            retry_count = "number", "2";
            /// Local ACK time-out n, 1 to 31: 4.096 us * 2^n.
            timeout = "number", "18";
            /// 256, 512, 1024, 2048 or 4096 octets.
            path_mtu = "number", "1024";
        }
    },
];
