//! A connection on hyper, over HTTP/2 or HTTP/1.

use std::{cell::RefCell, convert::Infallible, future};
use trestle_rpc::status::{DOMAIN, IntoStatus as _};

use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::body::Body;
use tower::Service as _;
use trestle_rpc::peer::Peer;

use super::{
    close::jittered,
    connection::Connection,
    pieced_body::{PiecedBody, UnsentBytes},
    protocol::HttpVersion,
    tuning::{CoalescedWrites, InlineExecutor, PollCount},
};

/// The flow-control window of a call: bytes that it may send before they are read.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// The flow-control window of a connection, for all of its calls.
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Largest headers of a call, in bytes as HTTP/2 counts them: names, values and 32 for each. A call with more is
/// rejected with HTTP status 431, and its connection remains open.
const HEADER_BYTES_MAX: u32 = 16 * 1024;
/// Largest head of a request of HTTP/1, its address included, in bytes. Twice the above, so that the service can reject
/// most oversized requests in its own format; larger ones receive a 431 without a body.
const HTTP1_HEAD_BYTES_MAX: usize = 2 * HEADER_BYTES_MAX as usize;

impl Connection {
    /// Serves the calls of an open connection until it closes.
    pub(super) async fn serve<S>(&self, stream: S, version: HttpVersion, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        // A clone for each call would copy every layer before the services.
        let service = RefCell::new(self.service.clone());
        let polls = PollCount::default();
        let (age_max, unsent) = (jittered(self.bounds.age_max, &peer), UnsentBytes::default());
        let in_flight_calls = self.slot.calls.clone();
        let calls = hyper::service::service_fn(move |request: http::Request<Incoming>| {
            let admitted = in_flight_calls.admit(request.headers()).map(|in_flight| {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(peer.clone());
                (service.borrow_mut().call(request), in_flight)
            });
            let unsent = unsent.clone();
            async move {
                let (answer, in_flight) = match admitted {
                    Ok((answer, in_flight)) => (answer.await?, Some(in_flight)),
                    Err(fault) => (fault.into_status(DOMAIN).into_http(), None),
                };
                Ok::<_, Infallible>(answer.map(|body| PiecedBody::new(body, unsent, in_flight)))
            }
        });
        match version {
            HttpVersion::Http2 => {
                let connection =
                    http2::Builder::new(InlineExecutor::new(self.bounds.reader_within))
                        .timer(TokioTimer::new())
                        .initial_stream_window_size(STREAM_WINDOW_BYTES)
                        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                        .max_concurrent_streams(self.bounds.streams_max)
                        .max_header_list_size(HEADER_BYTES_MAX)
                        // A client, such as a gateway whose callers vanish, may cancel all of its calls at once on
                        // a busy machine; with more that are reset before they are accepted it is disconnected.
                        .max_pending_accept_reset_streams(self.bounds.streams_max as usize)
                        // gRPC does not use a date, and HPACK would store the last sixty of a connection and compare
                        // the date of each response with all of them.
                        .auto_date_header(false)
                        .keep_alive_interval(self.bounds.keepalive)
                        .keep_alive_timeout(self.bounds.keepalive)
                        .serve_connection(
                            TokioIo::new(CoalescedWrites::new(stream, polls.clone())),
                            calls,
                        );
                self.run_to_close(connection, polls, age_max, self.slot.calls.drain()).await;
            }
            HttpVersion::Http1 => {
                let mut builder = http1::Builder::new();
                if let Some(most) = self.bounds.headers_max {
                    builder.max_headers(most);
                }
                let connection = builder
                    .timer(TokioTimer::new())
                    .header_read_timeout(self.bounds.head_within)
                    .max_header_size(HTTP1_HEAD_BYTES_MAX)
                    .preserve_header_case(self.bounds.keeps_header_case)
                    .serve_connection(TokioIo::new(stream), calls);
                self.run_to_close(connection, polls, age_max, future::ready(())).await;
            }
        }
    }
}
