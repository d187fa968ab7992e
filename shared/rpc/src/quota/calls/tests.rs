use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};

use super::{
    super::{Quota, Quotas},
    *,
};

fn account(name: &str) -> AccountName {
    AccountName::parse(name).expect("a name")
}

/// Limits of every account but `free`, which has none.
fn quotas(operations: Option<u64>, bytes: Option<u64>) -> (LiveQuotas, Arc<CallQuotas>) {
    let rate = |number: Option<u64>| number.and_then(|number| Rate::new(number, number));
    let calls = CallRates { operations: rate(operations), bytes: rate(bytes) };
    let accounts = [(account("free"), Quota::default())].into_iter().collect();
    let live = LiveQuotas::new(Quotas { default: Quota { calls, ..Quota::default() }, accounts });
    let meter = NoopMeterProvider::new().meter("tests");
    (live.clone(), CallQuotas::new(live, &meter))
}

#[tokio::test(start_paused = true)]
async fn an_account_has_its_operations_and_no_other_one_waits_for_it() {
    let (_, quotas) = quotas(Some(10), None);
    for _ in 0..10 {
        assert!(quotas.admit(&account("busy"), true).expect("admitted").is_none());
    }

    let fault = quotas.admit(&account("busy"), true).expect_err("over the quota");

    assert_eq!(fault.retry_after, Some(Duration::from_millis(100)));
    let quota = fault.quota.expect("a quota");
    assert_eq!(quota.subject, "account `busy`");
    let text = "10 operations a second, 10 at once (quotas.account_operations_per_second)";
    assert_eq!(quota.description, text);
    assert!(quotas.admit(&account("other"), true).is_ok());
    assert!(
        quotas.admit(&account("busy"), false).is_ok(),
        "callers without credentials use their own"
    );
    for _ in 0..1000 {
        assert!(quotas.admit(&account("free"), true).is_ok());
    }
    tokio::time::advance(Duration::from_millis(100)).await;
    assert!(quotas.admit(&account("busy"), true).is_ok());
    assert!(quotas.admit(&account("busy"), true).is_err());
}

#[tokio::test(start_paused = true)]
async fn bytes_are_debited_as_they_pass_and_the_next_call_waits() {
    let (_, quotas) = quotas(None, Some(1000));
    let meter = quotas.admit(&account("busy"), true).expect("admitted").expect("a limit");
    assert_eq!(meter.wait(), Duration::ZERO);

    meter.used(3000);

    // 2,000 too many, and one for the next byte.
    assert_eq!(meter.wait(), Duration::from_millis(2001));
    let fault = quotas.admit(&account("busy"), true).expect_err("overdrawn");
    assert_eq!(fault.retry_after, Some(Duration::from_millis(2001)));
    let description = fault.quota.expect("a quota").description;
    assert!(description.contains("(quotas.account_bytes_per_second)"), "{description}");
    assert!(quotas.admit(&account("other"), true).is_ok());
    tokio::time::advance(Duration::from_millis(2001)).await;
    assert!(quotas.admit(&account("busy"), true).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stream_leaves_bytes_to_calls_that_retry_after_their_delay() {
    let (_, quotas) = quotas(None, Some(1000));
    let stream = quotas.admit(&account("busy"), true).expect("admitted").expect("a limit");
    for _ in 0..3 {
        tokio::time::advance(stream.stream_wait()).await;
        stream.used(5000);

        let fault = quotas.admit(&account("busy"), true).expect_err("overdrawn");

        let delay = fault.retry_after.expect("a delay");
        assert_eq!(stream.stream_wait() - delay, Duration::from_millis(249), "after {delay:?}");
        tokio::time::advance(delay).await;
        assert!(quotas.admit(&account("busy"), true).is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_bytes_reject_uses_no_operation() {
    let (_, quotas) = quotas(Some(2), Some(1000));
    let meter = quotas.admit(&account("busy"), true).expect("admitted").expect("a limit");
    meter.used(1500);
    for _ in 0..10 {
        assert!(quotas.admit(&account("busy"), true).is_err());
    }
    meter.quotas.buckets.refund(meter.key, meter.rate, 1500);

    assert!(quotas.admit(&account("busy"), true).is_ok(), "the second operation");
    assert!(quotas.admit(&account("busy"), true).is_err());
}

#[tokio::test]
async fn replaced_limits_are_those_of_the_next_call() {
    let (live, quotas) = quotas(Some(1), None);
    assert!(quotas.admit(&account("busy"), true).is_ok());
    assert!(quotas.admit(&account("busy"), true).is_err());

    live.replace(Quotas::default());

    assert!(quotas.admit(&account("busy"), true).expect("admitted").is_none());
}
