//! The body of a request that may have to be retried.
//!
//! Frames are retained as they pass, without a copy, until the response begins. Beyond a bound for one
//! call and one for all of a role, nothing is retained, and the call is sent once.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tonic::{Status, body::Body};

/// Most bytes retained of one call: the largest batch, and its framing.
const CALL_BYTES_MAX: usize = 4 * 1024 * 1024 + 64 * 1024;
/// Most bytes retained of all calls to a role.
const ALL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The bytes retained of all calls to a role. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(super) struct RetainedBytes(Arc<AtomicUsize>);

impl RetainedBytes {
    fn add(&self, bytes: usize) -> bool {
        let fits = self.0.fetch_add(bytes, Ordering::Relaxed) + bytes <= ALL_BYTES_MAX;
        if !fits {
            self.remove(bytes);
        }
        fits
    }

    fn remove(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The body of a request, read by one attempt at a time.
pub(super) struct Recording {
    state: Mutex<RecordingState>,
    kept: RetainedBytes,
}

struct RecordingState {
    body: Body,
    /// Counts attempts; only the newest may read.
    attempt: usize,
    frames: Vec<Bytes>,
    bytes: usize,
    /// Whether the frames are all that was read.
    is_whole: bool,
    /// Whether the current attempt has read anything.
    is_touched: bool,
}

impl Recording {
    pub(super) fn new(body: Body, kept: &RetainedBytes) -> Arc<Self> {
        let state = RecordingState {
            body,
            attempt: 0,
            frames: Vec::new(),
            bytes: 0,
            is_whole: true,
            is_touched: false,
        };
        Arc::new(Self { state: Mutex::new(state), kept: kept.clone() })
    }

    /// The body for the next attempt, from its beginning.
    pub(super) fn play(self: &Arc<Self>) -> Replay {
        let mut state = self.lock();
        state.attempt += 1;
        // Without a message the test would read nothing.
        state.is_touched = state.frames.is_empty() && state.body.is_end_stream();
        Replay { attempt: state.attempt, position: 0, recording: Arc::clone(self) }
    }

    /// Whether another attempt would send the same request.
    pub(super) fn can_play(&self) -> bool {
        self.lock().is_whole
    }

    /// Whether the current attempt has sent nothing of the body; a call that sent no message was not
    /// executed.
    pub(super) fn is_untouched(&self) -> bool {
        !self.lock().is_touched
    }

    /// Discards the retained frames: no other attempt follows.
    pub(super) fn discard(&self) {
        self.lock().discard(&self.kept);
    }

    fn lock(&self) -> MutexGuard<'_, RecordingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.discard();
    }
}

impl RecordingState {
    fn discard(&mut self, kept: &RetainedBytes) {
        self.is_whole = false;
        self.frames = Vec::new();
        kept.remove(std::mem::take(&mut self.bytes));
    }

    /// Retains a frame within the bounds.
    fn keep(&mut self, frame: &Bytes, kept: &RetainedBytes) {
        if !self.is_whole {
            return;
        }
        let fits = self.bytes + frame.len() <= CALL_BYTES_MAX;
        if !fits || !kept.add(frame.len()) {
            return self.discard(kept);
        }
        self.bytes += frame.len();
        self.frames.push(frame.clone());
    }
}

/// A body as one attempt sends it.
pub(super) struct Replay {
    recording: Arc<Recording>,
    attempt: usize,
    position: usize,
}

impl http_body::Body for Replay {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let mut state = this.recording.lock();
        if state.attempt != this.attempt {
            return Poll::Ready(Some(Err(Status::cancelled("another attempt has begun"))));
        }
        state.is_touched = true;
        if let Some(frame) = state.frames.get(this.position) {
            this.position += 1;
            return Poll::Ready(Some(Ok(Frame::data(frame.clone()))));
        }
        let frame = ready!(Pin::new(&mut state.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => match frame.data_ref() {
                Some(data) => {
                    state.keep(data, &this.recording.kept);
                    this.position = state.frames.len();
                }
                // Trailers: no client of gRPC sends any.
                None => state.discard(&this.recording.kept),
            },
            Some(Err(_)) => state.discard(&this.recording.kept),
            None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let state = self.recording.lock();
        state.attempt == self.attempt
            && self.position >= state.frames.len()
            && state.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::*;

    fn chunks(chunks: Vec<Vec<u8>>) -> Body {
        let frames = chunks.into_iter().map(|chunk| Ok::<_, Status>(Frame::data(chunk.into())));
        Body::new(StreamBody::new(futures::stream::iter(frames)))
    }

    async fn next(body: &mut Replay) -> Option<Bytes> {
        let frame = body.frame().await?.expect("no failure");
        Some(frame.into_data().expect("data"))
    }

    #[tokio::test]
    async fn a_second_attempt_sends_the_whole_body() {
        let kept = RetainedBytes::default();
        let recording = Recording::new(chunks(vec![b"ab".into(), b"cd".into()]), &kept);
        let mut first = recording.play();
        assert!(recording.is_untouched());
        assert_eq!(next(&mut first).await.unwrap(), "ab");
        assert!(!recording.is_untouched());

        let second = recording.play();
        assert!(recording.is_untouched());
        let superseded = first.frame().await.unwrap();
        let all = second.collect().await.unwrap().to_bytes();

        assert!(superseded.is_err());
        assert_eq!(all, "abcd");
        assert!(recording.can_play());
    }

    #[tokio::test]
    async fn retains_nothing_once_the_response_begins() {
        let kept = RetainedBytes::default();
        let recording = Recording::new(chunks(vec![b"ab".into(), b"cd".into()]), &kept);
        let mut body = recording.play();
        next(&mut body).await.unwrap();
        assert_eq!(kept.0.load(Ordering::Relaxed), 2);

        recording.discard();

        assert_eq!(kept.0.load(Ordering::Relaxed), 0);
        assert_eq!(next(&mut body).await.unwrap(), "cd");
        assert_eq!(kept.0.load(Ordering::Relaxed), 0);
        assert!(!recording.can_play());
    }

    #[tokio::test]
    async fn passes_a_body_over_the_bound_without_retaining_it() {
        for (size, can_play) in [(CALL_BYTES_MAX, true), (CALL_BYTES_MAX + 1, false)] {
            let kept = RetainedBytes::default();
            let body = Body::new(Full::new(Bytes::from(vec![7; size])));
            let recording = Recording::new(body, &kept);

            let sent = recording.play().collect().await.unwrap().to_bytes();

            assert_eq!((sent.len(), recording.can_play()), (size, can_play));
            assert_eq!(kept.0.load(Ordering::Relaxed), if can_play { size } else { 0 });
            drop(recording);
            assert_eq!(kept.0.load(Ordering::Relaxed), 0);
        }
    }

    #[tokio::test]
    async fn all_calls_together_retain_no_more_than_their_bound() {
        let kept = RetainedBytes::default();
        let mut held = Vec::new();
        for _ in 0..ALL_BYTES_MAX / CALL_BYTES_MAX + 1 {
            let body = Body::new(Full::new(Bytes::from(vec![7; CALL_BYTES_MAX])));
            let recording = Recording::new(body, &kept);
            recording.play().collect().await.unwrap();
            held.push(recording);
        }

        let can_play = held.iter().filter(|recording| recording.can_play()).count();
        assert_eq!(can_play, ALL_BYTES_MAX / CALL_BYTES_MAX);
        assert!(kept.0.load(Ordering::Relaxed) <= ALL_BYTES_MAX);
    }
}
