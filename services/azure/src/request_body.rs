//! The body of a request, collected up to a bound. `streaming` reads bodies of any size in pieces.

use bytes::Bytes;
use http::{HeaderValue, header};
use http_body_util::BodyExt as _;
use tonic::{Status, body::Body};
use tonic_types::StatusExt as _;
use trestle_model::fault::{Fault, Reason};

use crate::{collected::CollectedBytes, error::RestError, gzip::Encoding, head::RequestHead};

/// Most bytes that are reserved for a body before they arrive: a client need not send what it declares.
const RESERVED_BYTES_MAX: usize = 256 * 1024;

/// The body of a request, with its bounds.
pub(crate) struct RequestBody {
    pub(crate) body: Body,
    pub(crate) bytes_max: u64,
    pub(crate) declared: Option<u64>,
    pub(crate) content_encoding: Option<HeaderValue>,
    /// The error of the call instead of any error of the body: a check of the credentials that
    /// follows that of their stored access policy has failed.
    pub(crate) denied: Option<Box<Fault>>,
}

impl RequestBody {
    /// A body of at most `bytes_max` bytes.
    pub(crate) fn new(
        head: &RequestHead,
        body: Body,
        bytes_max: u64,
        denied: Option<Box<Fault>>,
    ) -> Self {
        let declared = head.header(header::CONTENT_LENGTH).and_then(|text| text.parse().ok());
        let content_encoding = head.headers.get(header::CONTENT_ENCODING).cloned();
        Self { body, bytes_max, declared, content_encoding, denied }
    }

    /// The whole body, decompressed if it is compressed. Its bytes, and those that it decompresses
    /// to, remain within the bound.
    ///
    /// # Errors
    /// A body that is too large, ends early, or is not encoded as its headers declare. One that is declared too
    /// large is not read; the HTTP edge drains what its client sends.
    pub(crate) async fn collect(self) -> Result<Bytes, RestError> {
        let Self { body, bytes_max, declared, content_encoding, denied } = self;
        let limit = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let collected = async {
            let encoding = Encoding::of(content_encoding.as_ref())?;
            let declared = declared.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
            let body = collect(body, limit, declared).await?;
            let body = body.ok_or_else(|| too_large(bytes_max))?;
            encoding.decode(body, limit)?.ok_or_else(|| too_large(bytes_max))
        };
        collected.await.map_err(|error| instead(denied.as_deref(), error))
    }
}

pub(crate) fn instead(denied: Option<&Fault>, error: RestError) -> RestError {
    denied.map_or(error, |denied| denied.clone().into())
}

pub(crate) fn too_large(bytes_max: u64) -> RestError {
    let rule = format!("must have at most {bytes_max} bytes");
    let fault = Fault::violation(Reason::RequestBodyTooLarge, "body", rule);
    RestError::from(fault).with("MaxLimit", bytes_max.to_string())
}

/// The bytes of a body; none where they exceed the limit, or more are declared.
async fn collect(body: Body, limit: usize, declared: usize) -> Result<Option<Bytes>, RestError> {
    if declared > limit {
        return Ok(None);
    }
    let mut body = std::pin::pin!(body);
    let (mut kept, mut read) = (CollectedBytes::default(), 0_usize);
    let reserved = declared.min(RESERVED_BYTES_MAX);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        read = read.saturating_add(data.len());
        if read > limit {
            return Ok(None);
        }
        kept.add(data, reserved);
    }
    Ok(Some(kept.bytes()))
}

/// A body that ends early: the error of a layer, or a client that has disconnected.
pub(crate) fn broken(status: Status) -> RestError {
    if status.get_error_details().error_info().is_some() {
        return status.into();
    }
    Fault::violation(Reason::InvalidInput, "body", "ended too early").into()
}

#[cfg(test)]
mod tests;
