//! Whether a call is retried, and when. The bounds: three attempts, a tenth of the calls of the last
//! seconds, and the deadline of the call.

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

use super::failed_call::FailedCall;
use crate::layer::code_of;
use crate::semconv;
use crate::status::RETRY_PUSHBACK;

/// Most attempts of a call, the first included.
const ATTEMPTS_MAX: usize = 3;
/// The share of calls that may be retried.
const BUDGET_RATIO: f32 = 0.1;
/// Calls a second that may be retried in any case, also under little load.
const BUDGET_MIN: u32 = 10;
/// How long a call counts for the budget.
const BUDGET_AGE: Duration = Duration::from_secs(10);
/// The first pause; each later one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The jitter of a pause, so that calls that failed together are not retried together.
const JITTER: f64 = 0.5;
/// A longer RetryInfo is left to the client: a call that waits counts for admission.
const ADVICE_MAX: Duration = Duration::from_secs(1);

/// Which calls to a role may be retried.
pub(super) struct RetryBudget {
    calls: TpsBudget,
    counts: Option<RetryCounts>,
}

/// The outcome of a call that may be retried.
#[derive(Debug, Clone, Copy)]
pub(super) enum RetryOutcome {
    Sent,
    OverBudget,
    TooOften,
    /// Its deadline would pass, or its body is not retained.
    TooLate,
}

impl RetryOutcome {
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

/// The metric of [`RetryOutcome`], for one service.
pub(super) struct RetryCounts([BoundCounter<u64>; RetryOutcome::ALL.len()]);

impl RetryCounts {
    /// Of calls to `service`.
    pub(super) fn new(meter: &Meter, service: &'static str) -> Self {
        let counter = semconv::retries(meter);
        Self(RetryOutcome::ALL.map(|outcome| {
            let counter = counter.bind(&[
                KeyValue::new(semconv::UPSTREAM_SERVICE, service),
                KeyValue::new(semconv::RETRY_OUTCOME, outcome.label()),
            ]);
            // From zero: the first increase is visible too.
            counter.add(0);
            counter
        }))
    }
}

impl RetryBudget {
    /// A budget that counts outcomes on `counts`.
    pub(super) fn new(counts: Option<RetryCounts>) -> Self {
        Self { calls: TpsBudget::new(BUDGET_AGE, BUDGET_MIN, BUDGET_RATIO), counts }
    }

    /// Counts a call.
    pub(super) fn deposit(&self) {
        self.calls.deposit();
    }

    /// Counts the outcome of a call that may be retried.
    pub(super) fn count(&self, outcome: RetryOutcome) {
        let counter = self.counts.as_ref().and_then(|RetryCounts(all)| all.get(outcome as usize));
        if let Some(counter) = counter {
            counter.add(1);
        }
    }
}

/// Exponential backoff.
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

    /// The pause before the next attempt after this response; none where the client gets it.
    pub(super) fn after_answer(
        &mut self,
        headers: &HeaderMap,
        budget: &RetryBudget,
    ) -> Option<Duration> {
        let advice = advice(headers)?;
        let pause = self.next(budget)?;
        Some(pause.max(advice))
    }

    /// The pause before the next attempt after a transport error; none where the call fails.
    pub(super) fn after_failure(
        &mut self,
        failed: FailedCall,
        is_read: bool,
        budget: &RetryBudget,
    ) -> Option<Duration> {
        match failed {
            // At once: the role did not process it, and another connection may be open.
            FailedCall::Unseen if self.failed == 0 => self.next(budget).map(|_| Duration::ZERO),
            FailedCall::Unseen => self.next(budget),
            FailedCall::Unknown if is_read => self.next(budget),
            FailedCall::Unknown => None,
        }
    }

    fn next(&mut self, budget: &RetryBudget) -> Option<Duration> {
        self.failed += 1;
        let held_back = match self.failed < ATTEMPTS_MAX {
            false => Some(RetryOutcome::TooOften),
            true => (!budget.calls.withdraw()).then_some(RetryOutcome::OverBudget),
        };
        if let Some(outcome) = held_back {
            budget.count(outcome);
            return None;
        }
        let pauses = self.pauses.get_or_insert_with(|| pauses(PAUSE_MIN, PAUSE_MAX));
        let pause = pauses.next_backoff();
        Some(pause.deadline().saturating_duration_since(tokio::time::Instant::now()))
    }
}

/// The shortest pause before a retry after this response; none where it is final.
///
/// `UNAVAILABLE` without messages: by contract nothing was written.
fn advice(headers: &HeaderMap) -> Option<Duration> {
    if code_of(headers)? != Code::Unavailable {
        return None;
    }
    // Anything but a number means never.
    if let Some(pushback) = headers.get(RETRY_PUSHBACK) {
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
    use crate::layer::{Response, error_response};
    use trestle_model::fault::{Fault, Reason};

    fn rejected(reason: Reason, retry_after: Duration) -> Response {
        error_response(Fault::new(reason, "no").retry_after(retry_after))
    }

    fn unavailable() -> Response {
        rejected(Reason::ServerUnavailable, Duration::ZERO)
    }

    #[tokio::test]
    async fn retries_unavailable_only_and_twice_at_most() {
        let budget = RetryBudget::new(None);
        for reason in [Reason::ServerBusy, Reason::OutcomeUnknown, Reason::TableNotFound] {
            let answer = rejected(reason, Duration::ZERO);
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
    async fn follows_retry_info_and_pushback() {
        let budget = RetryBudget::new(None);
        let after = |answer: &Response| Attempts::default().after_answer(answer.headers(), &budget);
        let pushed = |value| {
            let mut answer = unavailable();
            answer.headers_mut().insert(RETRY_PUSHBACK, HeaderValue::from_static(value));
            answer
        };
        let soon = Duration::from_millis(700);

        let advised = after(&rejected(Reason::ServerUnavailable, soon)).expect("a retry");
        let pushed_back = after(&pushed("700")).expect("a retry");

        assert!(advised >= soon && pushed_back >= soon, "{advised:?} {pushed_back:?}");
        assert_eq!(after(&rejected(Reason::ServerUnavailable, Duration::from_secs(9))), None);
        assert_eq!(after(&pushed("-1")), None);
        assert_eq!(after(&pushed("9000")), None);
    }

    #[tokio::test]
    async fn never_retries_a_write_that_may_have_been_executed() {
        let budget = RetryBudget::new(None);
        let after = |failed, is_read| Attempts::default().after_failure(failed, is_read, &budget);

        assert_eq!(after(FailedCall::Unknown, false), None);
        assert!(after(FailedCall::Unknown, true).is_some());
        assert_eq!(after(FailedCall::Unseen, false), Some(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn retries_a_tenth_of_the_calls_and_a_few_in_any_case() {
        type RetryDelay = fn(&RetryBudget) -> Option<Duration>;
        let failures: [(&str, RetryDelay); 3] = [
            ("answered", |budget| {
                Attempts::default().after_answer(unavailable().headers(), budget)
            }),
            ("unseen", |budget| {
                Attempts::default().after_failure(FailedCall::Unseen, false, budget)
            }),
            ("a failed read", |budget| {
                Attempts::default().after_failure(FailedCall::Unknown, true, budget)
            }),
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
    async fn sends_a_call_three_times_at_most() {
        let budget = RetryBudget::new(None);
        let mut attempts = Attempts::default();
        let sent_again: Vec<bool> = (0..4)
            .map(|_| attempts.after_failure(FailedCall::Unseen, false, &budget).is_some())
            .collect();

        assert_eq!(sent_again, [true, true, false, false]);
    }

    #[tokio::test]
    async fn pauses_grow_and_have_jitter() {
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
