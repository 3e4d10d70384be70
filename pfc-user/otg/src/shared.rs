//! State that the requests of all connections share, and the calls on it.

use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prost_reflect::DynamicMessage;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};
use validator_core::engine::snapshot::SAMPLING;

use crate::access::Access;
use crate::api::{Answer, Operation};
use crate::body::Room;
use crate::error::Refusal;
use crate::session::Session;

/// State that the requests of all connections share.
pub struct Shared {
    /// `None` once the server stops.
    session: Mutex<Option<Session>>,
    /// Held by the call that is read and carried out: once read, it takes many times its octets.
    turn: Mutex<()>,
    /// Clients that may use the server.
    pub access: Access,
    /// Sink of messages that no client asks for.
    pub warn: fn(&str),
    /// Memory for requests that are coming in or are carried out.
    pub room: Room,
    /// Time of the last sign of life of a client.
    last: watch::Sender<Instant>,
}

impl Shared {
    /// Makes the state of a server; `last` is told of each sign of life of a client.
    pub fn new(
        session: Session,
        access: Access,
        warn: fn(&str),
        last: watch::Sender<Instant>,
    ) -> Self {
        Self {
            session: Mutex::new(Some(session)),
            turn: Mutex::default(),
            access,
            warn,
            room: Room::new(),
            last,
        }
    }

    /// Carries out an operation on a thread that may block. `room` is free once that is done, even
    /// if the client has gone before.
    ///
    /// # Errors
    ///
    /// Errors of the argument and of the operation.
    pub async fn perform(
        self: &Arc<Self>,
        operation: &'static Operation,
        room: Option<OwnedSemaphorePermit>,
        argument: impl FnOnce() -> Result<DynamicMessage, Refusal> + Send + 'static,
    ) -> Result<Answer, Refusal> {
        self.asked();
        self.blocking(move |shared| {
            let _room = room;
            let _turn = shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let argument = argument()?;
            shared.with_session(|session| {
                let answer = (operation.perform)(session, argument);
                // A long request is no silence of the client.
                shared.asked();
                answer
            })
        })
        .await
    }

    /// Notes a sign of life of a client.
    pub fn asked(&self) {
        self.last.send_replace(Instant::now());
    }

    /// Returns the time since the last sign of life of a client, which a request gives when it
    /// begins and when it has been carried out.
    pub fn silence(&self) -> Duration {
        self.last.borrow().elapsed()
    }

    /// Runs `look` on the session, on a thread that may block. By itself, this is no request of a
    /// client.
    ///
    /// # Errors
    ///
    /// Errors of `look`.
    pub async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&mut Session) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.blocking(move |shared| shared.with_session(look)).await
    }

    /// Notes counts as often as rates need it; returns only if the server is gone.
    pub async fn sample(self: Arc<Self>) {
        let mut ticks = interval(Duration::from_nanos(SAMPLING));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let sampled = self.look(|session| {
                session.sample();
                Ok(())
            });
            let sampled = sampled.await;
            if sampled.is_err() {
                return pending().await;
            }
        }
    }

    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let shared = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.unwrap_or_else(|error| Err(Refusal::internal(format!("the request failed: {error}"))))
    }

    fn with_session<T>(
        &self,
        work: impl FnOnce(&mut Session) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let Ok(mut session) = self.session.lock() else {
            return Err(Refusal::internal(
                "an earlier request made the engine fail: restart the server",
            ));
        };
        match session.as_mut() {
            Some(session) => work(session),
            None => Err(Refusal::internal("the server stops")),
        }
    }

    /// Drops the engine, which puts the ports back as it found them.
    pub async fn close(self: Arc<Self>) {
        let dropped = tokio::task::spawn_blocking(move || {
            let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            drop(session.take());
        });
        if let Err(error) = dropped.await {
            // The engine panicked; the message is on standard error.
            debug_assert!(error.is_panic());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::OPERATIONS;

    #[tokio::test]
    async fn a_call_is_read_in_its_turn_alone() {
        let shared = Arc::new(Shared {
            session: Mutex::new(None),
            turn: Mutex::default(),
            access: Access::open(),
            warn: |_| {},
            room: Room::new(),
            last: watch::channel(Instant::now()).0,
        });
        let (sender, receiver) = std::sync::mpsc::channel();
        let reads = Arc::clone(&shared);
        let argument = move || {
            sender.send(reads.turn.try_lock().is_err()).unwrap();
            Ok(crate::model::message("Config"))
        };
        let done = shared.perform(&OPERATIONS[0], None, argument).await;
        assert!(done.is_err_and(|refusal| refusal.errors == ["the server stops"]));
        assert_eq!(receiver.recv(), Ok(true));
        assert!(shared.turn.try_lock().is_ok());
    }
}
