//! A service in another process.

use std::{
    sync::{Arc, Mutex, Once, PoisonError},
    time::Duration,
};

use http::{HeaderMap, request::Parts, uri::PathAndQuery};
use hyper::body::Incoming;
use opentelemetry::metrics::Meter;
use tokio::{task::JoinSet, time::Instant};
use tonic::body::Body;
use tracing::{Instrument as _, debug};

use super::{
    answer::Forwarded,
    endpoint::Endpoint,
    failure::{self, Lost},
    kind::kind_of,
    link::{Link, Outgoing},
    pool::{Lease, Patience, Pool},
    replay::{Kept, Recording},
    retry::{Attempts, Counts, Outcome, RetryBudget},
    tls::ClientTls,
};
use crate::{
    fault::Fault,
    forward::Forward,
    forwarded,
    layer::{Answer, Request, Response, deadline, refusal},
};

/// Connections at most, as a multiple of those that are kept: for peaks.
const GROWTH: usize = 4;
/// What of a deadline may be used up before the rest is written anew.
const SPENT_MIN: Duration = Duration::from_millis(1);

/// How often a call may find its connection gone before anything was sent. Such a connection is not
/// picked again, so this is only reached if that is wrong.
const UNSENT_MAX: usize = 16;

/// How a role is reached.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The service whose health counts; none: the health is not asked for. Default: none.
    pub service: Option<&'static str>,
    /// Connections that are kept, at least 1: a single one is a single task, and so a single core.
    /// While all are full, up to four times as many are made. Default: 1.
    pub connections: usize,
    /// How long after the last connection was lost calls wait for the next. Default: 0.
    pub wait: Duration,
    /// Most calls that wait at a time. Default: 512.
    pub waiting_max: usize,
    /// Longest time until an answer begins, for calls without a time limit. Default: 60 s.
    pub answer_within: Duration,
    /// Encryption, for endpoints that begin with `https`. Default: none.
    pub tls: Option<Arc<ClientTls>>,
    /// Where calls are counted that could be sent again, under the name of the service. Default:
    /// none.
    pub meter: Option<Meter>,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            service: None,
            connections: 1,
            wait: Duration::ZERO,
            waiting_max: 512,
            answer_within: Duration::from_secs(60),
            tls: None,
            meter: None,
        }
    }
}

/// A service in another process, over HTTP/2 connections. Connects when it is first used, on the
/// runtime that uses it. Clones share the connections, which end with the last of them.
#[derive(Clone)]
pub struct Remote {
    shared: Arc<Shared>,
}

struct Shared {
    endpoint: Endpoint,
    options: RemoteOptions,
    pool: Arc<Pool>,
    budget: RetryBudget,
    kept: Kept,
    /// Ended when dropped.
    links: Mutex<JoinSet<()>>,
    has_links: Once,
}

impl Remote {
    /// For an endpoint.
    #[must_use]
    pub fn new(endpoint: Endpoint, options: RemoteOptions) -> Self {
        let patience = Patience { wait: options.wait, waiting_max: options.waiting_max };
        let pool = Pool::new(endpoint.authority.to_string(), patience);
        let counted = options.meter.as_ref().zip(options.service);
        let counts = counted.map(|(meter, service)| Counts::new(meter, service));
        let shared = Shared {
            endpoint,
            options,
            pool: Arc::new(pool),
            budget: RetryBudget::new(counts),
            kept: Kept::default(),
            links: Mutex::default(),
            has_links: Once::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What is the matter with the service; nothing, while it serves or calls wait for it. Connects
    /// if nothing did so far, and waits a few seconds at most for what comes of it.
    pub async fn problem(&self) -> Option<&'static str> {
        self.shared.begin();
        self.shared.pool.problem().await
    }

    pub(super) fn send(&self, mut request: Request) -> Answer {
        let shared = &self.shared;
        shared.begin();
        shared.budget.deposit();
        forwarded::export(&mut request);
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
        // What is known of the call in this process ends here.
        request.extensions_mut().clear();
        let (parts, body) = request.into_parts();
        let call = Call {
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

impl Shared {
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

    fn link(&self, index: usize) -> Link {
        Link {
            pool: Arc::clone(&self.pool),
            endpoint: self.endpoint.clone(),
            tls: self.options.tls.clone(),
            service: self.options.service,
            index,
        }
    }
}

/// Makes one more connection at a time while every one is full.
async fn grow(pool: Arc<Pool>, mut idle: Vec<Link>) {
    let mut busy = JoinSet::new();
    loop {
        tokio::select! {
            () = pool.grow.notified() => {
                let Some(link) = idle.pop() else { continue };
                debug!(connection = link.index, "every connection is full");
                match link.make(link.index).await {
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

/// One call until its answer begins.
struct Call {
    shared: Arc<Shared>,
    parts: Parts,
    path: PathAndQuery,
    recording: Arc<Recording>,
    forward: Forward,
    began: Instant,
    attempts: Attempts,
    /// How often the connection was gone before anything was sent.
    unsent: usize,
}

impl Call {
    async fn run(mut self) -> Response {
        loop {
            let pool = &self.shared.pool;
            let lease = match pool.lease() {
                Some(lease) => lease,
                None => match pool.lease_soon().await {
                    Some(lease) => lease,
                    None if self.attempts.any() => return self.refused(failure::interrupted()),
                    None => return self.refused(failure::unreachable()),
                },
            };
            let sent = lease.sender().try_send_request(self.request()).await;
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
                    let lost = failure::judge(&failed.into_error(), untouched);
                    match self.after_loss(lost) {
                        Ok(pause) => pause,
                        Err(fault) => return self.refused(fault),
                    }
                }
            };
            drop(lease);
            self.shared.budget.note(Outcome::Sent);
            debug!(path = self.path.path(), ?pause, "sent again");
            tokio::time::sleep(pause).await;
        }
    }

    fn answered(mut self, mut answer: http::Response<Incoming>, lease: Lease) -> Response {
        self.recording.forget();
        self.forward.answered(answer.headers_mut());
        let Self { path, forward, .. } = self;
        answer.map(|body| Body::new(Forwarded { body: Some(body), path, forward, _lease: lease }))
    }

    fn refused(mut self, fault: Fault) -> Response {
        let mut answer = refusal(fault);
        self.forward.answered(answer.headers_mut());
        answer
    }

    /// The request for the next attempt.
    fn request(&self) -> http::Request<Outgoing> {
        let mut parts = self.parts.clone();
        if let Some(left) = self.time_left().filter(|_| self.began.elapsed() >= SPENT_MIN) {
            deadline::insert(&mut parts.headers, left);
        }
        http::Request::from_parts(parts, Outgoing::Call(self.recording.play()))
    }

    /// What the call has left; none where nothing ends it.
    ///
    /// An answer that is a stream may outlast our own limit, which is for its beginning.
    fn time_left(&self) -> Option<Duration> {
        let asked = deadline::client_limit(&self.parts.headers).ok().flatten();
        let is_unary = kind_of(self.path.path()).is_unary;
        let own = is_unary.then_some(self.shared.options.answer_within);
        let limit = asked.into_iter().chain(own).min()?;
        Some(limit.saturating_sub(self.began.elapsed()))
    }

    fn after_answer(&mut self, headers: &HeaderMap) -> Option<Duration> {
        let pause = self.attempts.after_answer(headers, &self.shared.budget)?;
        self.is_worth_it(pause).then_some(pause)
    }

    fn after_loss(&mut self, lost: Lost) -> Result<Duration, Fault> {
        let is_read = kind_of(self.path.path()).is_read;
        let pause = self.attempts.after_loss(lost, is_read, &self.shared.budget);
        pause.filter(|pause| self.is_worth_it(*pause)).ok_or_else(|| match lost {
            Lost::Unseen => failure::interrupted(),
            Lost::Unknown => failure::broken(is_read),
        })
    }

    /// Whether another attempt would send the same, and in time.
    fn is_worth_it(&self, pause: Duration) -> bool {
        let can = self.recording.can_play() && self.time_left().is_none_or(|left| pause < left);
        if !can {
            self.shared.budget.note(Outcome::TooLate);
        }
        can
    }
}
