//! Features of newer kernels that this kernel lacks, and what is done instead.

use super::{Item, has_program, ok, problem};
use crate::evidence::preflight::Preflight;

/// Major and minor number of a kernel's release.
pub type Release = (u8, u8);

/// Oldest kernel on which `cargo xtask lab kernel` shows that the programs load and count.
pub const OLDEST: Release = (6, 1);
/// Ports tell their XDP features (family `netdev` of generic netlink).
pub const XDP_FEATURES: Release = (6, 3);
/// Programs have a place at tc of their own, by bpf_link.
pub const TCX: Release = (6, 6);

/// Features of newer kernels: name, first release, and what is done without the feature.
const NEWER: [(&str, Release, &str); 2] = [
    (
        "XDP features of ports",
        XDP_FEATURES,
        "live frames are sent only where ports.sender asks for them",
    ),
    (
        "tcx",
        TCX,
        "`watch` counts at tc by a filter of clsact, which stays if it is killed until the next \
         `watch`",
    ),
];

/// The kernel as an item; `None` in records that do not name it.
pub(super) fn kernel(preflight: &Preflight) -> Option<Item> {
    let found = format!("Linux {}", preflight.kernel.as_ref()?);
    Some(match release(preflight) {
        Some(release) if release < OLDEST => problem(
            found,
            "Linux 6.1 or newer: the programs are tested on no older one, and are not loaded",
            "boot a newer one: Debian 12 has 6.1, and a second one, linux-image-6.12-amd64",
        ),
        _ => match lacks(preflight) {
            Some(lacks) => ok(format!("{found}, {lacks}")),
            None => ok(found),
        },
    })
}

/// Describes, for people, what this kernel lacks and what is done instead; `None` where it lacks
/// nothing, or there is no port that would need it.
pub fn lacks(preflight: &Preflight) -> Option<String> {
    let release = release(preflight).filter(|_| preflight.ports.iter().any(has_program))?;
    let lacks: Vec<_> = NEWER
        .iter()
        .filter(|(_, since, _)| release < *since)
        .map(|(what, (major, minor), instead)| {
            format!("without {what} ({major}.{minor}): {instead}")
        })
        .collect();
    (!lacks.is_empty()).then(|| lacks.join("; "))
}

fn release(preflight: &Preflight) -> Option<Release> {
    let mut numbers = preflight.kernel.as_ref()?.split(['.', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
