//! The protobuf codec of every generated client and server.
//!
//! It differs from tonic's own in three ways. A message that does not decode is the caller's mistake
//! (`INVALID_ARGUMENT`, naming the field), not a defect of the server (`INTERNAL`). One of too many
//! parts is rejected before it takes memory (see `parts`). And buffers begin small and grow
//! once to the size of the message: tonic's 8 KiB for each direction of each call were a tenth of the cost of a call.

use std::marker::PhantomData;

use prost::{Message, Name, bytes::Buf as _};
use tonic::{
    Status,
    codec::{BufferSettings, DecodeBuf, Decoder, EncodeBuf, Encoder},
};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::parts::{PARTS_MAX, are_too_many};

/// First size of a buffer, in bytes: most messages fit.
const BUFFER_BYTES: usize = 2048;
/// `ErrorInfo.domain` until the called service is determined.
const DOMAIN: &str = "trestle";
/// Bytes after which a stream of messages is passed to the connection.
const YIELD_BYTES: usize = 32 * 1024;

/// Encodes `T` and decodes `U` as protobuf.
#[derive(Debug, Clone)]
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Name + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = MessageEncoder<T>;
    type Decoder = MessageDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        MessageEncoder(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        MessageDecoder(PhantomData)
    }
}

/// Encodes `T`; see the module.
#[derive(Debug, Clone)]
pub struct MessageEncoder<T>(PhantomData<T>);

impl<T: Message> Encoder for MessageEncoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(item.encoded_len());
        item.encode_raw(out);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER_BYTES, YIELD_BYTES)
    }
}

/// Decodes `U`; see the module.
#[derive(Debug, Clone)]
pub struct MessageDecoder<U>(PhantomData<U>);

impl<U: Message + Name + Default> Decoder for MessageDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        if are_too_many::<U>(source.chunk()) {
            return Err(too_many_parts());
        }
        U::decode(source).map(Some).map_err(|error| malformed(&error))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER_BYTES, YIELD_BYTES)
    }
}

fn malformed(error: &prost::DecodeError) -> Status {
    // The library begins its texts with a part of this message.
    let text = error.to_string();
    let rule = text.trim_start_matches("failed to decode Protobuf message: ").to_owned();
    rejected(&format!("message is not valid protobuf: {rule}"), rule)
}

fn too_many_parts() -> Status {
    let rule = format!(
        "a message may have at most {PARTS_MAX} elements in its repeated fields, and few fields that are unknown or \
         there twice"
    );
    rejected(&format!("message has too many parts: {rule}"), rule)
}

fn rejected(message: &str, rule: String) -> Status {
    let mut details = ErrorDetails::new();
    details.add_bad_request_violation("message", rule);
    details.set_error_info(
        "INVALID_INPUT",
        // The layers of a call set the service that was called.
        DOMAIN,
        [("azureCode", "InvalidInput"), ("httpStatus", "400")]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    Status::with_error_details(tonic::Code::InvalidArgument, message, details)
}
