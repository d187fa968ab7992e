//! Ends calls that exceed their deadline, and with them their work.
//!
//! tonic applies `grpc-timeout` in its own transport only, so a call inside the process would never
//! end; here it applies everywhere. Two limits: the client's own, which covers the whole response,
//! and ours, which covers the time until the response begins, so that long streams may run while no
//! unary call hangs. If the request is a stream, ours counts from the last part of it that arrived:
//! an upload may take as long as it makes progress. The header remains on the request, so the next
//! process has the deadline too.

use std::{
    convert::Infallible,
    future::Future as _,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderMap, HeaderName};
use http_body::{Body as _, Frame};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tonic::body::Body;
use tower::Service;

use super::{
    Request, Response, ResponseFuture,
    body_bytes::Unframed,
    body_wrapper::{BodyPart, BodyWrapper, Next, wrap_body},
    error_response,
    methods::Methods,
    middleware::{Middleware, MiddlewareLayer},
    trailers,
};
use trestle_model::fault::{Fault, Reason, quoted};

/// The header of a client's time limit: up to eight digits and a unit.
const HEADER: HeaderName = HeaderName::from_static("grpc-timeout");
/// Most digits that the protocol allows.
const DIGITS_MAX: usize = 8;

/// The largest part of a client's limit in which no response is expected to arrive in time.
const TRANSIT_MAX: Duration = Duration::from_millis(250);

/// When a call ends by the limit of its client, in the extensions of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallDeadline {
    at: Instant,
    limit: Duration,
}

impl CallDeadline {
    /// The deadline of a call that began at `started`.
    #[must_use]
    pub fn new(started: Instant, limit: Duration) -> Self {
        Self { at: started + limit, limit }
    }

    /// The deadline of a request, if its client set a limit.
    #[must_use]
    pub fn of(extensions: &http::Extensions) -> Option<Self> {
        extensions.get().copied()
    }

    /// When to respond at the latest with what must not be lost. The client began to count before
    /// the request arrived, and stops before it has read a response that we send at the deadline;
    /// there is no acknowledgement. So the last part of its limit is left for both ways: a
    /// quarter, at most 250 ms.
    #[must_use]
    pub fn last_response(&self) -> Instant {
        self.at - (self.limit / 4).min(TRANSIT_MAX)
    }

    /// Waits for the end of the call; the error of a call that has reached it.
    pub async fn expired(&self) -> Fault {
        sleep_until(self.at).await;
        too_late(self.limit)
    }
}

/// Applies deadlines to calls.
pub type DeadlineLayer = MiddlewareLayer<Deadline>;

/// See the module.
#[derive(Debug, Clone)]
pub struct Deadline {
    answer_within_max: Duration,
    methods: Methods,
}

impl DeadlineLayer {
    /// Limits a call to `answer_within_max` until its response begins, or less if the client sets a
    /// shorter limit; `methods` reports which requests are streams.
    #[must_use]
    pub fn new(answer_within_max: Duration, methods: Methods) -> Self {
        Self(Deadline { answer_within_max, methods })
    }
}

impl Middleware for Deadline {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let client_limit = match client_limit(request.headers()) {
            Ok(client_limit) => client_limit,
            Err(fault) => return Box::pin(async move { Ok(error_response(fault)) }),
        };
        let cap = self.answer_within_max;
        let started = Instant::now();
        if let Some(client_limit) = client_limit {
            request.extensions_mut().insert(CallDeadline::new(started, client_limit));
        }
        let is_stream = self.methods.find(request.uri().path()).streams_in;
        let progress = (is_stream || Unframed::is_stream(&request)).then(|| Progress::new(started));
        if let Some(progress) = &progress {
            let progress = progress.clone();
            request = request.map(|body| wrap_body(body, progress));
        }
        let answer = inner.call(request);
        Box::pin(async move {
            let answer = match progress {
                None => {
                    let within = client_limit.map_or(cap, |client_limit| client_limit.min(cap));
                    timeout_at(started + within, answer).await.map_err(|_| within)
                }
                Some(progress) => {
                    let end =
                        client_limit.map(|client_limit| (started + client_limit, client_limit));
                    progress.timeout(answer, cap, end).await
                }
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err(within) => return Ok(error_response(too_late(within))),
            };
            let answer = answer?;
            // Most unary responses are complete by now, but their trailers are not: the timer
            // continues.
            let Some(client_limit) = client_limit else {
                return Ok(answer);
            };
            let limited = |body| {
                let clock = Box::pin(sleep_until(started + client_limit));
                wrap_body(body, Limited { clock, limit: client_limit })
            };
            Ok(answer.map(limited))
        })
    }
}

/// When the last part of a request arrived.
#[derive(Clone)]
struct Progress {
    started: Instant,
    /// Milliseconds since then.
    at: Arc<AtomicU64>,
}

impl Progress {
    fn new(started: Instant) -> Self {
        Self { started, at: Arc::default() }
    }

    /// Waits for a response until no progress was made for `within`, or until `end`. Returns which
    /// of the limits expired.
    async fn timeout(
        &self,
        mut answer: ResponseFuture,
        within: Duration,
        end: Option<(Instant, Duration)>,
    ) -> Result<Result<Response, Infallible>, Duration> {
        loop {
            let last = self.at.load(Ordering::Relaxed);
            let stalled = (self.started + Duration::from_millis(last) + within, within);
            let end = end.filter(|(end, _)| *end <= stalled.0);
            let (at, limit) = end.unwrap_or(stalled);
            match timeout_at(at, &mut answer).await {
                Ok(answer) => return Ok(answer),
                Err(_) if end.is_none() && self.at.load(Ordering::Relaxed) > last => {}
                Err(_) => return Err(limit),
            }
        }
    }
}

impl BodyWrapper for Progress {
    fn map_part(&mut self, part: BodyPart) -> Next {
        let elapsed = self.started.elapsed().as_millis();
        self.at.store(u64::try_from(elapsed).unwrap_or(u64::MAX), Ordering::Relaxed);
        Next::Part(part)
    }
}

fn too_late(limit: Duration) -> Fault {
    let limit_ms = limit.as_millis();
    let message = format!("the call took too long and was stopped: limit_ms=`{limit_ms}`");
    Fault::new(Reason::OperationTimedOut, message)
}

/// The client's time limit, if it set one.
pub(crate) fn client_limit(headers: &HeaderMap) -> Result<Option<Duration>, Fault> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        let rule = "must not be repeated";
        return Err(Fault::violation(Reason::InvalidInput, HEADER.as_str(), rule));
    }
    let limit = value.to_str().ok().and_then(parse);
    limit.map(Some).ok_or_else(|| {
        let value = String::from_utf8_lossy(value.as_bytes());
        let rule = "must be up to 8 digits and one of H, M, S, m, u, n";
        let rule = format!("{rule}: value=`{}`", quoted(&value));
        Fault::violation(Reason::InvalidInput, HEADER.as_str(), rule)
    })
}

/// Writes the remaining time of a limit for the next process. Never less than a millisecond.
pub(crate) fn insert(headers: &mut HeaderMap, left: Duration) {
    let millis = left.as_millis().max(1);
    let value = match u32::try_from(millis).ok().filter(|millis| *millis < 100_000_000) {
        Some(millis) => format!("{millis}m"),
        None => format!("{}S", left.as_secs().min(99_999_999)),
    };
    headers.insert(HEADER, value.parse().expect("digits and a letter are fit for a header"));
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let well_formed = digits.len() <= DIGITS_MAX && digits.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| well_formed)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// A body that fails when its deadline has passed.
struct Limited {
    clock: Pin<Box<Sleep>>,
    limit: Duration,
}

impl BodyWrapper for Limited {
    fn poll(&mut self, body: Pin<&mut Body>, cx: &mut Context<'_>) -> Poll<Next> {
        // Polled first: a stream that is always ready must end too. The timer is armed only to
        // wait.
        if self.clock.deadline() > Instant::now() {
            if let Poll::Ready(part) = body.poll_frame(cx) {
                return Poll::Ready(self.map_part(part));
            }
            std::task::ready!(self.clock.as_mut().poll(cx));
        }
        Poll::Ready(Next::Last(Frame::trailers(trailers(too_late(self.limit)))))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_remaining_time_survives_a_round_trip() {
        for (left, read) in [
            (Duration::ZERO, Duration::from_millis(1)),
            (Duration::from_micros(7_999), Duration::from_millis(7)),
            (Duration::from_secs(99_999), Duration::from_secs(99_999)),
            (Duration::from_millis(100_000_500), Duration::from_secs(100_000)),
            (Duration::MAX, Duration::from_secs(99_999_999)),
        ] {
            let mut headers = HeaderMap::new();
            insert(&mut headers, left);
            assert_eq!(client_limit(&headers).expect("a limit"), Some(read), "{left:?}");
        }
    }

    #[test]
    fn rejects_a_repeated_limit_even_if_both_match() {
        for second in ["1S", "2S", "x"] {
            let both = [(HEADER, "1S"), (HEADER, second)];
            let both = both.map(|(name, value)| (name, HeaderValue::from_static(value)));
            let fault = client_limit(&HeaderMap::from_iter(both)).expect_err("rejected");
            assert_eq!(fault.reason, Reason::InvalidInput, "{second}");
        }
    }

    #[test]
    fn accepts_every_unit_and_rejects_everything_else() {
        let read = [
            ("1H", 3_600_000),
            ("2M", 120_000),
            ("3S", 3000),
            ("4m", 4),
            ("5000u", 5),
            ("6000000n", 6),
            ("99999999S", 99_999_999_000),
            ("0S", 0),
        ];
        for (text, millis) in read {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "S", "1", "1s", "-1S", "+1S", "1.5S", "100000000S", "1Sé", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
