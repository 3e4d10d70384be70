//! Bodies of requests, with limits of length and time.

use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use crate::error::Refusal;
use crate::server::{LONGEST, REQUEST};

/// Octets that are read of a body that is too long, so that the client comes to read the answer.
const DISCARDED: usize = 512 << 20;

/// Reads a body.
///
/// # Errors
///
/// One that is too long, too slow, or cut off.
pub async fn read(body: Body) -> Result<Bytes, (StatusCode, Refusal)> {
    let read = timeout(REQUEST, gather(body)).await;
    read.unwrap_or_else(|_| {
        let text = format!("the body did not come within {} s", REQUEST.as_secs());
        Err((StatusCode::REQUEST_TIMEOUT, Refusal::validation(text)))
    })
}

async fn gather(mut body: Body) -> Result<Bytes, (StatusCode, Refusal)> {
    let mut kept = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let text = format!("the body was cut off: {error}");
            (StatusCode::BAD_REQUEST, Refusal::validation(text))
        })?;
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
        return Err((StatusCode::PAYLOAD_TOO_LARGE, Refusal::validation(text)));
    }
    Ok(kept.into())
}
