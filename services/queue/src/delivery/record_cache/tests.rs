//! Tests of the record cache.

use bytes::Bytes;
use trestle_model::{fault::Violations, time::Ticks};

use super::*;
use crate::{keys::QueueId, record::QueueSettings};

fn name(text: &str) -> QueueName {
    let mut violations = Violations::default();
    QueueName::parse(text.to_owned(), "queue", &mut violations).expect("a name")
}

fn record(id: u64) -> Arc<QueueRecord> {
    let created_at = Ticks::new(1).expect("in range");
    let (settings, policies) = (QueueSettings::default(), Bytes::new());
    Arc::new(QueueRecord { id: QueueId(id), version: 1, created_at, settings, policies })
}

/// Whether a record read from the store is cached, when `between` runs between the lookup and the insertion.
fn is_kept(cache: &Arc<RecordCache>, queue: &str, between: impl FnOnce()) -> bool {
    let (account, name) = (AccountName::development(), name(queue));
    let miss = cache.get(&account, &name).expect_err("not cached yet");
    between();
    cache.keep(&miss, &account, &name, &record(1));
    cache.get(&account, &name).is_ok()
}

#[test]
fn caches_a_record_until_it_changes() {
    let cache = Arc::new(RecordCache::default());
    let account = AccountName::development();

    assert!(is_kept(&cache, "first", || {}));
    assert!(is_kept(&cache, "second", || {}));
    drop(cache.changing(&account, &name("first")));

    assert!(cache.get(&account, &name("first")).is_err());
    let second = cache.get(&account, &name("second"));
    assert_eq!(second.ok().map(|record| record.id), Some(QueueId(1)));
}

#[test]
fn does_not_cache_a_record_that_may_have_changed_since_the_lookup() {
    let cache = Arc::new(RecordCache::default());
    let account = AccountName::development();
    let mut in_flight = None;

    let begins = || in_flight = Some(cache.changing(&account, &name("jobs")));
    assert!(!is_kept(&cache, "jobs", begins), "a change has begun");
    assert!(!is_kept(&cache, "jobs", || {}), "it is still in flight");
    assert!(!is_kept(&cache, "jobs", || drop(in_flight.take())), "it has ended since");

    assert!(is_kept(&cache, "jobs", || {}));
}

#[test]
fn the_number_of_cached_records_is_bounded() {
    let cache = Arc::new(RecordCache::default());
    for number in 0..=RECORDS_MAX {
        assert!(is_kept(&cache, &format!("queue-{number}"), || {}));
    }

    let count: usize = cache.lock().records.values().map(HashMap::len).sum();
    assert_eq!((count, cache.lock().count), (1, 1));
}
