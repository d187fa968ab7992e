use std::{convert::Infallible, sync::atomic::AtomicUsize};

use super::*;
use crate::quota::{Quota, Quotas};

fn account(name: &str) -> AccountName {
    AccountName::parse(name).expect("a name")
}

/// Those where every account may have so much, and the account `exempt` any amount.
fn quotas(limit: StorageLimit, max: u64) -> StorageQuotas {
    let max = StorageMax::new(|other| if other == limit { max } else { 0 });
    let default = Quota { storage: max, ..Quota::default() };
    let accounts = HashMap::from([(account("exempt"), Quota::default())]);
    let meter = NoopMeterProvider::new().meter("test");
    StorageQuotas::new(LiveQuotas::new(Quotas { default, accounts }), &meter)
}

/// Creates a resource unless the account has its quota of them.
async fn create(quotas: &StorageQuotas, name: &str, stored: &AtomicUsize) -> Result<(), Fault> {
    let count = |max: usize| async move {
        let counted = stored.load(std::sync::atomic::Ordering::SeqCst).min(max);
        tokio::task::yield_now().await;
        Ok::<_, Infallible>(counted)
    };
    let room = quotas.room(&account(name), StorageLimit::Tables, count).await;
    let Ok(room) = room;
    if let Some(full) = room.full() {
        return Err(full.rejected());
    }
    tokio::task::yield_now().await;
    stored.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    Ok(())
}

#[tokio::test]
async fn concurrent_creations_stop_exactly_at_the_quota() {
    let quotas = quotas(StorageLimit::Tables, 5);
    let stored = AtomicUsize::new(0);

    let outcomes = futures::future::join_all((0..20).map(|_| create(&quotas, "acme", &stored)));

    let rejected: Vec<_> = outcomes.await.into_iter().filter_map(Result::err).collect();
    assert_eq!((rejected.len(), stored.into_inner()), (15, 5));
    let fault = rejected.first().expect("one was rejected");
    assert_eq!((fault.reason, fault.retry_after), (Reason::StorageQuotaExceeded, None));
    let quota = fault.quota.as_ref().expect("a quota");
    assert_eq!(quota.subject, "account `acme`");
    assert_eq!(quota.description, "at most 5 tables (quotas.account_tables_max): usage=`5`");
}

#[tokio::test]
async fn a_quota_of_another_kind_and_an_exempt_account_count_nothing() {
    let never = |_| async { Err::<usize, _>("counted") };
    let tables = quotas(StorageLimit::Tables, 1);

    let queues = tables.room(&account("acme"), StorageLimit::Queues, never).await;
    let exempt = tables.room(&account("exempt"), StorageLimit::Tables, never).await;

    assert!(queues.expect("not counted").full().is_none());
    assert!(exempt.expect("not counted").full().is_none());
    assert!(tables.room(&account("acme"), StorageLimit::Tables, never).await.is_err());
}

/// A measurement of one amount.
fn measured(limit: StorageLimit, amount: u64) -> HashMap<AccountName, MeasuredUsage> {
    let mut usage = MeasuredUsage::default();
    usage.add(limit, amount);
    HashMap::from([(account("acme"), usage)])
}

const BYTES: StorageLimit = StorageLimit::StoredBytes;

fn meter(quotas: &StorageQuotas, owner: StorageOwner) -> StorageMeter {
    quotas.meter(owner, &account("acme")).expect("a quota")
}

fn used(quotas: &StorageQuotas, limit: StorageLimit) -> u64 {
    let usage = quotas.usage(&account("acme"));
    usage.iter().find(|usage| usage.limit == limit).expect("a quota").used
}

#[tokio::test]
async fn what_was_written_since_the_measurement_is_over_a_quota_for_a_while_only() {
    let quotas = quotas(BYTES, 100);
    let tables = meter(&quotas, StorageOwner::Tables);
    tables.add(BYTES, 99);
    assert_eq!(tables.check(BYTES), Ok(()));
    tables.add(BYTES, 50);

    let written = tables.check(BYTES).expect_err("149 of 100 bytes");
    let pass = async { Ok::<_, Infallible>(measured(BYTES, 60)) };
    let Ok(()) = quotas.measure(StorageOwner::Tables, pass).await;

    assert_eq!((written.reason, written.retry_after), (Reason::ServerBusy, Some(MEASURE_EVERY)));
    let quota = written.quota.expect("a quota");
    let start = "at most 100 stored bytes (quotas.account_stored_bytes_max): usage=`149`";
    assert!(quota.description.starts_with(start), "{quota:?}");
    assert_eq!(tables.check(BYTES), Ok(()), "most of it replaced what was stored before");
    let pass = async { Ok::<_, Infallible>(measured(BYTES, 100)) };
    let Ok(()) = quotas.measure(StorageOwner::Tables, pass).await;
    let full = tables.check(BYTES).expect_err("100 of 100 bytes");
    assert_eq!((full.reason, full.retry_after), (Reason::StorageQuotaExceeded, None));
}

#[tokio::test]
async fn what_is_written_during_a_measurement_counts_until_the_next() {
    let quotas = quotas(BYTES, 1000);
    let meter = meter(&quotas, StorageOwner::Blobs);
    meter.add(BYTES, 10);
    let during = meter.clone();
    let pass = async move {
        during.add(BYTES, 5);
        Ok::<_, Infallible>(measured(BYTES, 12))
    };
    let Ok(()) = quotas.measure(StorageOwner::Blobs, pass).await;
    assert_eq!(used(&quotas, BYTES), 17);

    let failed = quotas.measure(StorageOwner::Blobs, async { Err("unreadable") }).await;
    assert_eq!(failed, Err("unreadable"));
    assert_eq!(used(&quotas, BYTES), 17, "a failed measurement changes nothing");
    let pass = async { Ok::<_, Infallible>(measured(BYTES, 15)) };
    let Ok(()) = quotas.measure(StorageOwner::Blobs, pass).await;
    assert_eq!(used(&quotas, BYTES), 15);
    let Ok(()) =
        quotas.measure(StorageOwner::Blobs, async { Ok::<_, Infallible>(HashMap::new()) }).await;
    assert_eq!(used(&quotas, BYTES), 0, "everything was deleted");
}

#[tokio::test]
async fn bytes_are_the_sum_of_every_service_and_a_measurement_of_one_leaves_the_others() {
    let quotas = quotas(BYTES, 1000);
    for (owner, amount) in [
        (StorageOwner::Tables, 1),
        (StorageOwner::Queues, 20),
        (StorageOwner::Blobs, 300),
        (StorageOwner::Logs, 400),
    ] {
        let pass = async move { Ok::<_, Infallible>(measured(BYTES, amount)) };
        let Ok(()) = quotas.measure(owner, pass).await;
    }
    assert_eq!(used(&quotas, BYTES), 721);

    let Ok(()) =
        quotas.measure(StorageOwner::Blobs, async { Ok::<_, Infallible>(HashMap::new()) }).await;

    assert_eq!(used(&quotas, BYTES), 421);
    let every = quotas.every_usage();
    assert_eq!(every.len(), 1);
    let usage = QuotaUsage { limit: BYTES, used: 421, max: 1000 };
    assert_eq!(every, [(account("acme"), vec![usage])]);
}

#[tokio::test]
async fn blobs_count_beside_bytes_and_an_exempt_account_has_no_meter() {
    let quotas = quotas(StorageLimit::Blobs, 2);
    let blobs = meter(&quotas, StorageOwner::Blobs);
    blobs.add(StorageLimit::Blobs, 2);
    blobs.add(BYTES, 1 << 40);

    assert!(blobs.check(StorageLimit::Blobs).is_err());
    assert_eq!(blobs.check(BYTES), Ok(()), "bytes have no quota");
    assert!(quotas.meter(StorageOwner::Blobs, &account("exempt")).is_none());
    assert!(quotas.measures(StorageOwner::Blobs) && !quotas.measures(StorageOwner::Logs));
    assert_eq!(quotas.check_bytes(StorageOwner::Blobs, &account("acme")), Ok(()));
}

#[test]
fn without_quotas_nothing_is_metered_measured_or_reported() {
    let quotas = StorageQuotas::default();

    assert!(!quotas.has_meters());
    assert!(quotas.meter(StorageOwner::Tables, &account("acme")).is_none());
    assert!(!quotas.measures(StorageOwner::Tables));
    assert_eq!(quotas.every_usage(), []);
    assert_eq!(quotas.usage(&account("acme")), []);
}

#[test]
fn replaced_quotas_are_those_of_the_next_call() {
    let live = LiveQuotas::default();
    let quotas = StorageQuotas::new(live.clone(), &NoopMeterProvider::new().meter("test"));
    let with = |max| {
        let storage = StorageMax::new(|limit| if limit == BYTES { max } else { 0 });
        Quotas { default: Quota { storage, ..Quota::default() }, ..Quotas::default() }
    };
    live.replace(with(10));
    let metered = meter(&quotas, StorageOwner::Queues);
    metered.add(BYTES, 10);
    assert!(metered.check(BYTES).is_err());

    live.replace(with(11));
    assert_eq!(metered.check(BYTES), Ok(()));
    live.replace(with(0));
    assert_eq!(metered.check(BYTES), Ok(()));
    assert!(quotas.meter(StorageOwner::Queues, &account("acme")).is_none());
}

#[test]
fn a_response_has_the_quotas_of_its_service_and_bytes() {
    let storage = StorageMax::new(|limit| 10 + limit as u64);
    let quotas = StorageQuotas::without_metrics(storage);
    let names = |owners: &[StorageOwner]| {
        let usage: Vec<trestle_proto::service::v1::QuotaUsage> =
            quotas.report(owners, &account("acme"));
        usage.into_iter().map(|usage| (usage.quota, usage.limit)).collect::<Vec<_>>()
    };
    let named = |names: &[(&str, u64)]| {
        names.iter().map(|(name, max)| ((*name).to_owned(), *max)).collect::<Vec<_>>()
    };

    let bytes = ("account_stored_bytes_max", 10);
    let tables = named(&[bytes, ("account_tables_max", 11)]);
    assert_eq!(names(&[StorageOwner::Tables]), tables);
    let blobs = [
        bytes,
        ("account_containers_max", 13),
        ("account_blobs_max", 14),
        ("account_streams_max", 15),
    ];
    assert_eq!(names(&[StorageOwner::Blobs, StorageOwner::Logs]), named(&blobs));
}
