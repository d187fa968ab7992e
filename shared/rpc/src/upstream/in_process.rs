//! Streams between a caller and a service in one process: their messages pass as they are, neither encoded nor copied.
//!
//! A call has both forms of a stream: its body, as every call, and a local stream in the extensions of its request,
//! which no other process sees. A service that finds it there reads or fills it, and the body remains unread; any other
//! uses the body.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use tonic::{Request, Status, Streaming};

use crate::response_stream::ResponseStream;

/// A stream of `T` that one side of a call adds and the other removes. Clones are the same stream.
pub struct LocalStream<T>(Arc<Mutex<Option<BoxStream<'static, T>>>>);

impl<T> Clone for LocalStream<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for LocalStream<T> {
    /// An empty one: for responses, which the service adds.
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Send + 'static> LocalStream<T> {
    /// The messages of a request.
    pub fn of_request(messages: impl Stream<Item = T> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(messages.boxed()))))
    }

    /// The messages of a request for its body: none where a service in this process reads them here.
    pub fn for_body(&self) -> impl Stream<Item = T> + Send + 'static {
        let local = self.clone();
        let messages = stream::once(async move { local.take() });
        messages.flat_map(|messages| messages.unwrap_or_else(|| stream::empty().boxed()))
    }

    /// The messages, once.
    pub fn take(&self) -> Option<BoxStream<'static, T>> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<BoxStream<'static, T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The messages of a request, as its service reads them.
pub enum RequestMessages<M> {
    /// From its body.
    Decoded(Box<Streaming<M>>),
    /// Of a caller in this process.
    Passed(BoxStream<'static, M>),
}

impl<M: Send + 'static> RequestMessages<M> {
    /// The request with its messages.
    #[must_use]
    pub fn of(request: Request<Streaming<M>>) -> Request<Self> {
        let local = request.extensions().get::<LocalStream<M>>();
        let passed = local.and_then(LocalStream::take);
        request.map(|decoded| match passed {
            Some(messages) => Self::Passed(messages),
            None => Self::Decoded(Box::new(decoded)),
        })
    }
}

impl<M> Stream for RequestMessages<M> {
    type Item = Result<M, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.get_mut() {
            Self::Decoded(messages) => Pin::new(&mut **messages).poll_next(cx),
            Self::Passed(messages) => messages.as_mut().poll_next(cx).map(|next| next.map(Ok)),
        }
    }
}

/// What a service returns for its `responses`: to a caller in this process they pass, and their body remains open until
/// the caller drops it. `local` is that of the request.
pub fn respond<A: Send + 'static>(
    local: Option<LocalStream<Result<A, Status>>>,
    responses: ResponseStream<A>,
) -> ResponseStream<A> {
    match local {
        None => responses,
        Some(local) => {
            *local.lock() = Some(responses);
            stream::pending().boxed()
        }
    }
}

/// The responses of a call, as its caller reads them.
pub struct ResponseMessages<A> {
    passed: Option<ResponseStream<A>>,
    decoded: Streaming<A>,
}

impl<A: Send + 'static> ResponseMessages<A> {
    /// The responses of a call that was made with `local`.
    #[must_use]
    pub fn new(local: &LocalStream<Result<A, Status>>, decoded: Streaming<A>) -> Self {
        Self { passed: local.take(), decoded }
    }
}

impl<A: Send + 'static> Stream for ResponseMessages<A> {
    type Item = Result<A, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(passed) = &mut this.passed else {
            return Pin::new(&mut this.decoded).poll_next(cx);
        };
        // What ends the call early, such as a revocation, ends its body.
        if let Poll::Ready(Some(Err(status))) = Pin::new(&mut this.decoded).poll_next(cx) {
            this.passed = Some(stream::empty().boxed());
            return Poll::Ready(Some(Err(status)));
        }
        passed.as_mut().poll_next(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use prost::Name;
    use tonic::{
        Code,
        codec::{Codec as _, Decoder},
    };
    use trestle_proto::{Codec, blob::v1::ReadBlobResponse};

    use super::*;

    fn message(data: &'static str) -> ReadBlobResponse {
        ReadBlobResponse { data: data.into(), ..ReadBlobResponse::default() }
    }

    /// The responses of a body, which ends by this error or remains open.
    fn body(error: Option<Status>) -> Streaming<ReadBlobResponse> {
        fn decoder<M: prost::Message + Name + Default + Send + 'static>()
        -> impl Decoder<Item = M, Error = Status> {
            Codec::<M, M>::default().decoder()
        }
        let trailers = error.map(|error| {
            let mut trailers = http::HeaderMap::new();
            error.add_header(&mut trailers).expect("a text of ASCII");
            Ok::<_, Status>(Frame::<bytes::Bytes>::trailers(trailers))
        });
        let frames = stream::iter(trailers).chain(stream::pending());
        let body = StreamBody::new(frames.boxed());
        Streaming::new_response(decoder(), body, http::StatusCode::OK, None, None)
    }

    #[tokio::test]
    async fn a_request_passes_to_a_service_that_finds_it_and_is_no_body_then() {
        let local = LocalStream::of_request(stream::iter([1, 2]));
        let clone = local.clone();

        let passed: Vec<i32> = clone.take().expect("the messages").collect().await;

        assert_eq!(passed, [1, 2]);
        assert_eq!(local.for_body().count().await, 0);
        let unseen = LocalStream::of_request(stream::iter([1, 2]));
        assert_eq!(unseen.for_body().collect::<Vec<i32>>().await, [1, 2]);
        assert!(unseen.take().is_none());
    }

    #[tokio::test]
    async fn responses_pass_to_a_caller_in_the_process_and_stay_those_of_the_body_for_others() {
        let responses = || stream::iter([Ok(message("one")), Ok(message("two"))]).boxed();
        let local = LocalStream::default();

        let unread = respond(Some(local.clone()), responses());
        let read = ResponseMessages::new(&local, body(None));
        let direct = respond(None, responses());

        assert!(futures::poll!(unread.into_future()).is_pending(), "the body remains open");
        let expected = [message("one"), message("two")];
        assert_eq!(read.try_collect::<Vec<_>>().await.expect("no error"), expected);
        assert_eq!(direct.try_collect::<Vec<_>>().await.expect("no error"), expected);
    }

    #[tokio::test]
    async fn what_ends_the_call_ends_responses_that_pass() {
        let local = LocalStream::default();
        drop(respond(Some(local.clone()), stream::pending().boxed()));
        let mut read = ResponseMessages::new(&local, body(Some(Status::aborted("revoked"))));

        let error = read.try_next().await.expect_err("the error of the body");

        assert_eq!((error.code(), error.message()), (Code::Aborted, "revoked"));
        assert_eq!(read.try_next().await.expect("no other error"), None);
    }
}
