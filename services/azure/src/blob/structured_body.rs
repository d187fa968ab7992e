//! Bodies that are structured messages: uploads are verified, and the response to a read is one on request.

use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use tonic::{Status, body::Body};
use trestle_model::fault::{Fault, Reason, quoted};

use super::{
    header::{
        self as names, CONTENT_CRC64, CONTENT_MD5, RANGE_GET_CRC64, RANGE_GET_MD5, STRUCTURED_BODY,
        STRUCTURED_LENGTH,
    },
    operation::OnBlob,
};
use crate::{
    error::RestError,
    head::RequestHead,
    request_body::{RequestBody, too_large},
    streaming::{self, BodyPieces},
    structured::{OVERHEAD_BYTES_MAX, StructureError, StructuredDecoder, StructuredEncoder},
};

/// The only form.
const FORM: HeaderValue = HeaderValue::from_static("XSM/1.0; properties=crc64");

/// Whether a request states the form of a structured message.
///
/// # Errors
/// Another form.
fn is_stated(head: &RequestHead) -> Result<bool, Fault> {
    let Some(text) = head.headers.get(STRUCTURED_BODY) else { return Ok(false) };
    if text == FORM {
        return Ok(true);
    }
    let (text, form) = (String::from_utf8_lossy(text.as_bytes()), FORM);
    let rule = format!("must be {}: value=`{}`", form.to_str().unwrap_or_default(), quoted(&text));
    Err(Fault::violation(Reason::UnsupportedHeader, STRUCTURED_BODY.as_str(), rule))
}

/// The bytes of content in the structured body of an upload; none where the body is the content.
///
/// # Errors
/// Another form, no length of the content, one without the form, or a checksum of the body beside.
pub(super) fn of_upload(head: &RequestHead) -> Result<Option<u64>, Fault> {
    let length = names::number(head, &STRUCTURED_LENGTH)?;
    match (is_stated(head)?, length) {
        (false, None) => Ok(None),
        (false, Some(_)) => Err(names::required(&STRUCTURED_BODY)),
        (true, None) => Err(names::required(&STRUCTURED_LENGTH)),
        (true, Some(length)) => {
            check_alone(head, [CONTENT_MD5, CONTENT_CRC64])?;
            Ok(Some(length))
        }
    }
}

/// Whether the response to a read must be a structured message. `has_checksum`: the request requires another checksum.
///
/// # Errors
/// Another form, or another checksum beside.
pub(super) fn is_required(head: &RequestHead, has_checksum: bool) -> Result<bool, Fault> {
    let is_stated = is_stated(head)?;
    if is_stated && has_checksum {
        check_alone(head, [RANGE_GET_MD5, RANGE_GET_CRC64])?;
    }
    Ok(is_stated)
}

fn check_alone(head: &RequestHead, others: [HeaderName; 2]) -> Result<(), Fault> {
    match others.into_iter().find_map(|name| Some((names::text(head, &name)?, name))) {
        None => Ok(()),
        Some((text, name)) => {
            Err(names::invalid(&name, text, "must not be combined with x-ms-structured-body"))
        }
    }
}

/// The response to a request, with the form of the message that was received.
pub(super) fn echo(
    mut answer: Response<Body>,
    operation: OnBlob,
    head: &RequestHead,
) -> Response<Body> {
    if operation != OnBlob::Get && head.headers.contains_key(STRUCTURED_BODY) {
        answer.headers_mut().insert(STRUCTURED_BODY, FORM);
    }
    answer
}

/// A response whose body is a structured message with `length` bytes of content. It is cut off at an error of `pieces`.
pub(super) fn streamed(
    status: StatusCode,
    length: u64,
    pieces: impl Stream<Item = Result<Bytes, Status>> + Send + 'static,
) -> Response<Body> {
    let mut encoder = StructuredEncoder::new(length);
    let (bytes, start) = (encoder.message_bytes(), encoder.start());
    let encoded = pieces.map_ok(move |piece| {
        let encoded = encoder.encode(piece);
        stream::iter(encoded.into_iter().map(Ok))
    });
    let message = stream::iter([Ok(start)]).chain(encoded.try_flatten());
    let mut answer = streaming::streamed(status, Some(bytes), message);
    let headers = answer.headers_mut();
    headers.insert(STRUCTURED_BODY, FORM);
    headers.insert(STRUCTURED_LENGTH, length.into());
    answer
}

/// The content of an upload in pieces.
pub(super) struct ContentPieces {
    pieces: BodyPieces,
    /// The decoder of a structured message, and bytes that are not decoded.
    structured: Option<(StructuredDecoder, Bytes)>,
}

impl ContentPieces {
    /// The content of a body; `structured` is its length in a structured message.
    ///
    /// # Errors
    /// A length beyond the bound.
    pub(super) fn new(body: RequestBody, structured: Option<u64>) -> Result<Self, RestError> {
        let Some(length) = structured else {
            return Ok(Self { pieces: body.pieces()?, structured: None });
        };
        if length > body.bytes_max {
            return Err(too_large(body.bytes_max));
        }
        let bytes_max = body.bytes_max.saturating_add(OVERHEAD_BYTES_MAX);
        let pieces = RequestBody { bytes_max, ..body }.pieces()?;
        Ok(Self { pieces, structured: Some((StructuredDecoder::new(length), Bytes::new())) })
    }

    /// The next piece; none at the end, and only if all pieces are verified.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, RestError>> {
        loop {
            if let Some((decoder, bytes)) = &mut self.structured {
                match decoder.decode(bytes) {
                    Ok(None) => {}
                    Ok(Some(content)) => return Some(Ok(content)),
                    Err(error) => return Some(Err(malformed(error).into())),
                }
            }
            let next = self.pieces.next().await;
            let Some((decoder, bytes)) = &mut self.structured else { return next };
            match next {
                None => return decoder.finish().err().map(|error| Err(malformed(error).into())),
                Some(Ok(piece)) => *bytes = piece,
                failed => return failed,
            }
        }
    }
}

/// The error of a structured message.
fn malformed(error: StructureError) -> Fault {
    let reason = if error.is_mismatch() { Reason::Crc64Mismatch } else { Reason::InvalidInput };
    Fault::violation(reason, "body", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::fixture::head;

    const STATED: (&str, &str) = ("x-ms-structured-body", "XSM/1.0; properties=crc64");

    #[test]
    fn an_upload_states_form_and_length_and_no_other_checksum() {
        let length = ("x-ms-structured-content-length", "5");
        assert_eq!(of_upload(&head("/c/b", &[])), Ok(None));
        assert_eq!(of_upload(&head("/c/b", &[STATED, length])), Ok(Some(5)));
        for (headers, reason) in [
            (&[STATED][..], Reason::MissingRequiredHeader),
            (&[length], Reason::MissingRequiredHeader),
            (&[STATED, (length.0, "-1")], Reason::InvalidHeaderValue),
            (&[STATED, length, ("content-md5", "a")], Reason::InvalidHeaderValue),
            (&[STATED, length, ("x-ms-content-crc64", "a")], Reason::InvalidHeaderValue),
            (&[(STATED.0, "XSM/2.0; properties=crc64"), length], Reason::UnsupportedHeader),
            (&[(STATED.0, ""), length], Reason::UnsupportedHeader),
        ] {
            let fault = of_upload(&head("/c/b", headers)).expect_err("invalid");
            assert_eq!(fault.reason, reason, "{headers:?}");
        }
    }

    #[test]
    fn a_read_requires_one_kind_of_checksum() {
        assert_eq!(is_required(&head("/c/b", &[STATED]), false), Ok(true));
        assert_eq!(is_required(&head("/c/b", &[]), true), Ok(false));
        let both = head("/c/b", &[STATED, ("x-ms-range-get-content-md5", "true")]);
        let fault = is_required(&both, true).expect_err("both");
        assert_eq!(fault.reason, Reason::InvalidHeaderValue);
    }
}
