//! The body of a response whose messages are compressed.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body::{Body as _, Frame};
use tonic::body::Body;

use super::{
    super::{
        body_wrapper::{BodyPart, BodyWrapper, Next},
        framing::{COMPRESSED, HEAD_BYTES},
    },
    encoding::MessageEncoding,
};

/// Messages from this size on are compressed, in bytes; smaller ones would gain little.
pub(super) const MESSAGE_BYTES_MIN: usize = 1024;

/// Compresses messages.
pub(super) struct CompressedResponse {
    encoding: MessageEncoding,
    /// Bytes of a message that is not complete.
    waiting: BytesMut,
    /// What follows them.
    last: Option<BodyPart>,
}

impl CompressedResponse {
    pub(super) fn new(encoding: MessageEncoding) -> Self {
        Self { encoding, waiting: BytesMut::new(), last: None }
    }

    /// Every complete message, compressed where that makes it smaller.
    fn messages(&mut self) -> Bytes {
        let mut sent = BytesMut::new();
        while let Some(&[flag, length @ ..]) = self.waiting.first_chunk::<HEAD_BYTES>() {
            let bytes = HEAD_BYTES + u32::from_be_bytes(length) as usize;
            if self.waiting.len() < bytes {
                break;
            }
            let message = self.waiting.split_to(bytes);
            let content = message.get(HEAD_BYTES..).unwrap_or_default();
            let is_small = flag == COMPRESSED || content.len() < MESSAGE_BYTES_MIN;
            let compressed = if is_small { None } else { self.encoding.compress(content).ok() };
            match compressed.filter(|compressed| compressed.len() < content.len()) {
                Some(compressed) => {
                    sent.put_u8(COMPRESSED);
                    sent.put_u32(compressed.len().try_into().unwrap_or(u32::MAX));
                    sent.put_slice(&compressed);
                }
                None => sent.put_slice(&message),
            }
        }
        sent.freeze()
    }
}

impl BodyWrapper for CompressedResponse {
    const SHORTENS: bool = true;

    fn poll(&mut self, mut body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if let Some(last) = self.last.take() {
            return Poll::Ready(Next::Part(last));
        }
        loop {
            let last = match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        self.waiting.extend_from_slice(&data);
                        let messages = self.messages();
                        if messages.is_empty() {
                            continue;
                        }
                        return Poll::Ready(Next::Part(Some(Ok(Frame::data(messages)))));
                    }
                    Err(other) => Some(Ok(other)),
                },
                other => other,
            };
            if self.waiting.is_empty() {
                return Poll::Ready(Next::Part(last));
            }
            self.last = Some(last);
            let rest = self.waiting.split().freeze();
            return Poll::Ready(Next::Part(Some(Ok(Frame::data(rest)))));
        }
    }

    fn unforwarded(&self) -> usize {
        usize::from(!self.waiting.is_empty()) + usize::from(self.last.is_some())
    }
}
