//! Facts about an InfiniBand adapter, from sysfs. Nothing is changed.

use std::fs;
use std::path::Path;

use validator_core::evidence::preflight::{Driver, Facts};

/// The facts about `port` of the adapter `device`; `None` where `sysfs`, normally `/sys`, has none.
/// Facts that it does not have are left open.
pub fn examine(device: &str, port: u8, sysfs: &Path) -> Option<Facts> {
    let folder = sysfs.join("class/infiniband").join(device);
    let of_port = folder.join("ports").join(port.to_string());
    if !of_port.is_dir() {
        return None;
    }
    let text = |path: &Path| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let target = |name: &str| {
        let path = fs::read_link(folder.join(name)).unwrap_or_default();
        let last = path.file_name().unwrap_or_default();
        last.to_string_lossy().into_owned()
    };
    // As drivers show it to ethtool.
    let firmware = match (text(&folder.join("fw_ver")), text(&folder.join("board_id"))) {
        (version, board) if board.is_empty() => version,
        (version, board) => format!("{version} ({board})"),
    };
    Some(Facts {
        // As iproute2's `rdma link` writes it.
        interface: format!("{device}/{port}"),
        driver: Driver {
            name: target("device/driver"),
            version: text(&folder.join("device/driver/module/version")),
            firmware: firmware.trim_start().to_owned(),
            bus: target("device"),
        },
        // Such as `4: ACTIVE` and `5: LinkUp`.
        up: text(&of_port.join("state")).ends_with("ACTIVE"),
        carrier: text(&of_port.join("phys_state")).ends_with("LinkUp"),
        ..Facts::default()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// Part of a sysfs with the adapter `mlx5_0`, laid out as Linux does it.
    fn sysfs(files: &[(&str, &str)]) -> tempfile::TempDir {
        let sysfs = tempfile::tempdir().unwrap();
        let path = |name: &str| -> PathBuf { sysfs.path().join(name) };
        let adapter = path("devices/0000:03:00.0/infiniband/mlx5_0");
        for folder in [&adapter, &path("class/infiniband")] {
            fs::create_dir_all(folder).unwrap();
        }
        symlink(&adapter, path("class/infiniband/mlx5_0")).unwrap();
        symlink("../../../0000:03:00.0", adapter.join("device")).unwrap();
        let driver = path("devices/0000:03:00.0/driver");
        symlink("../../bus/pci/drivers/mlx5_core", driver).unwrap();
        for (name, text) in files {
            let file = adapter.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }
        sysfs
    }

    #[test]
    fn driver_and_firmware_are_those_of_sysfs() {
        let sysfs = sysfs(&[
            ("fw_ver", "28.39.1002"),
            ("board_id", "MT_0000000838"),
            ("ports/1/state", "4: ACTIVE"),
            ("ports/1/phys_state", "5: LinkUp"),
            ("ports/2/state", "1: DOWN"),
            ("ports/2/phys_state", "3: Disabled"),
        ]);
        let driver = Driver {
            name: "mlx5_core".into(),
            version: String::new(),
            firmware: "28.39.1002 (MT_0000000838)".into(),
            bus: "0000:03:00.0".into(),
        };
        for (port, up) in [(1, true), (2, false)] {
            let expected = Facts {
                interface: format!("mlx5_0/{port}"),
                driver: driver.clone(),
                up,
                carrier: up,
                ..Facts::default()
            };
            assert_eq!(examine("mlx5_0", port, sysfs.path()), Some(expected));
        }
        for (device, port) in [("mlx5_0", 3), ("mlx5_1", 1)] {
            assert_eq!(examine(device, port, sysfs.path()), None);
        }
    }

    #[test]
    fn what_a_driver_does_not_tell_is_left_open() {
        const PORT: (&str, &str) = ("ports/1/lid", "0x1");
        for (files, firmware) in [
            (&[PORT][..], ""),
            (&[PORT, ("fw_ver", "1.2")][..], "1.2"),
            (&[PORT, ("board_id", "X")][..], "(X)"),
        ] {
            let facts = examine("mlx5_0", 1, sysfs(files).path()).unwrap();
            assert_eq!(facts.driver.firmware, firmware);
            assert!(!facts.up && !facts.carrier);
        }
    }
}
