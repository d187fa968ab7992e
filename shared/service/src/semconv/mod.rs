//! Every name that telemetry carries: targets, attributes of spans and logs, and, in `metrics`, the
//! metrics with their units and help.
//!
//! Published names of OpenTelemetry come first, as version 1.42 of its conventions has them; ours
//! begin with `trestle.`. Labels are bounded sets: never a key, an etag, a table or an id.

mod metrics;

pub use self::metrics::*;

/// Target of every span, at level debug: exporters select spans by it, and logs leave them out
/// unless asked.
pub const SPAN_TARGET: &str = "trestle::span";
/// Target of the access log, at level info.
pub const ACCESS_TARGET: &str = "trestle::access";
/// Name of the span that a call has in the process that serves it. All others are under it.
pub const SERVER_SPAN: &str = "call";

/// The status of a span, where it is an error.
pub const SPAN_STATUS: &str = "otel.status_code";
/// The value of [`SPAN_STATUS`].
pub const SPAN_ERROR: &str = "ERROR";
/// The system of a call; always `grpc`.
pub const RPC_SYSTEM: &str = "rpc.system.name";
/// The value of [`RPC_SYSTEM`].
pub const GRPC: &str = "grpc";
/// `package.Service/Method`, or `_OTHER`.
pub const RPC_METHOD: &str = "rpc.method";
/// What a client asked for where [`RPC_METHOD`] is `_OTHER`. On spans only.
pub const RPC_METHOD_ORIGINAL: &str = "rpc.method_original";
/// The gRPC code of an answer, such as `NOT_FOUND`.
pub const RPC_STATUS: &str = "rpc.response.status_code";
/// The id of a request, given by the client or made by the first process it reaches. On spans and
/// logs only.
pub const REQUEST_ID: &str = "trestle.request_id";
/// The host of a process that is called.
pub const SERVER_ADDRESS: &str = "server.address";
/// Its port.
pub const SERVER_PORT: &str = "server.port";
/// The address at the other end of a connection. On spans and logs only.
pub const PEER_ADDRESS: &str = "network.peer.address";
/// Its port.
pub const PEER_PORT: &str = "network.peer.port";
/// The engine: `fjall` or `memory`.
pub const DB_SYSTEM: &str = "db.system.name";
/// `get`, `scan` or `commit`.
pub const DB_OPERATION: &str = "db.operation.name";
/// How many entries a scan returned. On spans only.
pub const DB_ROWS: &str = "db.response.returned_rows";
/// The kind of a failure, where there was one: the gRPC code of a call, or that of the engine.
pub const ERROR_TYPE: &str = "error.type";
/// Why a call was refused before it reached a service: a reason of `ErrorReason`.
pub const REFUSAL_REASON: &str = "trestle.refusal.reason";
/// What a throttle holds to: `account` or `partition`.
pub const THROTTLE_SCOPE: &str = "trestle.throttle.scope";
/// The service in another process that a call was for, by its full name.
pub const UPSTREAM_SERVICE: &str = "trestle.upstream.service";
/// What became of a call to another process that could be sent again: `sent`, or not, since that
/// was `over_budget`, `too_often` or `too_late`.
pub const RETRY_OUTCOME: &str = "trestle.retry.outcome";
/// Whether a block was in the cache: `hit` or `miss`.
pub const CACHE_RESULT: &str = "trestle.cache.result";
/// The place of a partition among the hottest: 1 for the hottest.
pub const PARTITION_RANK: &str = "trestle.partition.rank";
/// The version of the build.
pub const BUILD_VERSION: &str = "version";
/// The revision of its sources, where the build was told.
pub const BUILD_REVISION: &str = "revision";
/// `release` or `debug`.
pub const BUILD_PROFILE: &str = "profile";
/// The trace that a log line belongs to.
pub const TRACE_ID: &str = "trace_id";
/// The span that a log line belongs to.
pub const SPAN_ID: &str = "span_id";
