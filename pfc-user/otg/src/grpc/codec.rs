//! Messages as octets: the method says which message they are.

use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use bytes::{Buf as _, BufMut as _, Bytes};

/// Reads and writes octets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Octets;

impl Codec for Octets {
    type Encode = Bytes;
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
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, octets: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(octets.len());
        buffer.put(octets);
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
