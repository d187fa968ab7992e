//! Responses that are read ahead, before their client receives them.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tonic::{Status, body::Body};

use super::{
    body_wrapper::BodyPart,
    shares::{Holder, Share, SharePool},
};

/// Largest response that is kept for its client without a slot, in bytes.
pub(super) const FINISHED_BYTES_MAX: usize = 16 * 1024;
/// What a response costs besides its bytes: its head, its stream, the state of its call.
const OVERHEAD_BYTES: usize = 4 * 1024;
/// Most frames that are read ahead: those of a call with one message, and of a response of HTTP.
const FRAMES_MAX: usize = 2;

/// A body of which the first frames were read.
pub(super) struct ReadAheadBody {
    /// In the order in which they are forwarded.
    frames: [Option<Frame<Bytes>>; FRAMES_MAX],
    /// The error behind them.
    failed: Option<Status>,
    /// The rest; none once it has ended.
    rest: Option<Body>,
    /// Of a body that was read to its end.
    share: Option<Share>,
}

/// Reads a body until it has ended, or has more than is kept.
pub(super) async fn read_ahead(body: Body) -> ReadAheadBody {
    let (frames, rest) = ([None, None], Some(body));
    let mut read = ReadAheadBody { frames, failed: None, rest, share: None };
    for index in 0..FRAMES_MAX {
        poll_fn(|cx| read.poll_ahead(index, cx)).await;
        if read.rest.is_none() || read.bytes() > FINISHED_BYTES_MAX {
            break;
        }
    }
    read
}

impl ReadAheadBody {
    /// The body without a slot; with one where it has not ended, is large, or its holder has as many bytes of such
    /// responses as it may.
    pub(super) fn kept(mut self, pool: &Arc<SharePool>, holder: Holder) -> Result<Body, Body> {
        if self.rest.is_some() || self.bytes() > FINISHED_BYTES_MAX {
            return Err(Body::new(self));
        }
        match pool.take(holder, self.bytes() + OVERHEAD_BYTES) {
            Ok(share) => {
                self.share = Some(share);
                Ok(Body::new(self))
            }
            Err(_) => Err(Body::new(self)),
        }
    }

    fn bytes(&self) -> usize {
        let data = self.frames.iter().flatten().filter_map(Frame::data_ref);
        data.map(Bytes::len).sum()
    }

    fn poll_ahead(&mut self, index: usize, cx: &mut Context<'_>) -> Poll<()> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(()) };
        let frame = match rest.is_end_stream() {
            true => None,
            false => ready!(Pin::new(&mut *rest).poll_frame(cx)),
        };
        let is_last = match &frame {
            Some(Ok(frame)) => frame.is_trailers() || rest.is_end_stream(),
            Some(Err(_)) | None => true,
        };
        match (frame, self.frames.get_mut(index)) {
            (Some(Ok(frame)), Some(next)) => *next = Some(frame),
            (Some(Err(status)), _) => self.failed = Some(status),
            _ => {}
        }
        if is_last {
            self.rest = None;
        }
        Poll::Ready(())
    }
}

impl http_body::Body for ReadAheadBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BodyPart> {
        if let Some(frame) = self.frames.iter_mut().find_map(Option::take) {
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(status) = self.failed.take() {
            return Poll::Ready(Some(Err(status)));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_read = self.frames.iter().all(Option::is_none) && self.failed.is_none();
        is_read && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let read = u64::try_from(self.bytes()).unwrap_or(u64::MAX);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}
