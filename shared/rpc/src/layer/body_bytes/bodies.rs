//! The bodies of requests and responses, counted as they are read.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use tonic::body::Body;

use super::{
    super::{
        body_wrapper::{BodyPart, BodyWrapper, Next},
        framing::Framing,
        shares::{CallHolder, SharePool},
        trailers,
    },
    arrival::ArrivalDeadline,
    counted::counted,
    held_bytes::HeldBytes,
    throttle::BodyThrottle,
};

/// Parts of responses under this size are not counted: there are few for each call.
const ANSWER_BYTES_COUNTED: usize = 1024;
/// Parts of responses from this size on are rejected when they do not fit.
pub(super) const ANSWER_BYTES_LARGE: usize = 64 * 1024;

/// The body of a request, counted as it is read. A message is forwarded when it has arrived completely: its reader
/// reserves memory for the length that the client declares, which costs the client nothing.
pub(super) struct CountedRequest {
    framing: Framing,
    held_bytes: Arc<HeldBytes>,
    deadline: Option<ArrivalDeadline>,
    throttle: BodyThrottle,
    /// Parts of a message that is not complete.
    incomplete: VecDeque<Bytes>,
    /// Parts to forward.
    complete: VecDeque<BodyPart>,
}

impl CountedRequest {
    pub(super) fn new(
        framing: Framing,
        held_bytes: Arc<HeldBytes>,
        deadline: Option<ArrivalDeadline>,
        throttle: BodyThrottle,
    ) -> Self {
        let (incomplete, complete) = (VecDeque::new(), VecDeque::new());
        Self { framing, held_bytes, deadline, throttle, incomplete, complete }
    }

    /// Sorts a part into those to forward and those of an incomplete message. Returns the next to forward.
    fn sort(&mut self, part: BodyPart) -> Option<BodyPart> {
        let mut data = match part.map(|part| part.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => data,
            Some(Ok(Err(other))) => return self.forward(Some(Ok(other))),
            Some(Err(status)) => return self.forward(Some(Err(status))),
            None => return self.forward(None),
        };
        self.throttle.used(data.len());
        if !self.held_bytes.hold(self.framing.take(&data)) {
            self.incomplete.clear();
            return Some(Some(Err(self.held_bytes.status())));
        }
        let incomplete = self.framing.incomplete();
        if incomplete == 0
            && let Some(deadline) = &mut self.deadline
        {
            deadline.arrived();
        }
        let rest = data.split_off(data.len().saturating_sub(incomplete));
        let begins = self.incomplete.is_empty();
        let next = if !data.is_empty() || (begins && rest.is_empty()) {
            self.forward(Some(Ok(Frame::data(data))))
        } else {
            None
        };
        if !rest.is_empty() {
            self.incomplete.push_back(rest);
        }
        next
    }

    /// Forwards what waits, and then a part. Returns the first of them; mostly nothing waits.
    fn forward(&mut self, part: BodyPart) -> Option<BodyPart> {
        if self.incomplete.is_empty() {
            return Some(part);
        }
        let waiting = self.incomplete.drain(..).map(|data| Some(Ok(Frame::data(data))));
        self.complete.extend(waiting);
        self.complete.push_back(part);
        self.complete.pop_front()
    }
}

impl BodyWrapper for CountedRequest {
    fn poll(&mut self, mut body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        if let Some(part) = self.complete.pop_front() {
            return Poll::Ready(Next::Part(part));
        }
        loop {
            // A delay is not the client's.
            ready!(self.throttle.poll_ready(cx));
            let Poll::Ready(part) = body.as_mut().poll_frame(cx) else { break };
            if let Some(part) = self.sort(part) {
                return Poll::Ready(Next::Part(part));
            }
        }
        let Some(deadline) = &mut self.deadline else {
            return Poll::Pending;
        };
        ready!(deadline.poll(cx));
        self.held_bytes.late();
        Poll::Ready(Next::Part(Some(Err(self.held_bytes.status()))))
    }

    fn unforwarded(&self) -> usize {
        self.incomplete.len() + self.complete.len()
    }
}

/// The body of a request that is read in pieces, each counted until its last reader has dropped it.
/// A piece is never rejected: a transfer that has been admitted continues, and as its pieces are
/// read only as fast as they are used, few are in memory at a time.
pub(super) struct CountedPieces {
    pub(super) pool: Arc<SharePool>,
    pub(super) holder: CallHolder,
    pub(super) throttle: BodyThrottle,
}

impl BodyWrapper for CountedPieces {
    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        ready!(self.throttle.poll_ready(cx));
        Poll::Ready(self.map_part(ready!(body.poll_frame(cx))))
    }

    fn map_part(&mut self, part: BodyPart) -> Next {
        let data = match part.map(|part| part.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => data,
            Some(Ok(Err(other))) => return Next::Part(Some(Ok(other))),
            Some(Err(status)) => return Next::Part(Some(Err(status))),
            None => return Next::Part(None),
        };
        self.throttle.used(data.len());
        let share = self.pool.overdraw(self.holder.holder(), data.len());
        Next::Part(Some(Ok(counted(data, share))))
    }
}

/// The body of a response, whose parts count until their last reader has dropped them.
pub(super) struct CountedResponse {
    pub(super) pool: Arc<SharePool>,
    pub(super) holder: CallHolder,
    pub(super) throttle: BodyThrottle,
    pub(super) reads: bool,
}

impl BodyWrapper for CountedResponse {
    const SHORTENS: bool = true;

    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        ready!(self.throttle.poll_ready(cx));
        Poll::Ready(self.map_part(ready!(body.poll_frame(cx))))
    }

    fn map_part(&mut self, part: BodyPart) -> Next {
        let data = match part.map(|part| part.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => data,
            Some(Ok(Err(other))) => return Next::Part(Some(Ok(other))),
            Some(Err(status)) => return Next::Part(Some(Err(status))),
            None => return Next::Part(None),
        };
        let bytes = data.len();
        self.throttle.used(bytes);
        if bytes < ANSWER_BYTES_COUNTED {
            return Next::Part(Some(Ok(Frame::data(data))));
        }
        let holder = self.holder.holder();
        let share = match self.pool.take(holder, bytes) {
            Ok(share) => share,
            Err(fault) if self.reads && bytes >= ANSWER_BYTES_LARGE => {
                return Next::Last(Frame::trailers(trailers(fault)));
            }
            Err(_) => self.pool.overdraw(holder, bytes),
        };
        Next::Part(Some(Ok(counted(data, share))))
    }
}
