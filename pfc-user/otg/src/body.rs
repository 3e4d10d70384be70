//! Bodies of requests, with limits of length and time, and of memory for all that are coming in or
//! are carried out.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::{Refusal, Why};

/// Longest request, in octets: a configuration of 4096 flows has about 8 MiB of JSON.
pub const LONGEST: usize = 64 << 20;
/// Longest time for a request to come in.
pub const REQUEST: Duration = Duration::from_secs(30);
/// Octets that are read of a body that is too long, so that the client comes to read the answer.
const DISCARDED: usize = 512 << 20;
/// Octets of all bodies that are coming in or wait for their turn: four of the longest.
const ALL: usize = 4 * LONGEST;

/// Memory for the bodies of all connections.
pub struct Room {
    free: Arc<Semaphore>,
}

/// A body, as far as it has come, with its room, which is free again when this is dropped.
#[derive(Debug, Default)]
pub struct Taken {
    /// Octets of the body.
    pub octets: Vec<u8>,
    /// Room that it takes, to be held until the request has been carried out; `None` of an empty
    /// body.
    pub room: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Makes as much room as a server has.
    pub fn new() -> Self {
        Self::of(ALL)
    }

    fn of(octets: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(octets)),
        }
    }

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// A body that is too long, too slow, or cut off; or one that others leave no room for.
    pub async fn read<B>(&self, body: B) -> Result<Taken, Refusal>
    where
        B: Body<Data = Bytes, Error: Display>,
    {
        let read = timeout(REQUEST, self.gather(body)).await;
        read.unwrap_or_else(|_| {
            let text = format!("the body did not come within {} s", REQUEST.as_secs());
            Err(Refusal::new(Why::TooSlow, text))
        })
    }

    async fn gather<B>(&self, body: B) -> Result<Taken, Refusal>
    where
        B: Body<Data = Bytes, Error: Display>,
    {
        let mut body = std::pin::pin!(body);
        let mut taken = Taken::default();
        let mut length = 0;
        let mut refusal = None;
        while let Some(frame) = body.frame().await {
            let frame = frame
                .map_err(|error| Refusal::validation(format!("the body was cut off: {error}")))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            length += data.len();
            if length > LONGEST {
                let text = format!("the body has more than {LONGEST} octets, the most taken");
                refusal = Some(Refusal::new(Why::TooLong, text));
            } else if refusal.is_none() && !taken.add(&self.free, &data) {
                let text = "other requests take all the memory there is for them: send it again \
                            later";
                refusal = Some(Refusal::new(Why::Busy, text));
            }
            if refusal.is_some() {
                taken = Taken::default();
            }
            if length > DISCARDED {
                break;
            }
        }
        refusal.map_or(Ok(taken), Err)
    }
}

impl Taken {
    /// Adds more of the body; false: there is no room.
    fn add(&mut self, free: &Arc<Semaphore>, data: &[u8]) -> bool {
        let octets = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let Ok(more) = Arc::clone(free).try_acquire_many_owned(octets) else {
            return false;
        };
        match &mut self.room {
            Some(room) => room.merge(more),
            None => self.room = Some(more),
        }
        self.octets.extend_from_slice(data);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    #[tokio::test]
    async fn a_body_that_others_leave_no_room_for_is_refused_and_gives_its_own_back() {
        let room = Room::of(100);
        let read = |length: usize| room.read(Full::new(Bytes::from(vec![0; length])));
        let coming = room.free.try_acquire_many(60).unwrap();
        assert_eq!(read(41).await.unwrap_err().why, Why::Busy);
        let taken = read(40).await.unwrap();
        assert_eq!(taken.octets.len(), 40);
        assert_eq!(room.free.available_permits(), 0);
        drop(taken);
        assert_eq!(room.free.available_permits(), 40);
        drop(coming);
        assert_eq!(read(100).await.unwrap().octets.len(), 100);
        assert_eq!(room.free.available_permits(), 100);
    }
}
