//! A telemetry receiver that accepts everything and stores nothing.

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

struct Discarded;

impl UnaryService<Bytes> for Discarded {
    type Response = Bytes;
    type Future = std::future::Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        // An answer without a field: everything was accepted.
        std::future::ready(Ok(Response::new(Bytes::new())))
    }
}

macro_rules! sink {
    ($($name:ident = $service:literal),+ $(,)?) => {$(
        #[derive(Clone)]
        struct $name;

        impl NamedService for $name {
            const NAME: &'static str = $service;
        }

        impl Service<http::Request<Body>> for $name {
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
                Box::pin(async move { Ok(Grpc::new(RawCodec).unary(Discarded, request).await) })
            }
        }
    )+};
}

sink!(
    Traces = "opentelemetry.proto.collector.trace.v1.TraceService",
    Metrics = "opentelemetry.proto.collector.metrics.v1.MetricsService",
    Logs = "opentelemetry.proto.collector.logs.v1.LogsService",
);

/// Serves on a free port, which the ready line reports, until the process is killed.
pub(crate) fn serve() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("ready grpc={}", listener.local_addr().unwrap());
        Server::builder()
            .add_service(Traces)
            .add_service(Metrics)
            .add_service(Logs)
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
            .await
            .unwrap();
    });
}
