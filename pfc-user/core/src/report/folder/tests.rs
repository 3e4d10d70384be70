//! Links and other files that somebody puts in the place of folders and files.

use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;

fn write(folder: &mut Folder, name: &str) -> Result<(), ReportError> {
    folder.write(name, |out| out.write_all(b"written"))
}

#[test]
fn a_folder_that_is_swapped_for_a_link_leads_nowhere() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let kept = path("elsewhere/evidence.json");
    let untouched = || {
        assert_eq!(fs::read(&kept).unwrap(), b"kept");
        assert_eq!(fs::read_dir(path("elsewhere")).unwrap().count(), 1);
    };
    fs::create_dir(path("elsewhere")).unwrap();
    fs::write(&kept, "kept").unwrap();
    let mut folder = Folder::make(&path("out")).unwrap();
    fs::rename(path("out"), path("moved")).unwrap();
    symlink(path("elsewhere"), path("out")).unwrap();
    write(&mut folder, EVIDENCE).unwrap();
    folder.renew_captures().unwrap();
    write(&mut folder, "captures/a.pcapng").unwrap();
    for name in [EVIDENCE, "captures/a.pcapng"] {
        assert_eq!(fs::read(path("moved").join(name)).unwrap(), b"written");
    }
    untouched();

    // A folder of captures that was moved is still written to; a link put there before it is opened
    // is refused.
    fs::rename(path("moved/captures"), path("captures")).unwrap();
    symlink(path("elsewhere"), path("moved/captures")).unwrap();
    write(&mut folder, "captures/b.pcapng").unwrap();
    assert_eq!(fs::read(path("captures/b.pcapng")).unwrap(), b"written");
    let error = folder.renew_captures().unwrap_err().to_string();
    let says = "out/captures: cannot be written: expected a directory, found a symbolic link";
    assert!(error.contains(says), "{error}");
    untouched();
}

#[test]
fn a_file_that_is_vacated_is_made_anew() {
    let place = tempfile::tempdir().unwrap();
    let precious = place.path().join("precious");
    fs::write(&precious, "kept").unwrap();
    let mut folder = Folder::make(&place.path().join("out")).unwrap();
    fs::write(folder.vacate(TRACE).unwrap(), "old").unwrap();
    fs::remove_file(place.path().join("out").join(TRACE)).unwrap();
    symlink(&precious, place.path().join("out").join(TRACE)).unwrap();
    let mut file = File::create_new(folder.vacate(TRACE).unwrap()).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(fs::read(&precious).unwrap(), b"kept");
}

#[test]
fn a_list_of_somebody_else_is_read_up_to_a_length() {
    let place = tempfile::tempdir().unwrap();
    let of_others = |length: u64| {
        let mut marker = File::create(place.path().join(MARKER)).unwrap();
        write!(marker, "{HEADING}\n{REPORT}\n").unwrap();
        marker.set_len(length).unwrap();
        listed(place.path())
    };
    let own = BTreeSet::from([REPORT.to_owned()]);
    assert_eq!(of_others(LONGEST).unwrap(), Some(own));
    let error = of_others(1 << 30).unwrap_err().to_string();
    let expected = "expected at most 1048576 octets in its validator.txt, found more";
    assert!(error.contains(expected), "{error}");
    // A long file that is no list is one of somebody else.
    let file = File::create(place.path().join(MARKER)).unwrap();
    file.set_len(1 << 30).unwrap();
    assert_eq!(listed(place.path()).unwrap(), None);
}

#[test]
fn nobody_is_led_or_held_up_by_what_is_no_list_and_no_folder() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::write(path("precious"), format!("{HEADING}\n{REPORT}\n")).unwrap();
    symlink(path("precious"), path(MARKER)).unwrap();
    assert_eq!(listed(place.path()).unwrap(), None);
    fs::remove_file(path(MARKER)).unwrap();
    fs::create_dir(path(MARKER)).unwrap();
    assert_eq!(listed(place.path()).unwrap(), None);
    fs::remove_dir(path(MARKER)).unwrap();
    // Nobody ever writes into it.
    let made = Command::new("mkfifo").arg(path(MARKER)).status().unwrap();
    assert!(made.success());
    for name in ["precious", MARKER] {
        let error = Opened::folder(&path(name)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory, "{name}");
    }
    assert_eq!(listed(place.path()).unwrap(), None);
}
