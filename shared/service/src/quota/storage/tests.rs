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
