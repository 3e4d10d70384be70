//! A backend that reports its calls to the test, and a server with it.

use std::collections::VecDeque;
use std::io::{Read as _, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use validator::agent::backend::Backend;
use validator::agent::protocol::{
    Channel, Completion, Device, Failure, FailureKind, OpenChannel, QueuePair, Read, Request, State,
};
use validator::agent::server::{self, ServerOptions};

/// Longer than any test, for time-outs that must not expire.
pub const NEVER: Duration = Duration::from_secs(3600);

/// Calls of the backend.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    Made,
    Open(OpenChannel),
    PostRead(Read),
    /// The first piece of a wait.
    Poll,
    Query,
    Close,
    Dropped,
}

/// Instructions to the backend.
#[derive(Default)]
pub struct Script {
    /// Failure of the next open.
    pub open: Option<Failure>,
    /// Failure of the next backend's making.
    pub make: Option<Failure>,
    /// The backend's queries panic.
    pub panic: bool,
    /// Results of successive polls; later ones find nothing.
    pub polls: VecDeque<Vec<Completion>>,
}

pub struct Fake {
    calls: Sender<Call>,
    script: Arc<Mutex<Script>>,
    polling: bool,
}

pub fn device() -> Device {
    Device {
        name: "fake0".into(),
        backend: "simulated".into(),
        apm: Some(false),
        active_mtu: 1024,
    }
}

pub fn attributes() -> QueuePair {
    QueuePair {
        state: State::Rts,
        path_mtu: 1024,
        retry_count: 2,
        timeout: 18,
        psn: 0x123456,
        retries_left: Some(2),
    }
}

pub fn open_channel() -> OpenChannel {
    OpenChannel {
        path_mtu: 1024,
        retry_count: 2,
        timeout: 18,
        remote: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        remote_queue_pair: 0x11,
        psn: 0x123456,
        remote_psn: 0x654321,
    }
}

/// The request that opens a channel.
pub fn open() -> String {
    serde_json::to_string(&Request::Open(open_channel())).unwrap()
}

pub fn channel() -> Channel {
    Channel {
        queue_pair: 0x17,
        address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
        attributes: attributes(),
    }
}

pub fn read() -> Read {
    Read {
        work_request: u64::MAX,
        address: 0x0099_9000,
        r_key: 0x12345,
        length: 1024,
    }
}

pub fn completion() -> Completion {
    Completion {
        work_request: u64::MAX,
        status: 12,
        vendor_error: 0x81,
    }
}

impl Fake {
    fn call(&mut self, call: Call) {
        self.polling = call == Call::Poll;
        // The test may have stopped listening.
        let _ = self.calls.send(call);
    }
}

impl Backend for Fake {
    fn device(&self) -> Device {
        device()
    }

    fn open(&mut self, channel: &OpenChannel) -> Result<Channel, Failure> {
        self.call(Call::Open(channel.clone()));
        self.script
            .lock()
            .unwrap()
            .open
            .take()
            .map_or_else(|| Ok(self::channel()), Err)
    }

    fn post_read(&mut self, read: &Read) -> Result<(), Failure> {
        self.call(Call::PostRead(*read));
        Ok(())
    }

    fn poll(&mut self, wait: Duration) -> Result<Vec<Completion>, Failure> {
        if !self.polling {
            self.call(Call::Poll);
        }
        if let Some(found) = self.script.lock().unwrap().polls.pop_front() {
            return Ok(found);
        }
        thread::sleep(wait);
        Ok(Vec::new())
    }

    fn query(&mut self) -> Result<QueuePair, Failure> {
        assert!(!self.script.lock().unwrap().panic, "a bug");
        self.call(Call::Query);
        Ok(attributes())
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.call(Call::Close);
        Ok(())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.call(Call::Dropped);
    }
}

/// Makes a function that makes backends, and the receiver of their calls.
pub fn maker(
    script: &Arc<Mutex<Script>>,
) -> (
    impl FnMut() -> Result<Box<dyn Backend>, Failure> + Send + use<>,
    Receiver<Call>,
) {
    let (calls, heard) = mpsc::channel();
    let script = script.clone();
    let make = move || {
        if let Some(failure) = script.lock().unwrap().make.take() {
            return Err(failure);
        }
        let _ = calls.send(Call::Made);
        Ok(Box::new(Fake {
            calls: calls.clone(),
            script: script.clone(),
            polling: false,
        }) as Box<dyn Backend>)
    };
    (make, heard)
}

/// A server that ends with the test.
pub struct Served {
    pub address: SocketAddr,
    pub script: Arc<Mutex<Script>>,
    calls: Receiver<Call>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Served {
    pub fn new(token: Option<&str>, idle: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Mutex::new(Script::default()));
        let (make, calls) = maker(&script);
        let (stop, stopped) = oneshot::channel();
        let options = ServerOptions {
            token: token.map(str::to_owned),
            idle,
        };
        let serve = move || {
            server::serve(listener, options, make, async {
                let _ = stopped.await;
            })
        };
        Self {
            address,
            script,
            calls,
            stop: Some(stop),
            thread: Some(thread::spawn(serve)),
        }
    }

    /// Without a token, and without an idle limit.
    pub fn open() -> Self {
        Self::new(None, NEVER)
    }

    /// Waits for the backend's next call.
    pub fn call(&self) -> Call {
        self.calls.recv().unwrap()
    }

    /// Ends the server and returns the remaining calls.
    pub fn rest(mut self) -> Vec<Call> {
        self.end();
        self.calls.try_iter().collect()
    }

    /// Waits for the server to end by itself; true if it panicked.
    pub fn panics(mut self) -> bool {
        self.thread.take().unwrap().join().is_err()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server panicked").unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.end();
        }
    }
}

/// A client that sends raw octets.
pub struct Raw(pub TcpStream);

impl Raw {
    pub fn connect(served: &Served) -> Self {
        Self(TcpStream::connect(served.address).unwrap())
    }

    /// Connects and is welcomed.
    pub fn welcome(served: &Served) -> Self {
        let mut raw = Self::connect(served);
        assert_eq!(
            raw.ask(r#"{"ask":"hello","version":1,"token":null}"#)["answer"],
            "welcome"
        );
        raw
    }

    pub fn send(&mut self, message: &[u8]) {
        self.0.write_all(&frame(message)).unwrap();
    }

    pub fn answer(&mut self) -> Value {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let mut message = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut message).unwrap();
        serde_json::from_slice(&message).unwrap()
    }

    pub fn ask(&mut self, message: &str) -> Value {
        self.send(message.as_bytes());
        self.answer()
    }

    /// Asserts that nothing more arrives and that the server closed the connection in good order.
    pub fn ended(mut self) {
        assert_eq!(self.0.read(&mut [0]).unwrap(), 0);
    }

    /// Returns everything that the server sends until the end; a reset also is an end.
    pub fn rest(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.0.shutdown(Shutdown::Write);
        let _ = self.0.read_to_end(&mut rest);
        rest
    }
}

pub fn frame(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes(), message].concat()
}

#[track_caller]
pub fn assert_failed(answer: &Value, kind: FailureKind, message: &str) {
    assert_eq!(answer["answer"], "failed", "{answer}");
    assert_eq!(
        answer["kind"],
        serde_json::to_value(kind).unwrap(),
        "{answer}"
    );
    assert_eq!(answer["message"], message, "{answer}");
}
