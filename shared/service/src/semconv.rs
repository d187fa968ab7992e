//! Every name that telemetry carries: spans, attributes, metrics with their units and help.
//!
//! Published names of OpenTelemetry come first; ours begin with `trestle.`. Labels are bounded
//! sets: never a key, an etag, a table or an id.

use opentelemetry::metrics::{Histogram, Meter, UpDownCounter};

/// Target of every span, at level debug: exporters select spans by it, and logs leave them out
/// unless asked.
pub const SPAN_TARGET: &str = "trestle::span";

/// The system of a call; always `grpc`.
pub const RPC_SYSTEM: &str = "rpc.system.name";
/// `package.Service/Method`, or `_OTHER`.
pub const RPC_METHOD: &str = "rpc.method";
/// The gRPC code of an answer, such as `NOT_FOUND`.
pub const RPC_STATUS: &str = "rpc.response.status_code";
/// The id of a request, given by the client or made by the first process it reaches. On spans and
/// logs only.
pub const REQUEST_ID: &str = "trestle.request_id";
/// The host of a process that is called.
pub const SERVER_ADDRESS: &str = "server.address";
/// The engine: `fjall` or `memory`.
pub const DB_SYSTEM: &str = "db.system.name";
/// `snapshot`, `get`, `scan` or `commit`.
pub const DB_OPERATION: &str = "db.operation.name";
/// The kind of a failure, where there was one.
pub const ERROR_TYPE: &str = "error.type";

/// Bounds of histograms of calls, in seconds: from a cached read to a long page.
const CALL_SECONDS: [f64; 16] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 10.0,
];
/// Bounds of histograms of storage operations, in seconds: from a read in memory to a stalled disk.
const DB_SECONDS: [f64; 14] = [
    0.000_002, 0.000_005, 0.000_01, 0.000_025, 0.000_1, 0.000_25, 0.001, 0.002_5, 0.01, 0.025, 0.1,
    0.25, 1.0, 5.0,
];

/// How long calls took, by method and code, from the arrival of the headers to the end of the
/// answer.
#[must_use]
pub fn call_duration(meter: &Meter) -> Histogram<f64> {
    meter
        .f64_histogram("rpc.server.call.duration")
        .with_unit("s")
        .with_description("Time from the arrival of a call to the end of its answer")
        .with_boundaries(CALL_SECONDS.to_vec())
        .build()
}

/// How many calls are being worked on.
#[must_use]
pub fn active_calls(meter: &Meter) -> UpDownCounter<i64> {
    meter
        .i64_up_down_counter("trestle.rpc.server.active_calls")
        .with_unit("{call}")
        .with_description("Calls whose answer has not ended")
        .build()
}

/// How long storage operations took, by operation.
#[must_use]
pub fn db_duration(meter: &Meter) -> Histogram<f64> {
    meter
        .f64_histogram("db.client.operation.duration")
        .with_unit("s")
        .with_description("Time of a storage operation, waiting for the sync of a commit included")
        .with_boundaries(DB_SECONDS.to_vec())
        .build()
}

/// Bytes of the store on disk.
pub const STORAGE_BYTES: Described =
    Described::new("trestle.storage.used", "By", "Bytes of the store on disk");
/// Bytes free on the disk of the store.
pub const FREE_BYTES: Described =
    Described::new("trestle.storage.free", "By", "Bytes free on the disk of the store");
/// Whether the store takes no more writes.
pub const STORAGE_STOPPED: Described = Described::new(
    "trestle.storage.stopped",
    "{flag}",
    "1 when the store takes no more writes until a restart",
);
/// Changes that wait for the commit thread.
pub const COMMIT_QUEUE: Described = Described::new(
    "trestle.storage.commit.queue",
    "{change}",
    "Changes that wait for the commit thread",
);
/// Groups that were committed.
pub const COMMIT_GROUPS: Described = Described::new(
    "trestle.storage.commit.groups",
    "{group}",
    "Groups of changes that were written, one sync each",
);
/// Changes that were committed.
pub const COMMIT_CHANGES: Described =
    Described::new("trestle.storage.commit.changes", "{change}", "Changes that were written");
/// Bytes that were committed.
pub const COMMIT_BYTES: Described = Described::new(
    "trestle.storage.commit.size",
    "By",
    "Bytes of keys and values that were written",
);
/// Time that commits took.
pub const COMMIT_SECONDS: Described =
    Described::new("trestle.storage.commit.time", "s", "Time spent writing and syncing groups");
/// Changes that were turned away.
pub const COMMIT_SHED: Described = Described::new(
    "trestle.storage.commit.shed",
    "{change}",
    "Changes turned away because too many waited",
);

/// A metric that is read when it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// Its unit, as UCUM writes it.
    pub unit: &'static str,
    /// What it counts.
    pub help: &'static str,
}

impl Described {
    const fn new(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, unit, help }
    }
}
