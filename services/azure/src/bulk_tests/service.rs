//! A service with a client stream and a server stream, which counts what it reads and writes.

use std::{future::Future, pin::Pin};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use prost::{Message, Name};
use tonic::{Status, Streaming, server::Grpc};
use tower::service_fn;
use trestle_model::fault::{Fault, Reason};
use trestle_proto::Codec;
use trestle_rpc::layer::{CallService, Request};
use trestle_rpc::response_stream::ResponseStream;
use trestle_rpc::status::{DOMAIN, IntoStatus as _};
use trestle_rpc::upstream::in_process::{RequestMessages, respond};

use super::Flow;

pub(super) const WRITE: &str = "/trestle.test.v1.Bulk/Write";
pub(super) const READ: &str = "/trestle.test.v1.Bulk/Read";

/// Bulk data of a stream.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Chunk {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) data: Bytes,
}

/// How much has been written.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Written {
    #[prost(uint64, tag = "1")]
    pub(super) size: u64,
}

/// Everything is read.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ReadRequest {}

macro_rules! named {
    ($($message:ident)*) => {
        $(impl Name for $message {
            const NAME: &'static str = stringify!($message);
            const PACKAGE: &'static str = "trestle.test.v1";
        })*
    };
}

named! { Chunk Written ReadRequest }

/// The behaviour of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Reads uploads to their end, and writes so many bytes of a download.
    Serve(usize),
    /// Fails as unavailable once it has read or written so many bytes.
    FailAfter(usize),
    /// Denies permission after the first message of an upload.
    Deny,
}

type Uploaded = Pin<Box<dyn Future<Output = Result<tonic::Response<Written>, Status>> + Send>>;

pub(super) fn service(behaviour: Behaviour, flow: Flow) -> CallService {
    CallService::new(service_fn(move |request: Request| {
        let flow = flow.clone();
        async move {
            Ok(match request.uri().path() {
                WRITE => {
                    let write = service_fn(move |mut request: tonic::Request<Streaming<Chunk>>| {
                        if !flow.is_local() {
                            request.extensions_mut().clear();
                        }
                        let messages = RequestMessages::of(request).into_inner();
                        let is_passed = matches!(messages, RequestMessages::Passed(_));
                        assert_eq!(is_passed, flow.is_local());
                        let upload = upload(messages, behaviour, flow.clone());
                        Box::pin(upload) as Uploaded
                    });
                    Grpc::new(Codec::default()).client_streaming(write, request).await
                }
                READ => {
                    let read = service_fn(move |request: tonic::Request<ReadRequest>| {
                        let local = request.extensions().get().cloned();
                        let local = local.filter(|_| flow.is_local());
                        let chunks = respond(local, download(behaviour, &flow));
                        async { Ok::<_, Status>(tonic::Response::new(chunks)) }
                    });
                    Grpc::new(Codec::default()).server_streaming(read, request).await
                }
                path => Status::unimplemented(path.to_owned()).into_http(),
            })
        }
    }))
}

async fn upload(
    mut chunks: RequestMessages<Chunk>,
    behaviour: Behaviour,
    flow: Flow,
) -> Result<tonic::Response<Written>, Status> {
    while let Some(chunk) = chunks.try_next().await? {
        flow.receive(chunk.data.len());
        match behaviour {
            Behaviour::FailAfter(bytes) if flow.received() >= bytes => return Err(unavailable()),
            Behaviour::Deny => {
                return Err(Fault::new(Reason::AuthorizationFailure, "denied").into_status(DOMAIN));
            }
            _ => {}
        }
    }
    flow.complete();
    Ok(tonic::Response::new(Written { size: flow.received() as u64 }))
}

fn download(behaviour: Behaviour, flow: &Flow) -> ResponseStream<Chunk> {
    let (bytes, is_whole) = match behaviour {
        Behaviour::Serve(bytes) => (bytes, true),
        Behaviour::FailAfter(bytes) => (bytes, false),
        Behaviour::Deny => (0, false),
    };
    let end = futures::stream::iter((!is_whole).then(|| Err(unavailable())));
    Box::pin(flow.pieces(bytes).map(|data| Ok(Chunk { data })).chain(end))
}

fn unavailable() -> Status {
    Fault::new(Reason::ServerBusy, "the service is shutting down").into_status(DOMAIN)
}
