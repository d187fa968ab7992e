//! The protobuf codec of every generated client and server.
//!
//! It differs from tonic's own in one thing: a message that does not decode is the caller's mistake
//! (`INVALID_ARGUMENT`, naming the field), not a defect of the server (`INTERNAL`).

use std::marker::PhantomData;

use prost::Message;
use tonic::{
    Status,
    codec::{DecodeBuf, Decoder},
};
use tonic_prost::ProstEncoder;
use tonic_types::{ErrorDetails, StatusExt as _};

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
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = MessageDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(tonic::codec::BufferSettings::default())
    }

    fn decoder(&mut self) -> Self::Decoder {
        MessageDecoder(PhantomData)
    }
}

/// Decodes `U`; see the module.
#[derive(Debug, Clone)]
pub struct MessageDecoder<U>(PhantomData<U>);

impl<U: Message + Default> Decoder for MessageDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(source).map(Some).map_err(|error| malformed(&error))
    }
}

fn malformed(error: &prost::DecodeError) -> Status {
    let mut details = ErrorDetails::new();
    details.add_bad_request_violation("message", error.to_string());
    details.set_error_info(
        "INVALID_INPUT",
        "trestle",
        [("azureCode", "InvalidInput"), ("httpStatus", "400")]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    Status::with_error_details(
        tonic::Code::InvalidArgument,
        format!("message is not valid protobuf: {error}"),
        details,
    )
}
