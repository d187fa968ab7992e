//! Closed-loop load: a number of clients, each with one call in flight, for a time.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use tonic::{
    Request, Status,
    transport::{Channel, Endpoint},
};
use trestle_proto::RawCodec;

use crate::http2::Connection;

/// Connections of the load, and of the rest; one HTTP/2 connection alone would be the bottleneck.
const CONNECTIONS: usize = 4;

/// The result of a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Done {
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
}

impl Done {
    pub(crate) fn rate(self) -> f64 {
        self.operations as f64 / self.seconds
    }
}

/// Runs `clients` loops of `call` for `time`; `call` gets a new number each time and returns its number of operations.
pub(crate) async fn drive<F, R>(clients: usize, time: Duration, call: F) -> Done
where
    F: Fn(u64) -> R + Send + Sync + 'static,
    R: Future<Output = u64> + Send,
{
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let call = Arc::new(call);
    let started = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let call = Arc::clone(&call);
            tokio::spawn(async move {
                let mut done = 0;
                while started.elapsed() < time {
                    done += call(NUMBERS.fetch_add(1, Ordering::Relaxed)).await;
                }
                done
            })
        })
        .collect();
    let mut operations = 0;
    for task in tasks {
        operations += task.await.unwrap();
    }
    Done { operations, seconds: started.elapsed().as_secs_f64() }
}

/// Connections to one server: some of a light client, for the load, and as many of tonic's for the rest.
#[derive(Clone)]
pub(crate) struct Connections {
    load: Arc<[Connection]>,
    channels: Arc<[Channel]>,
    authorization: Option<Arc<str>>,
}

impl Connections {
    pub(crate) async fn open(endpoint: &str) -> Self {
        let mut load = Vec::new();
        for _ in 0..CONNECTIONS {
            load.push(Connection::open(endpoint.trim_start_matches("http://")).await);
        }
        let endpoint = Endpoint::from_shared(endpoint.to_owned()).unwrap();
        let endpoint = endpoint
            .tcp_nodelay(true)
            .initial_stream_window_size(1024 * 1024)
            .initial_connection_window_size(4 * 1024 * 1024);
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            channels.push(endpoint.connect().await.unwrap());
        }
        Self { load: load.into(), channels: channels.into(), authorization: None }
    }

    /// The same connections, whose single calls carry credentials.
    pub(crate) fn sending(&self, authorization: &str) -> Self {
        Self { authorization: Some(authorization.into()), ..self.clone() }
    }

    /// One of the connections, for a call with this number.
    pub(crate) fn pick(&self, number: u64) -> Channel {
        let index = usize::try_from(number).unwrap_or_default() % self.channels.len();
        self.channels.get(index).unwrap().clone()
    }

    /// One call of the load.
    pub(crate) async fn call(
        &self,
        number: u64,
        path: &'static str,
        message: Bytes,
    ) -> Result<Bytes, String> {
        let index = usize::try_from(number).unwrap_or_default() % self.load.len();
        let connection = self.load.get(index).unwrap();
        connection.call(path, self.authorization.as_deref(), message).await
    }

    /// One call that reports why it failed, at the cost of a full client.
    pub(crate) async fn unary(
        &self,
        number: u64,
        path: &'static str,
        message: Bytes,
    ) -> Result<Bytes, Status> {
        let mut grpc =
            tonic::client::Grpc::new(self.pick(number)).max_decoding_message_size(16 << 20);
        grpc.ready().await.unwrap();
        let path = http::uri::PathAndQuery::from_static(path);
        Ok(grpc.unary(Request::new(message), path, RawCodec).await?.into_inner())
    }
}
