//! Closed-loop load: a number of clients, each with one call under way, for a time.

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
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};
use trestle_proto::RawCodec;

/// Connections of the load generator; one HTTP/2 connection alone would be the bottleneck.
const CONNECTIONS: usize = 4;

/// What a run did.
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

/// Runs `clients` loops of `call` for `time`; `call` gets a number that is new each time and returns how much it did.
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

/// Connections to one server.
#[derive(Clone)]
pub(crate) struct Connections {
    channels: Arc<[Channel]>,
    authorization: Option<MetadataValue<Ascii>>,
}

impl Connections {
    pub(crate) async fn open(endpoint: &str) -> Self {
        let endpoint = Endpoint::from_shared(endpoint.to_owned()).unwrap();
        let endpoint = endpoint
            .tcp_nodelay(true)
            .initial_stream_window_size(1024 * 1024)
            .initial_connection_window_size(4 * 1024 * 1024);
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            channels.push(endpoint.connect().await.unwrap());
        }
        Self { channels: channels.into(), authorization: None }
    }

    /// The same connections, whose single calls carry credentials.
    pub(crate) fn sending(&self, authorization: &str) -> Self {
        let authorization = Some(authorization.parse().unwrap());
        Self { channels: Arc::clone(&self.channels), authorization }
    }

    /// One of the connections, for a call with this number.
    pub(crate) fn pick(&self, number: u64) -> Channel {
        let index = usize::try_from(number).unwrap_or_default() % self.channels.len();
        self.channels.get(index).unwrap().clone()
    }

    /// One call with encoded messages, so that every path costs the load generator the same.
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
        let mut request = Request::new(message);
        if let Some(value) = &self.authorization {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(grpc.unary(request, path, RawCodec).await?.into_inner())
    }
}
