//! The body of a request that may have to be sent again.
//!
//! What passes is kept beside, without a copy, until the answer begins. Beyond a bound for one call
//! and one for all of a role, nothing is kept, and the call is sent once.

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

/// Most bytes kept of one call: the largest batch, and what frames it.
const CALL_BYTES_MAX: usize = 4 * 1024 * 1024 + 64 * 1024;
/// Most bytes kept of all calls to a role.
const ALL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How many bytes are kept of all calls to a role. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept(Arc<AtomicUsize>);

impl Kept {
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
    state: Mutex<State>,
    kept: Kept,
}

struct State {
    body: Body,
    /// Counts attempts; only the newest may read.
    turn: usize,
    frames: Vec<Bytes>,
    bytes: usize,
    /// Whether the frames are all that was read.
    is_whole: bool,
    /// Whether the attempt in turn has taken anything.
    is_touched: bool,
}

impl Recording {
    pub(super) fn new(body: Body, kept: &Kept) -> Arc<Self> {
        let state = State {
            body,
            turn: 0,
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
        state.turn += 1;
        // Without a message nothing would ever be taken, and that would say nothing.
        state.is_touched = state.frames.is_empty() && state.body.is_end_stream();
        Replay { turn: state.turn, position: 0, recording: Arc::clone(self) }
    }

    /// Whether another attempt would send the same.
    pub(super) fn can_play(&self) -> bool {
        self.lock().is_whole
    }

    /// Whether nothing of the body has left for the attempt in turn; a call that sent no message
    /// was not carried out.
    pub(super) fn is_untouched(&self) -> bool {
        !self.lock().is_touched
    }

    /// There will be no other attempt: keep nothing any more.
    pub(super) fn forget(&self) {
        self.lock().forget(&self.kept);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.forget();
    }
}

impl State {
    fn forget(&mut self, kept: &Kept) {
        self.is_whole = false;
        self.frames = Vec::new();
        kept.remove(std::mem::take(&mut self.bytes));
    }

    /// Keeps a frame, if it is to be kept; says whether it was.
    fn keep(&mut self, frame: &Bytes, kept: &Kept) {
        if !self.is_whole {
            return;
        }
        let fits = self.bytes + frame.len() <= CALL_BYTES_MAX;
        if !fits || !kept.add(frame.len()) {
            return self.forget(kept);
        }
        self.bytes += frame.len();
        self.frames.push(frame.clone());
    }
}

/// A body as one attempt sends it.
pub(super) struct Replay {
    recording: Arc<Recording>,
    turn: usize,
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
        if state.turn != this.turn {
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
                None => state.forget(&this.recording.kept),
            },
            Some(Err(_)) => state.forget(&this.recording.kept),
            None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let state = self.recording.lock();
        state.turn == self.turn && self.position >= state.frames.len() && state.body.is_end_stream()
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
    async fn a_second_attempt_sends_what_the_first_did_and_the_rest() {
        let kept = Kept::default();
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
    async fn nothing_is_kept_once_the_answer_begins() {
        let kept = Kept::default();
        let recording = Recording::new(chunks(vec![b"ab".into(), b"cd".into()]), &kept);
        let mut body = recording.play();
        next(&mut body).await.unwrap();
        assert_eq!(kept.0.load(Ordering::Relaxed), 2);

        recording.forget();

        assert_eq!(kept.0.load(Ordering::Relaxed), 0);
        assert_eq!(next(&mut body).await.unwrap(), "cd");
        assert_eq!(kept.0.load(Ordering::Relaxed), 0);
        assert!(!recording.can_play());
    }

    #[tokio::test]
    async fn a_body_over_the_bound_passes_and_is_not_kept() {
        for (size, can_play) in [(CALL_BYTES_MAX, true), (CALL_BYTES_MAX + 1, false)] {
            let kept = Kept::default();
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
    async fn all_calls_together_keep_no_more_than_their_bound() {
        let kept = Kept::default();
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
