//! Whether a call is sent again, and when. The bounds: three times in all, a tenth of the calls of
//! the last seconds, and the time that the call has left.

use std::time::Duration;

use http::HeaderMap;
use opentelemetry::{
    KeyValue,
    metrics::{BoundCounter, Meter},
};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tower::{
    retry::{
        backoff::{Backoff as _, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff as _},
        budget::{Budget as _, TpsBudget},
    },
    util::rng::HasherRng,
};

use super::failure::Lost;
use crate::{layer::code_of, semconv};

/// Most times that a call is sent, the first included.
const ATTEMPTS_MAX: usize = 3;
/// The share of calls that may be sent again.
const BUDGET_RATIO: f32 = 0.1;
/// Calls a second that may be sent again in any case, so that little load does not mean no retry.
const BUDGET_MIN: u32 = 10;
/// How long a call counts for the budget.
const BUDGET_AGE: Duration = Duration::from_secs(10);
/// The first pause; each later one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How much a pause varies, so that calls that failed together do not come back together.
const JITTER: f64 = 0.5;
/// Advice of the role beyond this is for the client to follow: a call that waits holds its place.
const ADVICE_MAX: Duration = Duration::from_secs(1);
/// How a role says when to come back; anything but a number means not to.
const PUSHBACK_HEADER: &str = "grpc-retry-pushback-ms";

/// What calls to a role may be sent again.
pub(super) struct RetryBudget {
    calls: TpsBudget,
    counts: Option<Counts>,
}

/// What becomes of a call that could be sent again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    Sent,
    OverBudget,
    TooOften,
    /// Its time would be over, or what it brought is not there any more.
    TooLate,
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Sent, Self::OverBudget, Self::TooOften, Self::TooLate];

    fn label(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::OverBudget => "over_budget",
            Self::TooOften => "too_often",
            Self::TooLate => "too_late",
        }
    }
}

/// The metric of [`Outcome`], for one service.
pub(super) struct Counts([BoundCounter<u64>; Outcome::ALL.len()]);

impl Counts {
    /// Of calls to `service`.
    pub(super) fn new(meter: &Meter, service: &'static str) -> Self {
        let counter = semconv::retries(meter);
        Self(Outcome::ALL.map(|outcome| {
            counter.bind(&[
                KeyValue::new(semconv::UPSTREAM_SERVICE, service),
                KeyValue::new(semconv::RETRY_OUTCOME, outcome.label()),
            ])
        }))
    }
}

impl RetryBudget {
    /// A budget that tells `counts` what becomes of calls.
    pub(super) fn new(counts: Option<Counts>) -> Self {
        Self { calls: TpsBudget::new(BUDGET_AGE, BUDGET_MIN, BUDGET_RATIO), counts }
    }

    /// Counts a call.
    pub(super) fn deposit(&self) {
        self.calls.deposit();
    }

    /// Notes what becomes of a call that could be sent again.
    pub(super) fn note(&self, outcome: Outcome) {
        let counter = self.counts.as_ref().and_then(|Counts(all)| all.get(outcome as usize));
        if let Some(counter) = counter {
            counter.add(1);
        }
    }
}

/// Pauses that grow.
pub(super) fn pauses(min: Duration, max: Duration) -> ExponentialBackoff {
    let maker = ExponentialBackoffMaker::new(min, max, JITTER, HasherRng::default());
    maker.expect("the bounds are constants in order").make_backoff()
}

/// The attempts of one call.
#[derive(Default)]
pub(super) struct Attempts {
    failed: usize,
    /// Made with the first failure.
    pauses: Option<ExponentialBackoff>,
}

impl Attempts {
    /// Whether the call was sent before.
    pub(super) fn any(&self) -> bool {
        self.failed > 0
    }

    /// The pause before the next attempt after this answer; none where the client gets it.
    pub(super) fn after_answer(
        &mut self,
        headers: &HeaderMap,
        budget: &RetryBudget,
    ) -> Option<Duration> {
        let advice = advice(headers)?;
        let pause = self.next(budget)?;
        Some(pause.max(advice))
    }

    /// The pause before the next attempt after a failure of the way; none where the call is lost.
    pub(super) fn after_loss(
        &mut self,
        lost: Lost,
        is_read: bool,
        budget: &RetryBudget,
    ) -> Option<Duration> {
        match lost {
            // At once: the role had no work with it, and another connection may be there.
            Lost::Unseen if self.failed == 0 => self.next(budget).map(|_| Duration::ZERO),
            Lost::Unseen => self.next(budget),
            Lost::Unknown if is_read => self.next(budget),
            Lost::Unknown => None,
        }
    }

    fn next(&mut self, budget: &RetryBudget) -> Option<Duration> {
        self.failed += 1;
        let held_back = match self.failed < ATTEMPTS_MAX {
            false => Some(Outcome::TooOften),
            true => (!budget.calls.withdraw()).then_some(Outcome::OverBudget),
        };
        if let Some(outcome) = held_back {
            budget.note(outcome);
            return None;
        }
        let pauses = self.pauses.get_or_insert_with(|| pauses(PAUSE_MIN, PAUSE_MAX));
        let pause = pauses.next_backoff();
        Some(pause.deadline().saturating_duration_since(tokio::time::Instant::now()))
    }
}

/// How long to wait at least before an answer is asked for again; none where it stands.
///
/// `UNAVAILABLE` without a beginning of the answer: by contract nothing was written.
fn advice(headers: &HeaderMap) -> Option<Duration> {
    if code_of(headers)? != Code::Unavailable {
        return None;
    }
    if let Some(pushback) = headers.get(PUSHBACK_HEADER) {
        let pause = pushback.to_str().ok()?.parse().ok().map(Duration::from_millis)?;
        return (pause <= ADVICE_MAX).then_some(pause);
    }
    let status = Status::from_header_map(headers)?;
    let pause = status.get_details_retry_info().and_then(|info| info.retry_delay);
    let pause = pause.unwrap_or_default();
    (pause <= ADVICE_MAX).then_some(pause)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::{
        fault::{Fault, Reason},
        layer::{Response, refusal},
    };

    fn refused(reason: Reason, retry_after: Duration) -> Response {
        refusal(Fault::new(reason, "no").retry_after(retry_after))
    }

    fn unavailable() -> Response {
        refused(Reason::ServerUnavailable, Duration::ZERO)
    }

    #[tokio::test]
    async fn only_unavailable_is_asked_for_again_and_twice_at_most() {
        let budget = RetryBudget::new(None);
        for reason in [Reason::ServerBusy, Reason::OutcomeUnknown, Reason::TableNotFound] {
            let answer = refused(reason, Duration::ZERO);
            assert_eq!(
                Attempts::default().after_answer(answer.headers(), &budget),
                None,
                "{reason:?}"
            );
        }
        let mut attempts = Attempts::default();
        let pauses: Vec<bool> = (0..4)
            .map(|_| attempts.after_answer(unavailable().headers(), &budget).is_some())
            .collect();
        assert_eq!(pauses, [true, true, false, false]);
    }

    #[tokio::test]
    async fn the_advice_of_the_role_is_followed() {
        let budget = RetryBudget::new(None);
        let after = |answer: &Response| Attempts::default().after_answer(answer.headers(), &budget);
        let pushed = |value| {
            let mut answer = unavailable();
            answer.headers_mut().insert(PUSHBACK_HEADER, HeaderValue::from_static(value));
            answer
        };
        let soon = Duration::from_millis(700);

        let advised = after(&refused(Reason::ServerUnavailable, soon)).expect("a retry");
        let pushed_back = after(&pushed("700")).expect("a retry");

        assert!(advised >= soon && pushed_back >= soon, "{advised:?} {pushed_back:?}");
        assert_eq!(after(&refused(Reason::ServerUnavailable, Duration::from_secs(9))), None);
        assert_eq!(after(&pushed("-1")), None);
        assert_eq!(after(&pushed("9000")), None);
    }

    #[tokio::test]
    async fn a_write_that_may_have_happened_is_never_sent_again() {
        let budget = RetryBudget::new(None);
        let after = |lost, is_read| Attempts::default().after_loss(lost, is_read, &budget);

        assert_eq!(after(Lost::Unknown, false), None);
        assert!(after(Lost::Unknown, true).is_some());
        assert_eq!(after(Lost::Unseen, false), Some(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenth_of_the_calls_may_be_sent_again_and_a_few_in_any_case() {
        type Failure = fn(&RetryBudget) -> Option<Duration>;
        let failures: [(&str, Failure); 3] = [
            ("answered", |budget| {
                Attempts::default().after_answer(unavailable().headers(), budget)
            }),
            ("unseen", |budget| Attempts::default().after_loss(Lost::Unseen, false, budget)),
            ("a lost read", |budget| Attempts::default().after_loss(Lost::Unknown, true, budget)),
        ];
        for (what, failure) in failures {
            let budget = RetryBudget::new(None);
            let spend = || (0..10_000).filter(|_| failure(&budget).is_some()).count();
            let reserve = usize::try_from(u64::from(BUDGET_MIN) * BUDGET_AGE.as_secs()).unwrap();

            assert_eq!(spend(), reserve, "{what}");
            for _ in 0..5_000 {
                budget.deposit();
            }
            assert_eq!(spend(), 500, "{what}");
        }
    }

    #[tokio::test]
    async fn a_call_is_sent_three_times_at_most_whatever_it_fails_of() {
        let budget = RetryBudget::new(None);
        let mut attempts = Attempts::default();
        let sent_again: Vec<bool> =
            (0..4).map(|_| attempts.after_loss(Lost::Unseen, false, &budget).is_some()).collect();

        assert_eq!(sent_again, [true, true, false, false]);
    }

    #[tokio::test]
    async fn pauses_grow_and_differ() {
        let first = |_: usize| {
            let pause =
                Attempts::default().after_answer(unavailable().headers(), &RetryBudget::new(None));
            pause.expect("a retry")
        };
        let firsts: Vec<Duration> = (0..32).map(first).collect();

        assert!(firsts.iter().all(|pause| *pause <= PAUSE_MIN.mul_f64(1.0 + JITTER) * 2));
        assert!(firsts.iter().any(|pause| pause.abs_diff(firsts[0]) > PAUSE_MIN / 10));
    }
}
