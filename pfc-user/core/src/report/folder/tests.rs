//! Links and other files that somebody puts in the place of folders and files.

use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

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

/// Names and texts of the files in `folder`.
fn texts(folder: &Path) -> Vec<(String, String)> {
    let text = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    let mut texts: Vec<_> = fs::read_dir(folder).unwrap().map(text).collect();
    texts.sort();
    texts
}

#[test]
fn a_staged_file_takes_its_place_when_the_run_begins() {
    let place = tempfile::tempdir().unwrap();
    let (out, precious) = (place.path().join("out"), place.path().join("precious"));
    fs::write(&precious, "kept").unwrap();
    let mut earlier = Folder::make(&out).unwrap();
    for name in [EVIDENCE, TRACE] {
        write(&mut earlier, name).unwrap();
    }
    fs::remove_file(out.join(TRACE)).unwrap();
    symlink(&precious, out.join(TRACE)).unwrap();

    let mut folder = Folder::examine(&out, false).unwrap();
    let mut file = File::create_new(folder.stage(TRACE).unwrap()).unwrap();
    assert_eq!(fs::read(out.join(EVIDENCE)).unwrap(), b"written");
    folder.begin().unwrap();
    // Later writes go there, too.
    file.write_all(b"new").unwrap();
    drop(folder);
    let of = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let marker = format!("{HEADING}\n{TRACE}\n");
    assert_eq!(texts(&out), [of(TRACE, "new"), of(MARKER, &marker)]);
    assert_eq!(fs::read(&precious).unwrap(), b"kept");
}

#[test]
fn a_run_that_is_refused_leaves_what_it_found() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let mut earlier = Folder::make(&out).unwrap();
    for name in [EVIDENCE, TRACE] {
        write(&mut earlier, name).unwrap();
    }
    let refuse = |path: &Path| {
        let mut folder = Folder::examine(path, false).unwrap();
        File::create_new(folder.stage(TRACE).unwrap()).unwrap();
    };
    let before = texts(&out);
    refuse(&out);
    assert_eq!(texts(&out), before);

    let new = place.path().join("new");
    refuse(&new);
    assert!(!new.exists());
}

#[test]
fn what_cannot_be_replaced_is_refused_before_the_run() {
    for name in FILES.into_iter().chain([MARKER]) {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(name)).unwrap();
        let error = Folder::examine(place.path(), true).unwrap_err().to_string();
        let says = format!("{name}: cannot be written: expected a file, found a directory; remove");
        assert!(error.contains(&says), "{error}");
    }
    for link in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let captures = place.path().join(CAPTURES);
        match link {
            true => symlink(place.path(), captures).unwrap(),
            false => fs::write(captures, "").unwrap(),
        }
        let error = Folder::examine(place.path(), true).unwrap_err().to_string();
        assert!(
            error.contains("captures: cannot be written: expected a directory"),
            "{error}"
        );
    }
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
    mkfifo(&path(MARKER), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    for name in ["precious", MARKER] {
        let error = Opened::folder(&path(name)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory, "{name}");
    }
    assert_eq!(listed(place.path()).unwrap(), None);
}
