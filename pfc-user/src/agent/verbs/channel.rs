//! One RC queue pair with all that belongs to it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use rdma_mummy_sys::{ibv_ack_cq_events, ibv_get_cq_event, ibv_req_notify_cq};
use sideway::ibverbs::AccessFlags;
use sideway::ibverbs::address::AddressHandleAttribute;
use sideway::ibverbs::completion::{
    BasicCompletionQueue, CompletionChannel, CompletionQueue, GenericCompletionQueue,
    PollCompletionQueueError,
};
use sideway::ibverbs::device_context::{DeviceContext, Mtu};
use sideway::ibverbs::memory_region::MemoryRegion;
use sideway::ibverbs::queue_pair::{
    BasicQueuePair, PostSendGuard, QueuePair as _, QueuePairAttribute, QueuePairAttributeMask,
    QueuePairState, QueuePairType, SetScatterGatherEntry, WorkRequestFlags,
};

use super::port::{self, Source};
use super::{errno, verbs};
use crate::agent::protocol::{
    Completion, Failure, FailureKind, OpenChannel, QueuePair, Read, State,
};

/// Requests that fit into the send queue: the case's own, and the one that is flushed after it.
const SEND_QUEUE: u32 = 4;
/// The usual default of hosts.
const HOP_LIMIT: u8 = 64;
/// Retries without end if the responder is not ready (RNR NAK, table 45). The tester never sends
/// that NAK.
const RNR_RETRY: u8 = 7;
/// Code of 0.64 ms; nothing is ever received.
const MIN_RNR_TIMER: u8 = 12;

/// Fields in the order in which they have to be dropped.
pub struct Open {
    queue_pair: BasicQueuePair,
    region: Arc<MemoryRegion>,
    /// Target of the READs; its contents are not read. The adapter may write to it while `region`
    /// exists.
    buffer: Vec<u8>,
    completions: Arc<BasicCompletionQueue>,
    events: Arc<CompletionChannel>,
}

impl Open {
    /// Makes the queue pair and brings it to RTS. A failure releases what was made before it.
    pub fn new(
        context: &Arc<DeviceContext>,
        number: u8,
        source: &Source,
        wanted: &OpenChannel,
    ) -> Result<Self, Failure> {
        let path_mtu = port::mtu(wanted.path_mtu).ok_or_else(|| {
            let message = format!(
                "expected a path MTU of 256, 512, 1024, 2048 or 4096, found {}",
                wanted.path_mtu
            );
            Failure::new(FailureKind::Request, &message)
        })?;
        let domain = context
            .alloc_pd()
            .map_err(|error| verbs("allocate a protection domain", &error))?;
        let mut buffer = vec![0; usize::from(wanted.path_mtu)];
        // SAFETY: the buffer is on the heap, is neither resized nor read, and is dropped after the
        // region.
        let region = unsafe {
            domain.reg_mr(
                buffer.as_mut_ptr() as usize,
                buffer.len(),
                AccessFlags::LocalWrite,
            )
        };
        let region = region.map_err(|error| {
            verbs(
                &format!("register {} octets of memory", wanted.path_mtu),
                &error,
            )
        })?;
        let events = context
            .create_comp_channel()
            .map_err(|error| verbs("create a completion channel", &error))?;
        events
            .set_nonblocking(true)
            .map_err(|error| verbs("make the completion channel non-blocking", &error))?;
        let completions = context
            .create_cq_builder()
            .setup_cqe(2 * SEND_QUEUE)
            .setup_comp_channel(&events, 0)
            .build();
        let completions =
            completions.map_err(|error| verbs("create a completion queue", &error))?;
        let queue = GenericCompletionQueue::from(Arc::clone(&completions));
        let mut builder = domain.create_qp_builder();
        builder
            .setup_qp_type(QueuePairType::ReliableConnection)
            .setup_max_send_wr(SEND_QUEUE)
            .setup_max_recv_wr(1);
        builder.setup_send_cq(queue.clone()).setup_recv_cq(queue);
        let queue_pair = builder
            .build()
            .map_err(|error| verbs("create an RC queue pair", &error))?;
        let mut open = Self {
            queue_pair,
            region,
            buffer,
            completions,
            events,
        };

        open.initialise(number)?;
        open.make_ready_to_receive(number, source, path_mtu, wanted)?;
        open.make_ready_to_send(wanted)?;
        Ok(open)
    }

    fn initialise(&mut self, number: u8) -> Result<(), Failure> {
        let mut init = QueuePairAttribute::new();
        init.setup_state(QueuePairState::Init)
            .setup_pkey_index(0)
            .setup_port(number)
            .setup_access_flags(AccessFlags::none());
        self.modify("INIT", &init)
    }

    fn make_ready_to_receive(
        &mut self,
        number: u8,
        source: &Source,
        path_mtu: Mtu,
        wanted: &OpenChannel,
    ) -> Result<(), Failure> {
        let mut path = AddressHandleAttribute::new();
        path.setup_port(number)
            .setup_grh(&port::gid(wanted.remote), 0, source.index, HOP_LIMIT, 0);
        let mut receive = QueuePairAttribute::new();
        receive
            .setup_state(QueuePairState::ReadyToReceive)
            .setup_path_mtu(path_mtu)
            .setup_address_vector(&path);
        receive
            .setup_dest_qp_num(wanted.remote_queue_pair)
            .setup_rq_psn(wanted.remote_psn);
        receive
            .setup_max_dest_read_atomic(1)
            .setup_min_rnr_timer(MIN_RNR_TIMER);
        let path = format!(
            "RTR with the path from {} to {}",
            source.address, wanted.remote
        );
        self.modify(&path, &receive)
    }

    fn make_ready_to_send(&mut self, wanted: &OpenChannel) -> Result<(), Failure> {
        let mut send = QueuePairAttribute::new();
        send.setup_state(QueuePairState::ReadyToSend)
            .setup_sq_psn(wanted.psn)
            .setup_max_read_atomic(1);
        send.setup_timeout(wanted.timeout)
            .setup_retry_cnt(wanted.retry_count)
            .setup_rnr_retry(RNR_RETRY);
        let retries = format!(
            "RTS with time-out {} and retry count {}",
            wanted.timeout, wanted.retry_count
        );
        self.modify(&retries, &send)
    }

    fn modify(&mut self, to: &str, attributes: &QueuePairAttribute) -> Result<(), Failure> {
        self.queue_pair.modify(attributes).map_err(|error| {
            // The kernel resolves the remote's MAC address in the transition to RTR.
            let unresolved = [Errno::ETIMEDOUT, Errno::EHOSTUNREACH, Errno::ENETUNREACH];
            let kind = match errno(&error).map(Errno::from_raw) {
                Some(code) if unresolved.contains(&code) => FailureKind::Neighbour,
                _ => FailureKind::State,
            };
            let why = super::chain(&error);
            let advice = if kind == FailureKind::Neighbour {
                "; is there a route and a neighbour entry for it on the DUT host?"
            } else {
                ""
            };
            Failure::new(
                kind,
                format!("modify the queue pair to {to}: {why}{advice}"),
            )
        })
    }

    pub fn number(&self) -> u32 {
        self.queue_pair.qp_number()
    }

    pub fn post_read(&mut self, read: &Read) -> Result<(), Failure> {
        if read.length as usize > self.buffer.len() {
            let message = format!(
                "expected a READ of at most {} octets, the path MTU, found {}",
                self.buffer.len(),
                read.length
            );
            return Err(Failure::new(FailureKind::Request, message));
        }
        let mut send = self.queue_pair.start_post_send();
        let request = send
            .construct_wr(read.work_request, WorkRequestFlags::Signaled)
            .setup_read(read.r_key, read.address);
        // SAFETY: the region is registered, at least as long, and outlives the queue pair.
        unsafe {
            request.setup_sge(
                self.region.lkey(),
                self.region.get_ptr() as u64,
                read.length,
            )
        };
        send.post()
            .map_err(|error| verbs("post an RDMA READ", &error))
    }

    /// Takes the completions there are, or waits for the queue's event.
    pub fn poll(&mut self, wait: Duration) -> Result<Vec<Completion>, Failure> {
        let until = Instant::now() + wait;
        loop {
            // Computed before the queue is read, so that an empty result covers the whole wait.
            let left = until.saturating_duration_since(Instant::now());
            let taken = self.take()?;
            if !taken.is_empty() {
                return Ok(taken);
            }
            self.ask_for_event()?;
            // A completion that came before the event was requested raises none.
            let taken = self.take()?;
            if !taken.is_empty() || left.is_zero() {
                return Ok(taken);
            }
            self.wait(left)?;
        }
    }

    fn take(&self) -> Result<Vec<Completion>, Failure> {
        match self.completions.start_poll() {
            Ok(taken) => Ok(taken
                .map(|one| Completion {
                    work_request: one.wr_id(),
                    status: one.status(),
                    vendor_error: one.vendor_err(),
                })
                .collect()),
            Err(PollCompletionQueueError::CompletionQueueEmpty) => Ok(Vec::new()),
            Err(error) => Err(verbs("poll the completion queue", &error)),
        }
    }

    fn ask_for_event(&self) -> Result<(), Failure> {
        // SAFETY: the queue lives as long as `self`.
        let code = unsafe { ibv_req_notify_cq(self.completions.cq().as_ptr(), 0) };
        if code == 0 {
            Ok(())
        } else {
            Err(verbs(
                "ask for the completion queue's event",
                &io::Error::from_raw_os_error(code.abs()),
            ))
        }
    }

    /// Waits at most `time` for an event and takes it.
    fn wait(&self, time: Duration) -> Result<(), Failure> {
        // SAFETY: the channel and its descriptor live as long as `self`.
        let descriptor = unsafe { BorrowedFd::borrow_raw(self.events.as_raw_fd()) };
        // Rounded up: a time-out below a millisecond would become 0.
        let milliseconds = time.as_micros().div_ceil(1000);
        let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
        match nix::poll::poll(
            &mut [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)],
            timeout,
        ) {
            Ok(0) | Err(Errno::EINTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(verbs("wait for a completion", &error)),
        }
        let (mut queue, mut context) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the channel lives as long as `self`, and has this one queue.
        let code = unsafe {
            ibv_get_cq_event(
                self.events.comp_channel().as_ptr(),
                &raw mut queue,
                &raw mut context,
            )
        };
        if code != 0 {
            return Err(verbs(
                "take the completion queue's event",
                &io::Error::last_os_error(),
            ));
        }
        // SAFETY: the event was just taken from this queue, which cannot be destroyed before.
        unsafe { ibv_ack_cq_events(self.completions.cq().as_ptr(), 1) };
        Ok(())
    }

    pub fn query(&self) -> Result<QueuePair, Failure> {
        let mask = QueuePairAttributeMask::State
            | QueuePairAttributeMask::PathMtu
            | QueuePairAttributeMask::RetryCount
            | QueuePairAttributeMask::Timeout
            | QueuePairAttributeMask::SendQueuePacketSequenceNumber;
        let (read, _) = self
            .queue_pair
            .query(mask)
            .map_err(|error| verbs("query the queue pair", &error))?;
        let state = state(read.state()).ok_or_else(|| {
            Failure::new(
                FailureKind::Verbs,
                "query the queue pair: it is in no known state",
            )
        })?;
        Ok(QueuePair {
            state,
            path_mtu: port::octets(read.path_mtu()),
            retry_count: read.retry_cnt(),
            timeout: read.timeout(),
            psn: read.sq_psn(),
            retries_left: None,
        })
    }
}

fn state(state: QueuePairState) -> Option<State> {
    Some(match state {
        QueuePairState::Reset => State::Reset,
        QueuePairState::Init => State::Init,
        QueuePairState::ReadyToReceive => State::Rtr,
        QueuePairState::ReadyToSend => State::Rts,
        QueuePairState::SendQueueDrain => State::Sqd,
        QueuePairState::SendQueueError => State::SqError,
        QueuePairState::Error => State::Error,
        QueuePairState::Unknown => return None,
    })
}
