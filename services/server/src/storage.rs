//! Opens the store and makes its state visible.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use opentelemetry::metrics::Meter;
use trestle_kv::{
    Engine, EngineStats, FjallEngine, FjallOptions, MemoryEngine, OpenError, SyncPolicy,
};
use trestle_service::{
    semconv::{self, Described},
    traced::TracedEngine,
};

use crate::settings::{Durability, StorageSettings};

/// Directory of the engine within the data directory, which others will share.
const ENGINE_DIR: &str = "kv";

/// Opens the store that the settings name. Blocks while a journal is read.
///
/// # Errors
/// Every kind of [`OpenError`].
pub fn open(settings: &StorageSettings, meter: &Meter) -> Result<Arc<dyn Engine>, OpenError> {
    let engine: Arc<dyn Engine> = if settings.ephemeral {
        Arc::new(MemoryEngine::new())
    } else {
        let engine = Arc::new(FjallEngine::open(options(settings))?);
        observe_commits(meter, &engine);
        engine
    };
    observe_space(meter, &engine);
    Ok(Arc::new(TracedEngine::new(engine, meter)))
}

fn options(settings: &StorageSettings) -> FjallOptions {
    let path = settings.data_dir.join(ENGINE_DIR);
    FjallOptions {
        durability: match settings.durability {
            Durability::Always => SyncPolicy::Always,
            Durability::Interval => {
                SyncPolicy::Interval(Duration::from_millis(settings.sync_every_ms))
            }
            Durability::Os => SyncPolicy::Os,
        },
        cache_bytes: settings.cache_bytes,
        min_free_bytes: settings.min_free_bytes,
        ..FjallOptions::new(path, trestle_table::KEYSPACES.to_vec())
    }
}

/// Reads the engine when metrics are asked for. Holds it weakly, so that metrics keep no store
/// open.
fn observe_space(meter: &Meter, engine: &Arc<dyn Engine>) {
    let gauge = |metric: Described, read: fn(&dyn Engine) -> Option<u64>| {
        let engine = Arc::downgrade(engine);
        let _ = meter
            .u64_observable_gauge(metric.name)
            .with_unit(metric.unit)
            .with_description(metric.help)
            .with_callback(move |observer| {
                if let Some(value) = engine.upgrade().and_then(|engine| read(&*engine)) {
                    observer.observe(value, &[]);
                }
            })
            .build();
    };
    gauge(semconv::STORAGE_BYTES, |engine| Some(engine.status().storage_bytes));
    gauge(semconv::FREE_BYTES, |engine| engine.status().free_bytes);
    gauge(semconv::STORAGE_STOPPED, |engine| Some(u64::from(engine.status().stopped.is_some())));
}

fn observe_commits(meter: &Meter, engine: &Arc<FjallEngine>) {
    let stats = |engine: &Weak<FjallEngine>| engine.upgrade().map(|engine| engine.stats());
    let counter = |metric: Described, read: fn(&EngineStats) -> u64| {
        let engine = Arc::downgrade(engine);
        let _ = meter
            .u64_observable_counter(metric.name)
            .with_unit(metric.unit)
            .with_description(metric.help)
            .with_callback(move |observer| {
                if let Some(stats) = stats(&engine) {
                    observer.observe(read(&stats), &[]);
                }
            })
            .build();
    };
    counter(semconv::COMMIT_GROUPS, |stats| stats.groups);
    counter(semconv::COMMIT_CHANGES, |stats| stats.changes);
    counter(semconv::COMMIT_BYTES, |stats| stats.bytes);
    counter(semconv::COMMIT_SHED, |stats| stats.shed);

    let (queue, time) = (semconv::COMMIT_QUEUE, semconv::COMMIT_SECONDS);
    let held = Arc::downgrade(engine);
    let _ = meter
        .u64_observable_gauge(queue.name)
        .with_unit(queue.unit)
        .with_description(queue.help)
        .with_callback(move |observer| {
            if let Some(stats) = stats(&held) {
                observer.observe(stats.queue_depth, &[]);
            }
        })
        .build();
    let held = Arc::downgrade(engine);
    let _ = meter
        .f64_observable_counter(time.name)
        .with_unit(time.unit)
        .with_description(time.help)
        .with_callback(move |observer| {
            if let Some(stats) = stats(&held) {
                observer.observe(stats.write_time.as_secs_f64(), &[]);
            }
        })
        .build();
}
