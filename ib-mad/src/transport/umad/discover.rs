//! Finds the file `umadN` of a port, and says why there is none.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{OpenError, abi};

/// Link layer of InfiniBand, in sysfs.
const INFINIBAND: &str = "InfiniBand";

/// Returns the name of the file for `port` of `device`.
pub(super) fn umad(device: &str, port: u8, sysfs: &Path) -> Result<String, OpenError> {
    let (devices, umads) = (
        sysfs.join("class/infiniband"),
        sysfs.join("class/infiniband_mad"),
    );
    let present = names(&devices)?;
    // A name with a slash is never among them, so it cannot lead elsewhere.
    if !present.iter().any(|name| name == device) {
        return Err(OpenError::NoDevice {
            device: device.to_owned(),
            present,
        });
    }
    let ports = devices.join(device).join("ports");
    let present = names(&ports)?;
    if !present.contains(&port.to_string()) {
        return Err(OpenError::NoPort {
            device: device.to_owned(),
            port,
            present,
        });
    }
    let link_layer = read(&ports.join(port.to_string()).join("link_layer"))?;
    if link_layer != INFINIBAND {
        return Err(OpenError::LinkLayer {
            device: device.to_owned(),
            port,
            found: link_layer,
        });
    }
    for name in names(&umads)? {
        let folder = umads.join(&name);
        if name.starts_with("umad")
            && read(&folder.join("ibdev"))? == device
            && read(&folder.join("port"))? == port.to_string()
        {
            let found = read(&umads.join("abi_version"))?;
            return if found == abi::VERSION.to_string() {
                Ok(name)
            } else {
                Err(OpenError::Abi(found))
            };
        }
    }
    Err(OpenError::NoUmad {
        device: device.to_owned(),
        port,
    })
}

/// Lists the names in a folder, sorted; empty if the folder does not exist.
fn names(folder: &Path) -> Result<Vec<String>, OpenError> {
    let failed = |source| OpenError::System {
        path: folder.to_owned(),
        source,
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut names = entries
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    names.sort();
    Ok(names)
}

/// Reads a file's text.
fn read(path: &PathBuf) -> Result<String, OpenError> {
    let text = fs::read_to_string(path).map_err(|source| OpenError::System {
        path: path.clone(),
        source,
    })?;
    Ok(text.trim().to_owned())
}
