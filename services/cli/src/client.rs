//! The connection to a server, and which failures of it are worth another try.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    time::Duration,
};

use tonic::{
    Code, Request, Status,
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;
use trestle_proto::table::v1::table_service_client::TableServiceClient;

use crate::{
    args::ClientArgs,
    credentials::Credentials,
    endpoint,
    errors::{self, CliError},
    trust::TlsArgs,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Largest answer that is taken: the server's pages end before 4 MiB.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A connection whose calls carry credentials.
pub(crate) type Link = InterceptedService<Channel, Credentials>;

/// A generated client over one connection.
pub(crate) type TableClient = TableServiceClient<Link>;

/// A connection and how long a call over it may take.
#[derive(Clone)]
pub(crate) struct Session {
    link: Link,
    timeout: Duration,
}

impl Session {
    /// Connects. The connection is made again by itself when it breaks.
    pub(crate) async fn connect(args: &ClientArgs) -> Result<Self, CliError> {
        Self::on_queue(args, None).await
    }

    /// The same for commands on a queue.
    pub(crate) async fn on_queue(args: &ClientArgs, queue: Option<&str>) -> Result<Self, CliError> {
        let credentials = args.credentials.credentials()?.on_queue(queue);
        let link = InterceptedService::new(connect(&args.endpoint, &args.tls).await?, credentials);
        Ok(Self { link, timeout: args.timeout })
    }

    /// A client of the table service.
    pub(crate) fn table(&self) -> TableClient {
        TableServiceClient::new(self.link.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// The connection itself, for calls on encoded messages.
    pub(crate) fn link(&self) -> Link {
        self.link.clone()
    }

    /// A request with the deadline of a single call. Streams have none.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout);
        request
    }
}

/// Opens one connection whose calls carry the credentials.
pub(crate) async fn link(args: &ClientArgs) -> Result<Link, CliError> {
    let credentials = args.credentials.credentials()?;
    Ok(InterceptedService::new(connect(&args.endpoint, &args.tls).await?, credentials))
}

/// Opens one connection, encrypted where the endpoint says so.
pub(crate) async fn connect(endpoint: &str, tls: &TlsArgs) -> Result<Channel, CliError> {
    let is_encrypted = endpoint::is_encrypted(endpoint)?;
    let usage = |error| CliError::Usage(format!("endpoint=`{endpoint}`: {error}"));
    let mut target = Endpoint::from_shared(endpoint.to_owned()).map_err(usage)?;
    if is_encrypted {
        let refused = |error: tonic::transport::Error| {
            CliError::Usage(format!("certificates cannot be used: {}", innermost(&error)))
        };
        target = target.tls_config(tls.config()?).map_err(refused)?;
    }
    target
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .connect()
        .await
        .map_err(|error| CliError::Connect {
            endpoint: endpoint.to_owned(),
            cause: innermost(&error),
        })
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Tries left for work that can be repeated, with growing, jittered waits.
pub(crate) struct Retries {
    failed: u32,
    random: Random,
}

/// Most tries in a row without progress: about 40 s of waiting in all.
const TRIES_MAX: u32 = 12;
const WAIT_FIRST: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(5);

impl Retries {
    /// All tries left.
    pub(crate) fn new(random: Random) -> Self {
        Self { failed: 0, random }
    }

    /// Work was done: all tries are left again.
    pub(crate) fn progress(&mut self) {
        self.failed = 0;
    }

    /// How long to wait before the next try; `None` when the failure is final or no try is left.
    pub(crate) fn next(&mut self, status: &Status) -> Option<Duration> {
        if !is_retryable(status) || self.failed >= TRIES_MAX {
            return None;
        }
        let longest = WAIT_FIRST.saturating_mul(1 << self.failed.min(10)).min(WAIT_MAX);
        self.failed = self.failed.saturating_add(1);
        let asked = errors::retry_after(&status.get_error_details()).unwrap_or_default();
        let jittered = longest.mul_f64(0.5 + self.random.unit() / 2.0);
        Some(jittered.max(asked.min(WAIT_MAX)))
    }
}

/// Makes a call, again where that may help: only for what is safe to repeat even when its outcome is
/// unknown.
pub(crate) async fn repeated<T>(
    mut call: impl AsyncFnMut() -> Result<T, Status>,
) -> Result<T, Status> {
    let mut retries = Retries::new(Random::from_system());
    loop {
        let failed = match call().await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        match retries.next(&failed) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return Err(failed),
        }
    }
}

/// Whether repeating may help. Only for work that is safe to repeat even when its outcome is
/// unknown.
pub(crate) fn is_retryable(status: &Status) -> bool {
    let is_passing = matches!(status.code(), Code::Unavailable | Code::ResourceExhausted);
    (is_passing && !errors::needs_restart(status)) || errors::is_transport(status)
}

/// A small generator of random numbers, for jitter and load; not for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// Seeded by the operating system.
    pub(crate) fn from_system() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    /// Repeats the same numbers for the same seed.
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number (splitmix64).
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or_default()
    }

    fn unit(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or_default()) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::ErrorDetails;

    use super::*;

    #[test]
    fn retries_are_bounded_and_come_back_after_progress() {
        let mut retries = Retries::new(Random::from_seed(7));
        let down = Status::unavailable("down");

        let waits: Vec<_> = std::iter::from_fn(|| retries.next(&down)).collect();

        assert_eq!(waits.len(), 12);
        assert!(waits.iter().all(|wait| *wait <= WAIT_MAX));
        let first = *waits.first().unwrap();
        assert!(first >= WAIT_FIRST / 2 && first <= WAIT_FIRST);
        retries.progress();
        assert!(retries.next(&down).is_some());
    }

    #[test]
    fn a_refusal_is_not_tried_again() {
        let mut retries = Retries::new(Random::from_seed(7));

        assert_eq!(retries.next(&Status::invalid_argument("no")), None);
        assert_eq!(retries.next(&Status::not_found("no")), None);
        let (code, domain) = (Code::Unavailable, "trestle");
        let stopped = ErrorDetails::with_error_info("STORAGE_STOPPED", domain, []);
        assert_eq!(retries.next(&Status::with_error_details(code, "no", stopped)), None);
    }

    #[tokio::test]
    async fn endpoints_that_are_no_addresses_are_usage_errors() {
        for endpoint in ["", "not an address", "https://localhost:1", "localhost:50051"] {
            let error = connect(endpoint, &TlsArgs::default()).await.unwrap_err();
            assert!(matches!(error, CliError::Usage(_)), "{endpoint}: {error}");
        }
    }
}
