//! Messages as octets: the method says which message they are. A message that is sent may be in
//! parts.

use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use bytes::{Buf as _, BufMut as _, Bytes};

/// Reads and writes octets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Octets;

impl Codec for Octets {
    type Encode = Vec<Bytes>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Octets {
    type Item = Vec<Bytes>;
    type Error = Status;

    fn encode(&mut self, parts: Vec<Bytes>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(parts.iter().map(Bytes::len).sum());
        // Each part is dropped once it is in the buffer.
        parts.into_iter().for_each(|part| buffer.put(part));
        Ok(())
    }
}

impl Decoder for Octets {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
