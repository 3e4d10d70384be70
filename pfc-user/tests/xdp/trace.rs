//! Lines that the traced variant of the program writes about frames.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use pfc_ebpf::abi::Trust;
use pfc_ebpf::wire::mac_control::MacControl;
use validator::driver::bpf::{AccountProgram, Sizes, TraceOutput};
use validator::driver::kernel::realtime;

use crate::frames::TestFrame;
use crate::xdp::{DROP, PASS, config, flows, stamp};

const PEER: [u8; 6] = [0x02, 0, 0, 0, 0, 5];
const SIZES: Sizes = Sizes {
    flows: 8,
    windows: 8,
};

/// Keeps what is written, for another to read.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn lines(&self) -> Vec<String> {
        let octets = self.0.lock().unwrap();
        let text = std::str::from_utf8(&octets).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

fn traced(kept: &Kept) -> AccountProgram {
    let output = TraceOutput::new(kept.clone());
    let mut account = AccountProgram::load_traced(SIZES, "rx", &output).unwrap();
    account.configure(&config(Trust::Dscp), &flows(8)).unwrap();
    account
}

#[test]
fn root_a_traced_program_says_what_it_does_with_each_frame() {
    let kept = Kept::default();
    let account = traced(&kept);
    let test = TestFrame::new(stamp(3, 12)).octets();
    let pfc = MacControl::Pfc {
        vector: 0x88,
        quanta: [0, 1, 2, 65_535, 4, 5, 6, 7],
    };
    let mut arp = vec![0xff; 6];
    arp.extend([PEER.as_slice(), &[0x08, 0x06], &[0; 46]].concat());
    let mut cut = test.clone();
    cut.truncate(30);
    for (frame, action) in [
        (test, DROP),
        (pfc.emit(PEER).to_vec(), DROP),
        (MacControl::Pause { quanta: 9 }.emit(PEER).to_vec(), DROP),
        (arp, PASS),
        (cut, PASS),
    ] {
        assert_eq!(account.test_run(&frame, 1).unwrap().action, action);
    }
    let counted = account.port_counters().unwrap();
    assert_eq!((counted.test_frames, counted.other), (1, 1));
    // It takes the last lines.
    drop(account);
    assert_eq!(
        kept.lines(),
        [
            "rx: test frame: run 7 flow 3 phase storm sequence 12: drop",
            "rx: PFC: vector 0x88 times 0 1 2 65535 4 5 6 7: drop",
            "rx: PAUSE: time 9: drop",
            "rx: other frame: no DSCP no PCP: pass",
            "rx: malformed frame: Ipv4Truncated: pass",
        ]
    );
}

#[test]
fn root_a_traced_program_writes_no_more_than_its_reader_can_read() {
    let kept = Kept::default();
    // All on one CPU: each has lines of its own.
    assert!(realtime::pin(realtime::allowed_cpus()[0]));
    let account = traced(&kept);
    let pause = MacControl::Pause { quanta: 9 }.emit(PEER);
    let begin = std::time::Instant::now();
    account.test_run(&pause, 20_000).unwrap();
    let seconds = begin.elapsed().as_secs() as usize + 1;
    drop(account);
    let lines = kept.lines().len();
    assert!(
        (100..=100 * (seconds + 1)).contains(&lines),
        "{lines} lines in less than {seconds} s"
    );
}
