//! The contract between the BPF programs and userspace: map names, keys, values and versions, one
//! program a file.
//!
//! Every value is plain old data of fixed layout, in the byte order of the host.

/// Gives types of counters their zero and their sum over all CPUs. Each type has to be `repr(C)`
/// with fields of `u64` alone, which is not checked. Fields that are no counts, such as a last
/// frame or a greatest latency, are summed too: the caller of `merge` sets them again.
macro_rules! counts {
    ($($counts:ty)*) => {$(
        impl $counts {
            /// Nothing counted.
            // SAFETY: fields of `u64` alone, to which any octets are a value.
            pub const ZERO: Self = unsafe { core::mem::zeroed() };

            /// Adds what another CPU counted, word by word.
            pub fn merge(&mut self, cpu: &Self) {
                const WORDS: usize = size_of::<$counts>() / size_of::<u64>();
                const { assert!(align_of::<$counts>() == size_of::<u64>()) };
                let sums: *mut [u64; WORDS] = core::ptr::from_mut(self).cast();
                let counts: *const [u64; WORDS] = core::ptr::from_ref(cpu).cast();
                // SAFETY: fields of `u64` alone are as many words without padding, borrowed as the
                // arguments are.
                let (sums, counts) = unsafe { (&mut *sums, &*counts) };
                for (sum, count) in sums.iter_mut().zip(counts) {
                    *sum = sum.wrapping_add(*count);
                }
            }
        }
    )*};
}

pub mod account;
pub mod flow;
pub mod generate;
pub mod responder;
pub mod watch;

/// The section (and so the map) that holds the ABI version an object was built with, and nothing
/// else.
pub const ABI_SECTION: &str = ".rodata.abi";

/// Classes that can be paused: eight priorities, and the whole link by 802.3x.
pub const CLASSES: usize = 9;
/// The entry of 802.3x among them.
pub const WHOLE_LINK: usize = 8;

/// The field that tells the priority of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[repr(u8)]
pub enum Trust {
    /// The DSCP, through a map from DSCP to priority.
    Dscp = 0,
    /// The PCP of the outermost VLAN tag.
    Pcp = 1,
}
