//! A service in another process.

use std::{
    sync::{Arc, Mutex, Once, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, request::Parts, uri::PathAndQuery};
use hyper::body::Incoming;
use opentelemetry::metrics::Meter;
use tokio::{task::JoinSet, time::Instant};
use tonic::body::Body;
use tracing::{Instrument as _, debug};

use super::{
    answer::ForwardedBody,
    endpoint::Endpoint,
    failed_call::{self, FailedCall},
    kind::kind_of,
    link::UpstreamLink,
    outgoing_body::OutgoingBody,
    pool::{Lease, Pool, WaitLimits},
    replay::{Recording, RetainedBytes},
    retry::{Attempts, RetryBudget, RetryCounts, RetryOutcome},
    tls::ClientTls,
};
use crate::forward::Forward;
use crate::forwarded;
use crate::layer::{Request, Response, ResponseFuture, deadline, error_response};
use crate::unserved::unserved;
use trestle_model::fault::{Fault, Reason};

/// Most connections, as a multiple of those that are kept open: for peaks.
const GROWTH: usize = 4;
/// How much of a deadline may pass before its header is rewritten.
const SPENT_MIN: Duration = Duration::from_millis(1);

/// How often a call may find its connection closed before anything was sent. A closed connection is
/// not picked again, so this bound is for defects only.
const UNSENT_MAX: usize = 16;

/// The upstream configuration of a role.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The service whose health is checked; none: no check. Default: none.
    pub service: Option<&'static str>,
    /// A limitation whose health the process reports, as [`Remote::is_limited`] returns it; only with a service.
    /// Default: none.
    pub limitation: Option<&'static str>,
    /// Connections that are kept open, at least 1: one is one task, and so one core. While all are full,
    /// up to four times as many are opened. Default: 1.
    pub connections: usize,
    /// How long after the last connection was closed calls wait for the next. Default: 0.
    pub wait: Duration,
    /// Most calls that wait at a time. Default: 512.
    pub waiting_max: usize,
    /// Longest time until a response begins, for calls without a deadline. Default: 60 s.
    pub answer_within: Duration,
    /// The setting with the endpoint, named in the error of a call whose service is not served there; none: that error
    /// is forwarded. Default: none.
    pub setting: Option<String>,
    /// TLS, for endpoints that begin with `https`. Default: none.
    pub tls: Option<Arc<ClientTls>>,
    /// A header that proves to the process that its peer is a gateway; none: none is sent. Default: none.
    pub proof: Option<(HeaderName, HeaderValue)>,
    /// Counts calls that may be retried, labelled with the service. Default: none.
    pub meter: Option<Meter>,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            service: None,
            limitation: None,
            connections: 1,
            wait: Duration::ZERO,
            waiting_max: 512,
            answer_within: Duration::from_secs(60),
            setting: None,
            tls: None,
            proof: None,
            meter: None,
        }
    }
}

/// In the extensions of the response to a call that another process did not answer, and that changed nothing there.
#[derive(Debug, Clone, Copy)]
pub struct NothingChanged;

/// A service in another process, over HTTP/2 connections. Connects at its first use, on the runtime
/// that uses it. Clones share the connections, which close with the last clone.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<RemoteState>,
}

struct RemoteState {
    endpoint: Endpoint,
    options: RemoteOptions,
    pool: Arc<Pool>,
    budget: RetryBudget,
    kept: RetainedBytes,
    /// Ended when dropped.
    links: Mutex<JoinSet<()>>,
    has_links: Once,
}

impl Remote {
    /// For an endpoint.
    #[must_use]
    pub fn new(endpoint: Endpoint, options: RemoteOptions) -> Self {
        let limits = WaitLimits { wait: options.wait, waiting_max: options.waiting_max };
        let pool = Pool::new(endpoint.authority.to_string(), limits);
        let counted = options.meter.as_ref().zip(options.service);
        let counts = counted.map(|(meter, service)| RetryCounts::new(meter, service));
        let shared = RemoteState {
            endpoint,
            options,
            pool: Arc::new(pool),
            budget: RetryBudget::new(counts),
            kept: RetainedBytes::default(),
            links: Mutex::default(),
            has_links: Once::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The problem of the service; none, while it serves or calls wait for it. Connects if nothing did so
    /// far, and waits a few seconds at most for the result.
    pub async fn problem(&self) -> Option<&'static str> {
        self.shared.begin();
        self.shared.pool.problem().await
    }

    /// Whether a connected process reports NOT_SERVING for the limitation of the options.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.shared.pool.is_limited()
    }

    /// Whether a connected process reports that the service of the options serves.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.shared.pool.is_serving()
    }

    pub(super) fn send(&self, mut request: Request) -> ResponseFuture {
        let shared = &self.shared;
        shared.begin();
        shared.budget.deposit();
        forwarded::export(&mut request);
        if let Some((name, value)) = &shared.options.proof {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        let path = request.uri().path_and_query().cloned();
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(shared.endpoint.scheme.clone());
        uri.authority = Some(shared.endpoint.authority.clone());
        uri.path_and_query = Some(path.clone());
        *request.uri_mut() = http::Uri::from_parts(uri).expect("a scheme, an authority and a path");
        *request.version_mut() = http::Version::HTTP_2;
        let (host, port) = (shared.endpoint.host(), shared.endpoint.port);
        let forward = Forward::start(&mut request, host, Some(port));
        let span = forward.span.clone();
        // Extensions are of this process only.
        request.extensions_mut().clear();
        let (parts, body) = request.into_parts();
        let call = RemoteCall {
            recording: Recording::new(body, &shared.kept),
            shared: Arc::clone(shared),
            parts,
            path,
            forward,
            began: Instant::now(),
            attempts: Attempts::default(),
            unsent: 0,
        };
        let answering = async move { Ok(call.run().await) };
        if span.is_disabled() { Box::pin(answering) } else { Box::pin(answering.instrument(span)) }
    }
}

impl RemoteState {
    /// Starts the links, once.
    fn begin(&self) {
        self.has_links.call_once(|| {
            self.pool.begin();
            let kept = self.options.connections.max(1);
            let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            for index in 0..kept {
                links.spawn(self.link(index).keep());
            }
            let extra = (kept..kept.saturating_mul(GROWTH)).map(|index| self.link(index));
            links.spawn(grow(Arc::clone(&self.pool), extra.collect()));
        });
    }

    fn link(&self, index: usize) -> UpstreamLink {
        UpstreamLink {
            pool: Arc::clone(&self.pool),
            endpoint: self.endpoint.clone(),
            tls: self.options.tls.clone(),
            service: self.options.service,
            limitation: self.options.limitation,
            index,
        }
    }
}

/// Opens one more connection at a time while every one is full.
async fn grow(pool: Arc<Pool>, mut idle: Vec<UpstreamLink>) {
    let mut busy = JoinSet::new();
    loop {
        tokio::select! {
            () = pool.grow.notified() => {
                let Some(link) = idle.pop() else { continue };
                debug!(connection = link.index, "every connection is full");
                match link.open_one(link.index).await {
                    None => idle.push(link),
                    Some(made) => {
                        busy.spawn(async move {
                            link.hold(made).await;
                            link
                        });
                    }
                }
            }
            Some(Ok(link)) = busy.join_next() => idle.push(link),
        }
    }
}

/// The result of an attempt; none if its connection ended and never saw the call.
///
/// A connection that ends returns the calls in its queue, but not one that is added in that instant: it stays in the
/// queue until nothing refers to the connection, which its own call does. So a call waits for the end too.
async fn or_lost<T>(
    sent: impl Future<Output = T>,
    ended: impl Future<Output = ()>,
    recording: &Recording,
) -> Option<T> {
    tokio::select! {
        biased;
        sent = sent => Some(sent),
        () = async {
            ended.await;
            // A call that was sent gets its response, or an error: a connection that drains ends before its calls.
            if !recording.is_untouched() {
                std::future::pending::<()>().await;
            }
        } => None,
    }
}

/// One call until its response begins.
struct RemoteCall {
    shared: Arc<RemoteState>,
    parts: Parts,
    path: PathAndQuery,
    recording: Arc<Recording>,
    forward: Forward,
    began: Instant,
    attempts: Attempts,
    /// How often the connection was closed before anything was sent.
    unsent: usize,
}

impl RemoteCall {
    async fn run(mut self) -> Response {
        loop {
            let pool = &self.shared.pool;
            let lease = match pool.lease() {
                Some(lease) => lease,
                None => match pool.lease_soon().await {
                    Some(lease) => lease,
                    None if self.attempts.any() => {
                        return self.rejected(failed_call::interrupted());
                    }
                    None => {
                        let fault = failed_call::unreachable(self.path.path());
                        return self.rejected(fault);
                    }
                },
            };
            let sent = lease.sender().try_send_request(self.request());
            let Some(sent) = or_lost(sent, lease.ended(), &self.recording).await else {
                self.unsent += 1;
                continue;
            };
            let pause = match sent {
                Ok(answer) => match self.after_answer(answer.headers()) {
                    Some(pause) => pause,
                    None => return self.answered(answer, lease),
                },
                Err(mut failed) => {
                    let is_back = failed.take_message().is_some();
                    if is_back && self.unsent < UNSENT_MAX {
                        self.unsent += 1;
                        continue;
                    }
                    let untouched = is_back || self.recording.is_untouched();
                    let failure = failed_call::judge(&failed.into_error(), untouched);
                    match self.after_failure(failure) {
                        Ok(pause) => pause,
                        Err(fault) => return self.rejected(fault),
                    }
                }
            };
            drop(lease);
            self.shared.budget.count(RetryOutcome::Sent);
            let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            debug!(path = self.path.path(), pause_ms, "retrying");
            tokio::time::sleep(pause).await;
        }
    }

    fn answered(mut self, mut answer: http::Response<Incoming>, lease: Lease) -> Response {
        self.recording.discard();
        // A client would take the address that it calls for the wrong one.
        let setting = self.shared.options.setting.as_deref();
        if let Some(setting) = setting.filter(|_| failed_call::is_unserved(answer.headers())) {
            let reason = format!("the server at {setting} does not serve it");
            let fault = unserved(self.path.path(), Some(&reason));
            return self.rejected(fault);
        }
        self.forward.answered(answer.headers_mut());
        let Self { path, forward, .. } = self;
        answer
            .map(|body| Body::new(ForwardedBody { body: Some(body), path, forward, _lease: lease }))
    }

    fn rejected(mut self, fault: Fault) -> Response {
        let nothing_changed = fault.reason == Reason::ServerUnavailable;
        let mut answer = error_response(fault);
        if nothing_changed {
            answer.extensions_mut().insert(NothingChanged);
        }
        self.forward.answered(answer.headers_mut());
        answer
    }

    /// The request for the next attempt.
    fn request(&self) -> http::Request<OutgoingBody> {
        let mut parts = self.parts.clone();
        if let Some(left) = self.time_left().filter(|_| self.began.elapsed() >= SPENT_MIN) {
            deadline::insert(&mut parts.headers, left);
        }
        http::Request::from_parts(parts, OutgoingBody::Call(self.recording.play()))
    }

    /// The rest of the deadline; none without one.
    ///
    /// A streamed response may outlast our own limit, which is for its beginning.
    fn time_left(&self) -> Option<Duration> {
        let client_limit = deadline::client_limit(&self.parts.headers).ok().flatten();
        let is_unary = kind_of(self.path.path()).is_unary;
        let own = is_unary.then_some(self.shared.options.answer_within);
        let limit = client_limit.into_iter().chain(own).min()?;
        Some(limit.saturating_sub(self.began.elapsed()))
    }

    fn after_answer(&mut self, headers: &HeaderMap) -> Option<Duration> {
        let pause = self.attempts.after_answer(headers, &self.shared.budget)?;
        self.may_retry(pause).then_some(pause)
    }

    fn after_failure(&mut self, failure: FailedCall) -> Result<Duration, Fault> {
        let is_read = kind_of(self.path.path()).is_read;
        let pause = self.attempts.after_failure(failure, is_read, &self.shared.budget);
        pause.filter(|pause| self.may_retry(*pause)).ok_or_else(|| match failure {
            FailedCall::Unseen => failed_call::interrupted(),
            FailedCall::Unknown => failed_call::broken(is_read),
        })
    }

    /// Whether another attempt would send the same request, and in time.
    fn may_retry(&self, pause: Duration) -> bool {
        let can = self.recording.can_play() && self.time_left().is_none_or(|left| pause < left);
        if !can {
            self.shared.budget.count(RetryOutcome::TooLate);
        }
        can
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use http_body_util::{BodyExt as _, Full};

    use super::*;

    fn recording() -> Arc<Recording> {
        Recording::new(Body::new(Full::from("a call")), &RetainedBytes::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_stays_in_the_queue_of_an_ended_connection_is_lost() {
        let (recording, end) = (recording(), tokio::time::sleep(Duration::from_secs(1)));
        let _unread = recording.play();

        let began = Instant::now();
        let sent = or_lost(pending::<()>(), end, &recording).await;

        assert_eq!((sent, began.elapsed()), (None, Duration::from_secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_sent_gets_its_response_after_the_end_of_its_connection() {
        let recording = recording();
        let answered = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            "answered"
        };
        recording.play().collect().await.unwrap();

        let sent = or_lost(answered, ready(()), &recording).await;

        assert_eq!(sent, Some("answered"));
    }

    #[tokio::test]
    async fn what_a_connection_returns_at_its_end_is_the_result() {
        let recording = recording();
        let _unread = recording.play();

        assert_eq!(or_lost(ready("returned"), ready(()), &recording).await, Some("returned"));
    }
}
