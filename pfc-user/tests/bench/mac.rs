//! A MAC that consumes PAUSE and PFC frames and counts them, in the form of some NIC's driver.

use std::cell::RefCell;
use std::rc::Rc;

use validator::driver::kernel::link::mac::{Alive, MacLog};
use validator_core::evidence::mac::MacReading;
use validator_core::evidence::mac::MacReport;
use validator_core::evidence::preflight::{FrameCounts, Pfc};
use validator_core::plan::Nanos;

/// Form of the counters.
#[derive(Clone, Copy, Debug)]
pub enum Driver {
    /// XOFF and XON by priority, in separate counters.
    I40e,
    /// Frames by priority, XOFF and XON together, and the time in pause; only priorities in the
    /// mask count.
    Mlx5 { enabled: u8 },
    /// No counters of its own; the kernel's PFC structure.
    DcbAlone,
    /// MAC control frames of all kinds together.
    Standard,
    /// No counters at all.
    Silent,
}

// Each test file compiles this module anew, and few use all of it.
const _: [Driver; 5] = [
    Driver::I40e,
    Driver::Mlx5 { enabled: 0 },
    Driver::DcbAlone,
    Driver::Standard,
    Driver::Silent,
];

#[derive(Clone, Debug, Default)]
struct Counts {
    pause: u64,
    xoff: [u64; 8],
    xon: [u64; 8],
}

/// The MAC of one port.
pub struct Mac {
    counts: Rc<RefCell<Counts>>,
    pub log: MacLog,
}

impl Mac {
    pub fn new(driver: Driver, port: &str, alive: &Alive) -> Self {
        let counts = Rc::new(RefCell::new(Counts::default()));
        let reader = Reader {
            counts: counts.clone(),
            driver,
        };
        Self {
            counts,
            log: MacLog::begin(Box::new(move || Ok(reader.read())), port, port, alive),
        }
    }

    /// Counts the frame if it is MAC control; returns true if it is.
    pub fn keeps(&mut self, frame: &[u8]) -> bool {
        if frame[12..14] != [0x88, 0x08] {
            return false;
        }
        let mut counts = self.counts.borrow_mut();
        match frame[14..16] {
            [0, 1] => counts.pause += 1,
            _ => {
                for class in (0..8).filter(|class| frame[17] & 1 << class != 0) {
                    let paused = frame[18 + 2 * class..20 + 2 * class] != [0, 0];
                    let counts = &mut *counts;
                    let side = if paused {
                        &mut counts.xoff
                    } else {
                        &mut counts.xon
                    };
                    side[class] += 1;
                }
            }
        }
        true
    }

    pub fn finish(mut self, now: Nanos, during: &str, alive: &mut Alive) -> MacReport {
        self.log.read("end", now + self.log.lag());
        self.log.finish(during, alive)
    }
}

struct Reader {
    counts: Rc<RefCell<Counts>>,
    driver: Driver,
}

impl Reader {
    fn read(&self) -> MacReading {
        let counts = self.counts.borrow();
        let both = |class: usize| counts.xoff[class] + counts.xon[class];
        let pfc = |enabled| {
            Some(Pfc {
                enabled,
                capacity: 8,
                requests: [0; 8],
                indications: std::array::from_fn(both),
            })
        };
        let named = |name: &str, value: u64| (name.to_owned(), value);
        let (driver, private) = match self.driver {
            Driver::I40e => {
                let by_class = (0..8).flat_map(|class| {
                    let name = |kind: &str| format!("port.rx_priority_{class}_{kind}_rx");
                    [
                        (name("xon"), counts.xon[class]),
                        (name("xoff"), counts.xoff[class]),
                    ]
                });
                (
                    "i40e",
                    by_class
                        .chain([
                            named("port.link_xoff_rx", counts.pause),
                            named("port.link_xon_rx", 0),
                        ])
                        .collect(),
                )
            }
            Driver::Mlx5 { enabled } => {
                let shown = (0..8)
                    .filter(|class| enabled & 1 << class != 0)
                    .flat_map(|class| {
                        // At least a microsecond of pause for each XOFF.
                        [
                            (format!("rx_prio{class}_pause"), both(class)),
                            (format!("rx_prio{class}_pause_duration"), counts.xoff[class]),
                        ]
                    });
                ("mlx5_core", shown.collect())
            }
            Driver::DcbAlone | Driver::Standard | Driver::Silent => ("unheard-of", Vec::new()),
        };
        let pfc = match self.driver {
            // i40e's indications count XOFF only.
            Driver::I40e => pfc(0).map(|pfc| Pfc {
                indications: counts.xoff,
                ..pfc
            }),
            Driver::Mlx5 { enabled } => {
                // Disabled priorities are not counted.
                pfc(enabled).map(|pfc| Pfc {
                    indications: std::array::from_fn(|class| {
                        if enabled & 1 << class == 0 {
                            0
                        } else {
                            both(class)
                        }
                    }),
                    ..pfc
                })
            }
            Driver::DcbAlone => pfc(0xff),
            Driver::Standard | Driver::Silent => None,
        };
        let frames = counts.pause + (0..8).map(both).sum::<u64>();
        let mac_control = match self.driver {
            Driver::Standard => FrameCounts {
                received: Some(frames),
                sent: None,
            },
            _ => FrameCounts::default(),
        };
        MacReading {
            driver: driver.into(),
            private,
            pause: FrameCounts::default(),
            mac_control,
            pfc,
        }
    }
}
