//! The ceiling of a call: a tonic server that returns its request.

use std::convert::Infallible;

use bytes::Bytes;
use tonic::{
    Request, Response, Status,
    body::Body,
    codegen::{BoxFuture, Service},
    server::{Grpc, NamedService, UnaryService},
    transport::{Server, server::TcpIncoming},
};

use trestle_proto::RawCodec;

/// The method of the echo.
pub(crate) const PATH: &str = "/trestle.bench.Echo/Echo";

#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "trestle.bench.Echo";
}

struct ResponseFuture;

impl UnaryService<Bytes> for ResponseFuture {
    type Response = Bytes;
    type Future = std::future::Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        std::future::ready(Ok(Response::new(request.into_inner())))
    }
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move { Ok(Grpc::new(RawCodec).unary(ResponseFuture, request).await) })
    }
}

/// Serves on a free port, which the ready line reports, until the process is killed.
pub(crate) fn serve() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("ready grpc={}", listener.local_addr().unwrap());
        Server::builder()
            .initial_stream_window_size(1024 * 1024)
            .initial_connection_window_size(4 * 1024 * 1024)
            .add_service(Echo)
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
            .await
            .unwrap();
    });
}
