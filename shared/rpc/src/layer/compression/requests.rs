//! The body of a request with compressed messages.

use crate::status::{DOMAIN, IntoStatus as _};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http_body::{Body as _, Frame};
use tonic::body::Body;

use super::{
    super::{
        body_bytes::HeldBytes,
        body_wrapper::{BodyPart, BodyWrapper, Next},
        framing::{COMPRESSED, HEAD_BYTES},
    },
    encoding::{DecompressError, MessageEncoding},
};
use trestle_model::fault::{Fault, Reason, message_too_large};

/// Decompresses messages, one at a time.
pub(super) struct DecompressedRequest {
    encoding: MessageEncoding,
    message_bytes_max: usize,
    /// The bytes of the message that was read last.
    held: Arc<HeldBytes>,
    /// Bytes that were read from the body.
    waiting: BytesMut,
    /// What follows them.
    last: Option<BodyPart>,
}

impl DecompressedRequest {
    /// Messages of up to so many bytes, after decompression.
    pub(super) fn new(
        encoding: MessageEncoding,
        message_bytes_max: usize,
        held: Arc<HeldBytes>,
    ) -> Self {
        Self { encoding, message_bytes_max, held, waiting: BytesMut::new(), last: None }
    }

    /// The next complete message, as the service reads it.
    fn message(&mut self) -> Option<Result<Bytes, Fault>> {
        let &[flag, length @ ..] = self.waiting.first_chunk::<HEAD_BYTES>()?;
        let (length, most) = (u32::from_be_bytes(length) as usize, self.message_bytes_max);
        if length > most {
            return Some(Err(message_too_large(most)));
        }
        if self.waiting.len() < HEAD_BYTES + length {
            return None;
        }
        let mut message = self.waiting.split_to(HEAD_BYTES + length).freeze();
        if flag != COMPRESSED {
            return Some(Ok(message));
        }
        message.advance(HEAD_BYTES);
        let held = |bytes| self.held.hold(bytes);
        Some(match self.encoding.decompress(&message, most, held) {
            Ok(content) => Ok(framed(&content)),
            Err(DecompressError::TooLarge) => Err(message_too_large(most)),
            Err(DecompressError::OverBudget) => Err(self.held.fault()),
            Err(DecompressError::Malformed(error)) => {
                let encoding = self.encoding.name();
                let rule = format!("must be {encoding}, as its encoding declares: {error}");
                Err(Fault::violation(Reason::InvalidInput, "message", rule))
            }
        })
    }
}

/// A message that is not compressed.
fn framed(content: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(HEAD_BYTES + content.len());
    framed.put_u8(0);
    framed.put_u32(content.len().try_into().unwrap_or(u32::MAX));
    framed.put_slice(content);
    framed.freeze()
}

impl BodyWrapper for DecompressedRequest {
    const SHORTENS: bool = true;

    fn poll(&mut self, mut body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            match self.message() {
                Some(Ok(message)) => return data(message),
                Some(Err(fault)) => {
                    self.waiting.clear();
                    return Poll::Ready(Next::Part(Some(Err(fault.into_status(DOMAIN)))));
                }
                None => {}
            }
            if let Some(last) = self.last.take() {
                return Poll::Ready(Next::Part(last));
            }
            let last = match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        self.waiting.extend_from_slice(&data);
                        continue;
                    }
                    Err(other) => Some(Ok(other)),
                },
                other => other,
            };
            self.last = Some(last);
            if !self.waiting.is_empty() {
                // A part of a message, which its reader rejects.
                return data(self.waiting.split().freeze());
            }
        }
    }

    fn unforwarded(&self) -> usize {
        usize::from(!self.waiting.is_empty()) + usize::from(self.last.is_some())
    }
}

fn data(bytes: Bytes) -> Poll<Next> {
    Poll::Ready(Next::Part(Some(Ok(Frame::data(bytes)))))
}
