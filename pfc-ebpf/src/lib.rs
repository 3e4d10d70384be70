//! The part of the validator that its BPF programs and its userspace share. Pure and `no_std`; the
//! host tests run it without root and without any eBPF tool.
//!
//! - [`wire`]: the formats of frames, one protocol a file; [`units`]: quantities of the field.
//! - [`classify`] tells what a frame of a test port is, [`observe`] what any frame is; [`stamp`] is
//!   what test frames carry, [`flow_stamp`] what frames of flows do.
//! - [`own`] tells damaged test frames from those of other senders.
//! - [`pacing`]: when a sender's frames are due.
//! - [`abi`]: the layout of the BPF maps.
//! - `bpf` (feature `bpf`): helpers that only the programs need.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(feature = "bpf", feature(asm_experimental_arch))]

/// Declares an enum of one octet, its variants in the order of their numbers.
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$meta])*
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $name {
            /// Number of variants.
            pub const COUNT: usize = Self::ALL.len();
            /// All variants, in the order of their numbers.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$variant),*];

            /// The variant of that number, if there is one.
            pub const fn from_number(value: u8) -> Option<Self> {
                match value {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub mod abi;
#[cfg(feature = "bpf")]
pub mod bpf;
pub mod classify;
pub mod filling;
pub mod flow_stamp;
pub mod observe;
pub mod own;
pub mod pacing;
pub mod stamp;
pub mod units;
pub mod wire;
