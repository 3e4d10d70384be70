//! A server that is ended while it sends: what it leaves.

use std::io::Write as _;
use std::path::Path;

use nix::sys::signal::Signal;
use validator::driver::kernel::netns::Namespace;

use crate::common;
use crate::otg::server::{MTU, Server, config, endless, flow, ports, run, until};
use crate::otg::settings::{LONG, busy, entries, is_free, settings};

/// A server that sends, whose links are all up.
fn sending(namespace: &Namespace, journal: &Path) -> Server {
    let server = Server::start(namespace, journal);
    server.request("POST /config", &config(LONG, &[flow("f", 1000, endless())]));
    server.start_flows();
    until("frames", || {
        server.flows()[0]["frames_rx"].as_u64() > Some(10)
    });
    server
}

#[test]
fn root_a_server_that_is_ended_while_it_sends_leaves_the_ports_as_it_found_them() {
    let test = "root_a_server_that_is_ended_while_it_sends_leaves_the_ports_as_it_found_them";
    if !common::need_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (namespace, journal) = (ports(), folder.path());
    let found = settings(&namespace);
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        for begin in [busy, sending] {
            let server = begin(&namespace, journal);
            assert_ne!(settings(&namespace), found);
            // One client is in the middle of a request, another has not begun one.
            let mut slow = server.connect();
            slow.write_all(b"POST /config HTTP/1.1\r\nHost: localhost\r\n")
                .unwrap();
            let silent = server.connect();
            server.end(signal);
            assert_eq!(settings(&namespace), found, "{signal}");
            assert!(is_free(&namespace), "{signal}: a program is left");
            assert_eq!(entries(journal), 0, "{signal}");
            drop((slow, silent));
        }
    }
}

#[test]
fn root_a_killed_server_leaves_no_program_and_its_settings_are_put_back() {
    let test = "root_a_killed_server_leaves_no_program_and_its_settings_are_put_back";
    if !common::need_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (namespace, journal) = (ports(), folder.path());
    let found = settings(&namespace);
    assert_eq!((found[0].mtu, found[0].up, found[1].up), (MTU, true, true));

    for undo in [true, false] {
        let server = busy(&namespace, journal);
        server.kill();
        until("both ports without a program", || is_free(&namespace));
        let left = settings(&namespace);
        assert_eq!((left[0].mtu, left[1].up), (LONG, false));
        if undo {
            let undone = run(&namespace, journal, &["check", "--undo"]);
            assert!(undone.status.success(), "{undone:?}");
        } else {
            // The next server finds the journal.
            let server = Server::start(&namespace, journal);
            assert_eq!(settings(&namespace), found);
            server.stop();
        }
        assert_eq!(settings(&namespace), found);
        assert_eq!(entries(journal), 0);
    }
}
