//! The log service: streams of log records, metric data points and spans, batched into Parquet segments.
//!
//! Three layers. `api` parses and renders protobuf and decides nothing. `streams`, `append`, `seal`, `merge`, `read`,
//! `summarize`, `tail` and `sweep` work on domain types; their decisions are pure, around one snapshot or one commit.
//! `keys`, `stored` and `batch` are the format of rows, `segment` that of objects.
//!
//! Records travel and are stored as they are encoded: an append validates them and stores their bytes in a batch, a row
//! of the store, which is durable when the append is acknowledged. Later the batches are sealed into segments, one for
//! each stream and day, and a change of the manifest replaces the one by the other.

mod api;
mod append;
mod authorize;
pub mod backup;
mod batch;
mod clocks;
mod damage;
mod error;
mod filter;
#[cfg(test)]
mod fixture;
#[cfg(feature = "testing")]
pub mod fuzzing;
mod heads;
mod json;
mod keys;
mod late_searches;
mod layout;
mod logs;
mod look;
mod manifest;
mod merge;
#[cfg(test)]
mod model;
mod names;
mod placement;
mod read;
mod record;
mod rejections;
mod row;
#[cfg(test)]
mod samples;
mod seal;
mod segment;
mod segments;
mod stored;
mod stream;
mod streams;
mod summarize;
mod summary;
mod sweep;
mod tail;
mod threads;
mod totals;
mod undelete;
mod unreadable;
mod unsealed;

use std::sync::Arc;

use opentelemetry::metrics::Meter;
use trestle_kv::Engine;
use trestle_model::{fault::Fault, limits::MESSAGE_BYTES_MAX};
use trestle_objects::ObjectArea;
use trestle_proto::{
    log::v1::log_service_server::LogServiceServer,
    opentelemetry::proto::collector::{
        logs::v1::logs_service_server::LogsServiceServer,
        metrics::v1::metrics_service_server::MetricsServiceServer,
        trace::v1::trace_service_server::TraceServiceServer,
    },
};
use trestle_rpc::quota::StorageQuotas;

use crate::logs::Logs;
pub use crate::{api::LogApi, keys::KEYSPACES, placement::StreamPlacement, totals::StreamTotals};

/// Full name of the service.
pub const LOG_SERVICE: &str = "trestle.log.v1.LogService";
/// Full name of the service that receives log records of OpenTelemetry.
pub const OTLP_LOGS_SERVICE: &str = "opentelemetry.proto.collector.logs.v1.LogsService";
/// Full name of the service that receives metrics of OpenTelemetry.
pub const OTLP_METRICS_SERVICE: &str = "opentelemetry.proto.collector.metrics.v1.MetricsService";
/// Full name of the service that receives traces of OpenTelemetry.
pub const OTLP_TRACE_SERVICE: &str = "opentelemetry.proto.collector.trace.v1.TraceService";

/// The dependencies of the service.
pub struct LogDeps {
    /// The storage engine: settings, and records that are not sealed.
    pub engine: Arc<dyn Engine>,
    /// Where segments are stored.
    pub area: ObjectArea,
    /// Generates ids of streams.
    pub random: fn() -> u128,
    /// Where rejected items of exports are counted.
    pub meter: Meter,
    /// Largest export, in bytes, after decompression. Other messages have up to [`MESSAGE_BYTES_MAX`].
    pub export_bytes_max: usize,
    /// The quotas of accounts on what they store.
    pub storage: StorageQuotas,
    /// Which process works on a stream in the background; none: this one has the store to itself.
    pub placement: Option<Arc<dyn StreamPlacement>>,
}

/// The log service of a process.
#[derive(Clone)]
pub struct LogRole {
    api: LogApi,
    export_bytes_max: usize,
}

impl LogRole {
    /// Builds the service. Starts no task.
    #[must_use]
    pub fn new(deps: LogDeps) -> Self {
        let LogDeps { engine, area, random, meter, export_bytes_max, storage, placement } = deps;
        let mut logs = Logs::new(engine, area, random);
        logs.streams = logs.streams.with_quotas(storage);
        logs.placement = placement;
        let api = LogApi::new(logs, &meter);
        Self { api, export_bytes_max }
    }

    /// The gRPC service.
    #[must_use]
    pub fn server(&self) -> LogServiceServer<LogApi> {
        LogServiceServer::new(self.api.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// The service that receives log records of OpenTelemetry.
    #[must_use]
    pub fn otlp_logs(&self) -> LogsServiceServer<LogApi> {
        LogsServiceServer::new(self.api.clone()).max_decoding_message_size(self.export_bytes_max)
    }

    /// The service that receives metrics of OpenTelemetry.
    #[must_use]
    pub fn otlp_metrics(&self) -> MetricsServiceServer<LogApi> {
        MetricsServiceServer::new(self.api.clone()).max_decoding_message_size(self.export_bytes_max)
    }

    /// The service that receives traces of OpenTelemetry.
    #[must_use]
    pub fn otlp_trace(&self) -> TraceServiceServer<LogApi> {
        TraceServiceServer::new(self.api.clone()).max_decoding_message_size(self.export_bytes_max)
    }

    /// What all streams of the store have together.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn totals(&self) -> Result<StreamTotals, Fault> {
        Ok(self.api.logs().totals().await?)
    }

    /// Ends calls that last, now and later: tails, and streams of appends behind the last acknowledgement.
    pub fn shut_down(&self) {
        self.api.logs().shutdown.cancel();
    }

    /// One step of sealing, to be called again at once. Waits where nothing is due.
    ///
    /// # Errors
    /// When a store cannot be read or written; the next call repeats the step.
    pub async fn seal(&self) -> Result<bool, Fault> {
        Ok(self.api.logs().seal_due().await?)
    }

    /// Measures what accounts store in streams, if an account has a quota on it. To be called every few seconds, less
    /// often where it takes long.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn measure(&self) -> Result<(), Fault> {
        self.api.logs().streams.measure().await
    }

    /// Takes note of what other processes of the store appended. To be called often, where there are others.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn look(&self) -> Result<(), Fault> {
        Ok(self.api.logs().look().await?)
    }

    /// One step of the background work, to be called every few seconds. Returns true when the next step should follow
    /// at once.
    ///
    /// # Errors
    /// When a store cannot be read or written; the next call repeats the step.
    pub async fn sweep(&self) -> Result<bool, Fault> {
        Ok(self.api.sweeper().tick().await?)
    }
}
