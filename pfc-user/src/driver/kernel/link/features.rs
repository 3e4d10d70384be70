//! Features of an interface by the kernel's names: ETHTOOL_GFEATURES and ETHTOOL_SFEATURES
//! (linux/ethtool.h).

use std::io;

use validator_core::evidence::preflight::FeatureFact;

use super::ethtool_request::{Request, strings};

const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
/// `ETH_SS_FEATURES`.
const NAMES_OF_FEATURES: u32 = 4;
/// Octets of a block of 32 features: what can be changed, what is asked for, what is on, what never
/// changes.
const BLOCK: usize = 16;
/// Offset of the blocks: behind command and size.
const BLOCKS: usize = 8;

/// Every feature that the kernel knows, with its state.
pub(super) fn read(interface: &str) -> io::Result<Vec<FeatureFact>> {
    let names = names(interface)?;
    let blocks = names.len().div_ceil(32);
    let mut features = Request::new(GFEATURES, BLOCKS + blocks * BLOCK);
    features.set_word(4, blocks as u32);
    features.send(interface)?;
    let bit = |index: usize, word: usize| {
        features.word(BLOCKS + index / 32 * BLOCK + 4 * word) & 1 << (index % 32) != 0
    };
    let fact = |(index, name): (usize, String)| FeatureFact {
        name,
        on: bit(index, 2),
        fixed: !bit(index, 0) || bit(index, 3),
    };
    Ok(names
        .into_iter()
        .enumerate()
        .map(fact)
        .filter(|feature| !feature.name.is_empty())
        .collect())
}

/// Requests the feature on or off; the kernel may leave a fixed one as it was.
pub(super) fn set(interface: &str, name: &str, on: bool) -> io::Result<()> {
    let names = names(interface)?;
    let index = names
        .iter()
        .position(|known| known == name)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
    let blocks = names.len().div_ceil(32);
    // struct ethtool_set_features_block: which are meant, and what they are to be.
    let mut request = Request::new(SFEATURES, BLOCKS + blocks * 8);
    request.set_word(4, blocks as u32);
    let at = BLOCKS + index / 32 * 8;
    request.set_word(at, 1 << (index % 32));
    request.set_word(at + 4, u32::from(on) << (index % 32));
    request.send(interface)
}

fn names(interface: &str) -> io::Result<Vec<String>> {
    // struct ethtool_sset_info: a mask of sets at 8, and a count for each at 16.
    let mut info = Request::new(GSSET_INFO, 20);
    info.set_long(8, 1 << NAMES_OF_FEATURES);
    info.send(interface)?;
    let count = info.word(16) as usize;
    Ok(strings(interface, NAMES_OF_FEATURES, count)?.1)
}
