//! A frame's class as a value, to compare it.

use pfc_ebpf::classify::{Datagram, Marks, Visitor, visit};
use pfc_ebpf::stamp::Stamp;
use pfc_ebpf::wire::mac_control::MacControl;
use pfc_ebpf::wire::{Malformed, Octets};

/// Class of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A test frame with a whole stamp, and its datagram, whose checksum has not been looked at
    /// yet.
    Test { stamp: Stamp, datagram: Datagram },
    /// PAUSE or PFC.
    Control(MacControl),
    /// Anything else that can be read.
    Other,
    /// Could not be read.
    Malformed(Malformed),
}

/// A frame's class, and the marks that tell its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified {
    pub marks: Marks,
    pub class: Class,
}

struct Collect;

impl Visitor for Collect {
    type Output = Classified;

    fn test(self, marks: Marks, stamp: Stamp, datagram: Datagram) -> Classified {
        let class = Class::Test { stamp, datagram };
        Classified { marks, class }
    }

    fn control(self, control: MacControl) -> Classified {
        let marks = Marks {
            tags: 0,
            pcp: None,
            dscp: None,
        };
        let class = Class::Control(control);
        Classified { marks, class }
    }

    fn other(self, marks: Marks) -> Classified {
        let class = Class::Other;
        Classified { marks, class }
    }

    fn malformed(self, marks: Marks, reason: Malformed) -> Classified {
        let class = Class::Malformed(reason);
        Classified { marks, class }
    }
}

/// Reads a frame as far as its class needs.
pub fn classify(frame: &(impl Octets + ?Sized)) -> Classified {
    visit(frame, Collect)
}
