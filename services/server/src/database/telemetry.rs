//! The metrics of a database: what its engine counts, and what the database says of itself.

use std::sync::Arc;

use opentelemetry::{KeyValue, metrics::Meter};
use trestle_kv_postgres::{PostgresEngine, PostgresStats, RetryReason, ServerStatus};
use trestle_rpc::semconv;
use trestle_runtime::task::Task;

use crate::{
    measured::{Measured, Points, point},
    observed_stats::{Counts, ObservedStats},
};

/// The task that asks the database about itself; all metrics are on `meter`.
pub(super) fn observe(meter: &Meter, engine: &Arc<PostgresEngine>) -> Task {
    let stats = ObservedStats::new(meter, engine, |engine| engine.stats());
    stats.gauge(semconv::COMMIT_QUEUE, |stats| stats.queue_depth);
    stats.counter(semconv::COMMIT_BYTES, |stats| stats.bytes);
    stats.counter(semconv::COMMIT_SHED, |stats| stats.shed);
    stats.counters(semconv::COMMIT_RETRIES, retries);
    stats.counter(semconv::COMMIT_UNKNOWN, |stats| stats.unknown);
    stats.age(semconv::SNAPSHOT_AGE, |stats| stats.oldest_snapshot);
    stats.gauges(semconv::DB_CONNECTIONS, connections);
    stats.gauges(semconv::DB_CONNECTIONS_MAX, |stats| {
        stats.connections.iter().map(|pool| (pool.max, vec![pool_label(pool.name)])).collect()
    });
    let measured = Measured::default();
    measured.set(engine.server().clone());
    measured.observe(meter, semconv::DATABASE_PRIMARY, |server| flag(server.is_primary));
    measured.observe(meter, semconv::DATABASE_DURABLE, |server| flag(server.is_durable()));
    measured.observe(meter, semconv::DATABASE_STANDBYS, |server| point(server.standbys().into()));
    let (engine, last) = (Arc::clone(engine), measured.clone());
    measured.task("database-status", move || {
        let (engine, last) = (Arc::clone(&engine), last.last());
        async move {
            let last = || last.unwrap_or_else(|| engine.server().clone());
            // Nothing is known of one that is away, but that it takes no changes.
            let away = |_| ServerStatus { is_primary: false, ..last() };
            Ok(engine.server_now().await.unwrap_or_else(away))
        }
    })
}

fn flag(is_set: bool) -> Points {
    point(f64::from(u8::from(is_set)))
}

fn retries(stats: &PostgresStats) -> Counts {
    let reasons = RetryReason::ALL.iter().zip(stats.retries);
    let label = |reason: &RetryReason| KeyValue::new(semconv::ERROR_TYPE, reason.name());
    reasons.map(|(reason, count)| (count, vec![label(reason)])).collect()
}

fn connections(stats: &PostgresStats) -> Counts {
    let states = stats.connections.iter().flat_map(|pool| {
        [("used", pool.used), ("idle", pool.idle)].map(|(state, count)| {
            (count, vec![pool_label(pool.name), KeyValue::new(semconv::DB_CONNECTION_STATE, state)])
        })
    });
    states.collect()
}

fn pool_label(name: &'static str) -> KeyValue {
    KeyValue::new(semconv::DB_CONNECTION_POOL, name)
}
