//! Calls whose request or response is a stream of messages. Nothing is collected: each side is
//! polled only as fast as the other takes what it sends.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::Stream;
use prost::{Message, Name};
use tokio::sync::oneshot;
use tonic::{Status, client::Grpc, codegen::http::uri::PathAndQuery, metadata::MetadataMap};
use trestle_model::limits::MESSAGE_BYTES_MAX;
use trestle_proto::Codec;
use trestle_rpc::upstream::Upstream;
use trestle_rpc::upstream::in_process::{LocalStream, ResponseMessages};

use crate::{error::RestError, grpc_call::GrpcCall};

impl GrpcCall {
    /// Makes a call whose request is a stream of messages.
    ///
    /// A message that is an error cancels the call: the service sees a request that breaks off, not
    /// one that is complete.
    ///
    /// # Errors
    /// The error of the call, also before all messages are sent; or the first error in `messages`.
    pub(crate) async fn client_streaming<Q, A>(
        self,
        path: &'static str,
        messages: impl Stream<Item = Result<Q, RestError>> + Send + 'static,
    ) -> Result<A, RestError>
    where
        Q: Message + 'static,
        A: Message + Name + Default + 'static,
    {
        let (errors, error) = oneshot::channel();
        let messages = UntilError { messages: Box::pin(messages), errors: Some(errors) };
        let local = LocalStream::of_request(messages);
        let (mut client, mut request) = self.into_tonic(local.for_body());
        request.extensions_mut().insert(local);
        let path = PathAndQuery::from_static(path);
        let response = client.client_streaming(request, path, Codec::default());
        tokio::select! {
            biased;
            Ok(error) = error => Err(error),
            response = response => Ok(response?.into_inner()),
        }
    }

    /// Makes a call whose response is a stream of messages. Dropping the stream cancels the call.
    ///
    /// # Errors
    /// The error of a call that fails before its first message.
    pub(crate) async fn server_streaming<Q, A>(
        self,
        path: &'static str,
        message: Q,
    ) -> Result<ResponseMessages<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Name + Default + 'static,
    {
        let (mut client, mut request) = self.into_tonic(message);
        let local = LocalStream::default();
        request.extensions_mut().insert(local.clone());
        let path = PathAndQuery::from_static(path);
        let responses = client.server_streaming(request, path, Codec::default()).await?;
        Ok(ResponseMessages::new(&local, responses.into_inner()))
    }

    /// The client and the request of the call: in the trace of the REST request, for its caller, until its deadline.
    fn into_tonic<T>(self, message: T) -> (Grpc<Upstream>, tonic::Request<T>) {
        let client = Grpc::new(self.upstream).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let metadata = MetadataMap::from_headers(self.headers);
        (client, tonic::Request::from_parts(metadata, self.extensions, message))
    }
}

/// Messages up to the first error. After an error the stream remains pending: its end would make the request complete.
struct UntilError<S> {
    messages: Pin<Box<S>>,
    errors: Option<oneshot::Sender<RestError>>,
}

impl<S, Q> Stream for UntilError<S>
where
    S: Stream<Item = Result<Q, RestError>>,
{
    type Item = Q;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Q>> {
        if self.errors.is_none() {
            return Poll::Pending;
        }
        match ready!(self.messages.as_mut().poll_next(cx)) {
            None => Poll::Ready(None),
            Some(Ok(message)) => Poll::Ready(Some(message)),
            Some(Err(error)) => {
                // Fails only if the call has ended, and then the stream is not polled again.
                let _ = self.errors.take().map(|errors| errors.send(error));
                Poll::Pending
            }
        }
    }
}
