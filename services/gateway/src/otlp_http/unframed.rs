//! Bodies of OTLP by HTTP whose length is not known before they end. A message of gRPC begins with its length, so such
//! a body is read as a whole first: behind the layers that authenticate its caller and bound its bytes and its time.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};
use trestle_rpc::status::{DOMAIN, IntoStatus as _};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, LengthLimitError, Limited, StreamBody};
use tonic::{Status, body::Body};
use tower::Service;
use trestle_model::fault::{Fault, message_too_large};
use trestle_rpc::layer::body_bytes::Unframed;
use trestle_rpc::layer::middleware::{Middleware, MiddlewareLayer};
use trestle_rpc::layer::{Request, Response, ResponseFuture, error_response};

use super::{incomplete, prefix};

/// Frames the bodies of requests that are marked as [`Unframed`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageFraming {
    message_bytes_max: usize,
}

impl MessageFraming {
    /// For messages of up to so many bytes.
    pub(crate) fn layer(message_bytes_max: usize) -> MiddlewareLayer<Self> {
        MiddlewareLayer(Self { message_bytes_max })
    }
}

impl Middleware for MessageFraming {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let Some(Unframed { is_compressed, .. }) = request.extensions_mut().remove() else {
            return inner.call(request);
        };
        let (failed, most) = (Arc::new(OnceLock::new()), self.message_bytes_max);
        let answer =
            inner.call(request.map(|body| framed(body, most, is_compressed, Arc::clone(&failed))));
        Box::pin(async move {
            let answer = answer.await?;
            // The service saw a broken stream only.
            Ok(failed.get().map_or(answer, |fault: &Fault| error_response(fault.clone())))
        })
    }
}

/// The message of a body, once that has ended. Keeps why it could not be read.
fn framed(body: Body, bytes_max: usize, is_compressed: bool, failed: Arc<OnceLock<Fault>>) -> Body {
    let read = async move {
        let message = whole(body, bytes_max).await.and_then(|message| {
            let prefix = prefix(is_compressed, message.len() as u64)?;
            Ok([prefix, message])
        });
        match message {
            Ok(parts) => Ok(stream::iter(parts.map(|part| Ok::<_, Status>(Frame::data(part))))),
            Err(fault) => Err(failed.get_or_init(|| fault).clone().into_status(DOMAIN)),
        }
    };
    Body::new(StreamBody::new(stream::once(read).try_flatten().boxed()))
}

async fn whole(body: Body, bytes_max: usize) -> Result<Bytes, Fault> {
    let read = Limited::new(body, bytes_max).collect().await;
    let read = read.map_err(|error| match error.is::<LengthLimitError>() {
        true => message_too_large(bytes_max),
        false => incomplete(&*error),
    });
    read.map(|read| read.to_bytes())
}
