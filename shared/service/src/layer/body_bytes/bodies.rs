//! The bodies of requests and responses, counted as they are read.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use http_body::{Body as _, Frame};
use tonic::body::Body;

use super::{
    super::{
        body_wrapper::{BodyPart, BodyWrapper, Next},
        framing::Framing,
        trailers,
    },
    arrival::ArrivalDeadline,
    budget::Budget,
    held_bytes::HeldBytes,
};

/// Parts of responses under this size are not counted: there are few for each call.
const ANSWER_BYTES_COUNTED: usize = 1024;
/// Parts of responses from this size on are rejected when they do not fit.
const ANSWER_BYTES_LARGE: usize = 64 * 1024;

/// The body of a request, counted as it is read.
pub(super) struct CountedRequest {
    pub(super) framing: Framing,
    pub(super) held_bytes: Arc<HeldBytes>,
    pub(super) deadline: Option<ArrivalDeadline>,
}

impl BodyWrapper for CountedRequest {
    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if let Poll::Ready(part) = body.poll_frame(cx) {
            return Poll::Ready(self.map_part(part));
        }
        let Some(deadline) = &mut self.deadline else {
            return Poll::Pending;
        };
        std::task::ready!(deadline.poll(cx));
        self.held_bytes.is_late.store(true, Ordering::Relaxed);
        Poll::Ready(Next::Part(Some(Err(self.held_bytes.status()))))
    }

    fn map_part(&mut self, part: BodyPart) -> Next {
        if let Some(Ok(frame)) = &part
            && let Some(data) = frame.data_ref()
        {
            let held = self.framing.take(data);
            if !self.held_bytes.hold(held) {
                return Next::Part(Some(Err(self.held_bytes.status())));
            }
        }
        Next::Part(part)
    }
}

/// The body of a request that is read in pieces, each counted until its last reader has dropped it.
/// A piece is never rejected: a transfer that has been admitted continues, and as its pieces are
/// read only as fast as they are used, few are in memory at a time.
pub(super) struct CountedPieces {
    pub(super) budget: Arc<Budget>,
}

impl BodyWrapper for CountedPieces {
    fn map_part(&mut self, part: BodyPart) -> Next {
        let data = match part.map(|part| part.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => data,
            Some(Ok(Err(other))) => return Next::Part(Some(Ok(other))),
            Some(Err(status)) => return Next::Part(Some(Err(status))),
            None => return Next::Part(None),
        };
        self.budget.overdraw(data.len());
        Next::Part(Some(Ok(self.budget.counted(data))))
    }
}

/// The body of a response, whose parts count until their last reader has dropped them.
pub(super) struct CountedResponse {
    pub(super) budget: Arc<Budget>,
    pub(super) reads: bool,
}

impl BodyWrapper for CountedResponse {
    const SHORTENS: bool = true;

    fn map_part(&mut self, part: BodyPart) -> Next {
        let data = match part.map(|part| part.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => data,
            Some(Ok(Err(other))) => return Next::Part(Some(Ok(other))),
            Some(Err(status)) => return Next::Part(Some(Err(status))),
            None => return Next::Part(None),
        };
        let bytes = data.len();
        if bytes < ANSWER_BYTES_COUNTED {
            return Next::Part(Some(Ok(Frame::data(data))));
        }
        if !self.budget.reserve(bytes) {
            if self.reads && bytes >= ANSWER_BYTES_LARGE {
                return Next::Last(Frame::trailers(trailers(self.budget.fault())));
            }
            self.budget.overdraw(bytes);
        }
        Next::Part(Some(Ok(self.budget.counted(data))))
    }
}
