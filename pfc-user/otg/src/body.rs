//! Bodies of requests, with limits of length and time.

use std::fmt::Display;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::time::timeout;

use crate::error::{Refusal, Why};
use crate::server::{LONGEST, REQUEST};

/// Octets that are read of a body that is too long, so that the client comes to read the answer.
const DISCARDED: usize = 512 << 20;

/// Reads a body.
///
/// # Errors
///
/// One that is too long, too slow, or cut off.
pub async fn read<B>(body: B) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes, Error: Display>,
{
    let read = timeout(REQUEST, gather(body)).await;
    read.unwrap_or_else(|_| {
        let text = format!("the body did not come within {} s", REQUEST.as_secs());
        Err(Refusal::new(Why::TooSlow, text))
    })
}

async fn gather<B>(body: B) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes, Error: Display>,
{
    let mut body = std::pin::pin!(body);
    let mut kept = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Refusal::validation(format!("the body was cut off: {error}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        length += data.len();
        if length <= LONGEST {
            kept.extend_from_slice(&data);
        } else {
            kept = Vec::new();
        }
        if length > DISCARDED {
            break;
        }
    }
    if length > LONGEST {
        let text = format!("the body has more than {LONGEST} octets, the most taken");
        return Err(Refusal::new(Why::TooLong, text));
    }
    Ok(kept.into())
}
