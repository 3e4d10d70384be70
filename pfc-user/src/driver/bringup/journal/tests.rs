//! Entries of this process and of others.

use nix::sys::stat::Mode;
use nix::unistd::Uid;
use serde_json::json;

use super::files::MAX_ENTRIES;
use super::*;

fn setting(namespace: Option<&str>, feature: Feature, was: bool) -> Setting {
    Setting {
        namespace: namespace.map(str::to_owned),
        inode: 1,
        interface: "eth0".into(),
        index: 7,
        value: Value::Feature { feature, was },
    }
}

/// The entry of a setting in a namespace that is gone.
fn gone() -> What {
    What::Setting(setting(Some("gone-long-ago"), Feature::RxVlan, true))
}

#[test]
fn entries_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let path = write(&journal, "x", gone(), false).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&journal), mode(&path)), (0o700, 0o600));
}

#[test]
fn what_a_driver_holds_off_for_a_program_is_no_failure_to_put_back() {
    let comes_back =
        |feature, was, set: Result<(), LinkError>| setting(None, feature, was).comes_back(&set);
    let held = |feature: Feature| LinkError::Fixed {
        interface: "eth0".into(),
        feature: feature.name(),
        wanted: true,
    };
    for feature in Feature::MERGING {
        assert!(comes_back(feature, true, Err(held(feature))));
        assert!(!comes_back(feature, false, Err(held(feature))));
        let gone = io::Error::from_raw_os_error(libc::EIO);
        let failed = LinkError::System {
            what: String::new(),
            source: gone,
        };
        assert!(!comes_back(feature, true, Err(failed)));
    }
    // No program makes a driver hold this one.
    assert!(!comes_back(
        Feature::RxVlan,
        true,
        Err(held(Feature::RxVlan))
    ));
}

#[test]
fn an_entry_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        Journal::at(folder.path().join("none")).recover().unwrap(),
        Vec::<String>::new()
    );
    fs::write(folder.path().join("1-2-eth0.json"), "{").unwrap();
    let notes = Journal::at(folder.path()).recover().unwrap();
    assert!(
        matches!(
            &notes[..],
            [note] if note.contains("1-2-eth0.json") && note.contains("NOT put back")
        ),
        "{notes:?}"
    );
    assert_eq!(
        Journal::at(folder.path()).undo_kept().unwrap(),
        (notes, false)
    );
}

#[test]
fn what_a_killed_run_left_is_shown_and_undone_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::at(folder.path());
    let path = write(folder.path(), "x", gone(), false).unwrap();
    assert_eq!(journal.left(), Vec::<String>::new(), "its process lives");
    let mut entry = own(&path).unwrap();
    entry.started += 1;
    let (pid, text) = (entry.pid, serde_json::to_vec(&entry).unwrap());
    fs::write(&path, text).unwrap();
    assert_eq!(
        journal.left(),
        [format!(
            "left by process {pid}, which was killed: eth0: rx-vlan-offload was changed; \
             `validator check --undo` puts it back"
        )]
    );
    assert!(path.exists(), "shown, not touched");
    assert_eq!(
        journal.undo().unwrap(),
        (Vec::new(), true),
        "its namespace is gone"
    );
    assert!(!path.exists());
}

/// A folder that is none, or cannot be read, hides no other.
#[test]
fn entries_of_other_users_are_shown_whatever_else_is_in_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    fs::write(place("file"), "").unwrap();
    let path = write(&place("other"), "x", gone(), false).unwrap();
    let mut entry = own(&path).unwrap();
    entry.started += 1;
    fs::write(&path, serde_json::to_vec(&entry).unwrap()).unwrap();
    let long = place(&"x".repeat(300));
    let folders = [
        place("file").join("validator"),
        long.clone(),
        place("other"),
    ];
    let journal = Journal {
        others: folders
            .map(|path| Folder {
                path,
                owner: geteuid(),
            })
            .to_vec(),
        ..Journal::at(place("own"))
    };
    let left = journal.left();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].contains(long.to_str().unwrap()), "{left:?}");
    assert!(left[1].contains("left by a run of user "), "{left:?}");
}

/// Its entry stays, and stands in the way of no other.
#[test]
fn what_cannot_be_put_back_is_told() {
    let fixed = |_: &Namespace| {
        Err(LinkError::Fixed {
            interface: "eth0".into(),
            feature: "gro",
            wanted: true,
        })
    };
    let here = Ok::<_, LinkError>(Reach::Here(Namespace::current().unwrap()));
    let outcome = Outcome::of(&"eth0: gro is on", here, fixed);
    let Outcome::Failed(message) = outcome else {
        panic!("it was not put back");
    };
    assert!(
        message.starts_with("NOT put back: eth0: gro is on: "),
        "{message}"
    );
    let gone = Outcome::of(&"x", Ok::<_, LinkError>(Reach::Gone), fixed);
    assert!(matches!(gone, Outcome::Nothing));
}

/// A user may put anything into the own folder, which root reads.
#[test]
fn what_is_no_entry_of_its_owner_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(format!("{name}.json"));
    nix::unistd::mkfifo(&place("fifo"), Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place("link")).unwrap();
    fs::create_dir(place("folder")).unwrap();
    let huge = fs::File::create(place("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    let refusal = |name: &str| own(&place(name)).unwrap_err().to_string();
    for (name, found) in [
        ("fifo", "something else"),
        ("link", "a symbolic link"),
        ("folder", "something else"),
        ("huge", "more"),
    ] {
        let (message, found) = (refusal(name), format!("found {found}; remove it"));
        assert!(message.contains(&found), "{message}");
    }
    let stranger = Uid::from_raw(geteuid().as_raw() + 1);
    let message = read(&place("huge"), stranger).unwrap_err().to_string();
    assert!(
        message.contains(&format!("found one of {}", user(geteuid()))),
        "{message}"
    );
    // A folder that is another's is no folder of that user.
    let of = |owner| Folder {
        path: folder.path().into(),
        owner,
    };
    assert_eq!(look(&[of(geteuid())]).0.len(), 4);
    assert_eq!(look(&[of(stranger)]).0.len(), 0);
}

/// Entries of each kind with damage in any place are told in words, or are none.
#[test]
fn octets_of_another_user_are_an_entry_or_none() {
    use validator_core::m_key::Protection;
    let way = json!({ "ibsim": { "socket": "s", "host": "h" } });
    let kinds = [
        serde_json::to_value(gone()).unwrap(),
        json!({
            "transport": way, "route": { "directed": "0,1" }, "found": Protection::NONE,
            "guid": 2, "m_key_dut": Protection::NONE.m_key,
        }),
        json!({ "claimed": { "transport": way, "route": { "directed": "0,1" } } }),
        json!({ "claimed": { "fabric": "ibsim s", "guid": 2 } }),
        json!({
            "restore": "r", "variables": [["A", "b"]], "folder": "/", "state": "/", "timeout": 1,
        }),
    ];
    let parse = |octets: &[u8]| serde_json::from_slice::<Entry>(octets);
    for mut kind in kinds {
        (kind["pid"], kind["started"]) = (1.into(), 2.into());
        let text = kind.to_string().into_bytes();
        parse(&text).unwrap_or_else(|error| panic!("{kind}: {error}"));
        for place in 0..text.len() {
            assert!(parse(&text[..place]).is_err(), "{kind} up to {place}");
            for octet in [0, b'"', b',', b'-', b'9', b'[', b'{', 0xff] {
                let mut damaged = text.clone();
                damaged[place] = octet;
                if let Ok(entry) = parse(&damaged) {
                    assert_ne!(entry.what.to_string(), "");
                }
            }
        }
    }
}

/// Neither the memory of this process nor its time is for that user to fill.
#[test]
fn of_another_user_no_more_entries_are_listed_than_a_few() {
    let folder = tempfile::tempdir().unwrap();
    let of = |path: &Path| Folder {
        path: path.into(),
        owner: geteuid(),
    };
    let add = |name: String| fs::write(folder.path().join(name), "").unwrap();
    // Files of other kinds do not count.
    (0..10).for_each(|number| add(format!("{number}.draft")));
    (0..MAX_ENTRIES).for_each(|number| add(format!("{number}.json")));
    let listed = list([&folder.path().to_owned()], 7).unwrap();
    assert_eq!(listed.0.len(), 7);
    let look = || look(&[of(folder.path())]);
    let (seen, notes) = look();
    assert_eq!((seen.len(), notes), (MAX_ENTRIES, Vec::new()));
    add("more.json".into());
    let (seen, notes) = look();
    assert_eq!(seen.len(), MAX_ENTRIES);
    let more = format!("has more than {MAX_ENTRIES} entries there");
    assert!(
        matches!(&notes[..], [note] if note.contains(&more)),
        "{notes:?}"
    );
}

/// Files of other versions and of this one are alike.
#[test]
fn a_setting_is_written_as_one_object() {
    let link = Setting {
        value: Value::Link {
            link: Property::Mtu(9000),
        },
        ..setting(None, Feature::Lro, true)
    };
    for (setting, value) in [
        (
            setting(None, Feature::Lro, true),
            r#""feature":"lro","was":true"#,
        ),
        (link, r#""link":{"mtu":9000}"#),
    ] {
        let text =
            format!(r#"{{"namespace":null,"inode":1,"interface":"eth0","index":7,{value}}}"#);
        assert_eq!(serde_json::to_string(&setting).unwrap(), text);
        let read: What = serde_json::from_str(&text).unwrap();
        assert_eq!(read, What::Setting(setting));
    }
}
