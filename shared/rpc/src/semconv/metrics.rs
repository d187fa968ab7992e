//! The metrics: their names, meanings and histogram bounds.

use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};

/// Bounds of the histogram of calls by method, in seconds: from a cached read to a long page.
const CALL_SECONDS: [f64; 16] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 10.0,
];
/// Bounds of the histogram of unary calls by service, in seconds. Few, as below: each is a series of its own.
const UNARY_SECONDS: [f64; 7] = [0.000_5, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5];
/// Bounds of histograms of storage operations, in seconds: from a read in memory to a stalled disk.
const DB_SECONDS: [f64; 6] = [0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1.0];
/// Bounds of histograms of messages by method, in bytes: from a key to the largest import.
const MESSAGE_BYTES: [f64; 9] =
    [64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0];
/// Bounds of the histogram of group sizes, in changes; 1024 is the most.
const GROUP_CHANGES: [f64; 5] = [1.0, 4.0, 16.0, 64.0, 256.0];
/// Bounds of the histogram of group writes, in seconds: from a page cache to a stalled disk.
const GROUP_SECONDS: [f64; 6] = [0.000_25, 0.001, 0.005, 0.025, 0.1, 1.0];

/// How long calls took, by method, code and protocol, from the arrival of the headers to the end of the
/// answer. In seconds. By default without buckets.
pub const CALL_DURATION: Distribution = Distribution {
    name: "rpc.server.call.duration",
    unit: "s",
    help: "Time from the arrival of a call to the end of its answer",
    bounds: &CALL_SECONDS,
};
/// How long calls took that neither stream nor wait for a message, by service. In seconds.
pub const UNARY_DURATION: Distribution = Distribution {
    name: "trestle.rpc.server.unary.duration",
    unit: "s",
    help: "Time of calls that neither stream nor wait for a message, from arrival to the end of the answer",
    bounds: &UNARY_SECONDS,
};
/// Bytes of the messages of a request, by service, or by method.
pub const REQUEST_SIZE: Distribution = Distribution {
    name: "trestle.rpc.server.request.size",
    unit: "By",
    help: "Bytes of the request messages of a call",
    bounds: &MESSAGE_BYTES,
};
/// Bytes of the messages of an answer, by service, or by method.
pub const RESPONSE_SIZE: Distribution = Distribution {
    name: "trestle.rpc.server.response.size",
    unit: "By",
    help: "Bytes of the messages that answered a call",
    bounds: &MESSAGE_BYTES,
};
/// How long storage operations took, by operation. In seconds.
pub const DB_DURATION: Distribution = Distribution {
    name: "db.client.operation.duration",
    unit: "s",
    help: "Time of a storage operation, waiting for the sync of a commit included",
    bounds: &DB_SECONDS,
};
/// How many changes one sync made durable.
pub const GROUP_SIZE: Distribution = Distribution {
    name: "trestle.storage.group.changes",
    unit: "{change}",
    help: "Changes that were written together, with one sync",
    bounds: &GROUP_CHANGES,
};
/// How long the write and the sync of a group took. In seconds.
pub const GROUP_DURATION: Distribution = Distribution {
    name: "trestle.storage.group.duration",
    unit: "s",
    help: "Time of writing and syncing a group of changes",
    bounds: &GROUP_SECONDS,
};
/// How long a sync of the journal took. In seconds.
pub const SYNC_DURATION: Distribution = Distribution {
    name: "trestle.storage.sync.duration",
    unit: "s",
    help: "Time of a sync of the journal",
    bounds: &GROUP_SECONDS,
};

/// How many calls are being worked on.
#[must_use]
pub fn active_calls(meter: &Meter) -> UpDownCounter<i64> {
    meter
        .i64_up_down_counter("trestle.rpc.server.active_calls")
        .with_unit("{call}")
        .with_description("Calls whose answer has not ended")
        .build()
}

/// Calls that were rejected before they reached a service, by [`super::REJECTION_REASON`]: load
/// shedding, failed authentication.
#[must_use]
pub fn rejected_calls(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.rpc.server.rejections")
        .with_unit("{call}")
        .with_description("Calls that were rejected before they reached a service")
        .build()
}

/// Calls to other processes that could be sent again, by [`super::UPSTREAM_SERVICE`] and
/// [`super::RETRY_OUTCOME`].
#[must_use]
pub fn retries(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.rpc.client.retries")
        .with_unit("{call}")
        .with_description("Calls to another role that could be sent again: sent, or held back")
        .build()
}

/// Calls that went on to the process of the store that has what they are about.
#[must_use]
pub fn forwarded(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.store.forwarded")
        .with_unit("{call}")
        .with_description("Calls that went on to the process of the store that owns their queue")
        .build()
}

/// Connections whose handshake of TLS failed, by [`super::ERROR_TYPE`]: `certificate`, `protocol`,
/// `closed` or `timeout`.
#[must_use]
pub fn failed_handshakes(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.tls.handshake.failures")
        .with_unit("{handshake}")
        .with_description("Connections that failed in the TLS handshake")
        .build()
}

/// Operations that exceeded a quota, by [`super::THROTTLE_SCOPE`].
#[must_use]
pub fn throttled(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.throttle.operations")
        .with_unit("{operation}")
        .with_description("Operations that exceeded a quota: rejected, or ended early")
        .build()
}

/// Log records, data points and spans that an export had and that are not stored, by [`super::REJECTION_REASON`] and
/// [`super::STREAM`].
#[must_use]
pub fn rejected_items(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.log.items.rejected")
        .with_unit("{item}")
        .with_description("Log records, data points and spans of exports that were rejected")
        .build()
}

/// Writes that the store refused, and of which nothing was written, by [`super::ERROR_TYPE`].
#[must_use]
pub fn refused_writes(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.storage.writes.refused")
        .with_unit("{write}")
        .with_description("Writes that the store refused: nothing was written")
        .build()
}

/// Reloads of files, by [`super::RELOAD_SUBJECT`] and [`super::RELOAD_RESULT`].
#[must_use]
pub fn reloads(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.config.reloads")
        .with_unit("{reload}")
        .with_description("Changed files that were reloaded, or could not be")
        .build()
}

/// Steps of background work that failed, by [`super::TASK_NAME`].
#[must_use]
pub fn failed_tasks(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.task.failures")
        .with_unit("{failure}")
        .with_description("Steps of background work that failed; each is repeated later")
        .build()
}

/// Open connections, by [`super::LISTENER`].
pub const CONNECTIONS: Described = Described::new(
    "trestle.server.connections",
    "{connection}",
    "Open connections, those in a handshake included",
);
/// Rejected connections, by [`super::LISTENER`].
pub const REJECTED_CONNECTIONS: Described = Described::new(
    "trestle.server.connections.rejected",
    "{connection}",
    "Connections that were closed as they arrived, at the limit of connections",
);
/// When the certificate of a listener expires, by [`super::LISTENER`].
pub const CERTIFICATE_EXPIRY: Described = Described::new(
    "trestle.tls.certificate.expiry",
    "s",
    "When the certificate of a listener expires, in seconds since 1970",
);
/// Tables.
pub const TABLES: Described =
    Described::new("trestle.tables", "{table}", "Tables in the store, of all accounts");
/// Queues.
pub const QUEUES: Described =
    Described::new("trestle.queues", "{queue}", "Queues in the store, of all accounts");
/// Containers.
pub const CONTAINERS: Described = Described::new(
    "trestle.containers",
    "{container}",
    "Containers of blobs in the store, of all accounts",
);
/// Messages of all queues.
pub const MESSAGES: Described = Described::new(
    "trestle.queue.messages",
    "{message}",
    "Messages in all queues, invisible ones included",
);
/// Messages of the deepest queues, by [`super::QUEUE_RANK`].
pub const DEEPEST_QUEUES: Described = Described::new(
    "trestle.queue.depth",
    "{message}",
    "Messages in the queues that have the most, by rank",
);
/// Age of the oldest messages, by [`super::QUEUE_RANK`].
pub const OLDEST_MESSAGES: Described = Described::new(
    "trestle.queue.oldest_age",
    "s",
    "Age of the oldest message in the queues where it is oldest, by rank",
);
/// Messages of dead-letter queues.
pub const DEAD_LETTERS: Described = Described::new(
    "trestle.queue.dead_letters",
    "{message}",
    "Messages in the dead-letter queues of other queues",
);
/// Streams of log records.
pub const STREAMS: Described =
    Described::new("trestle.streams", "{stream}", "Streams of log records, of all accounts");
/// What an account uses of a quota on what it stores, by [`super::ACCOUNT`] and [`super::QUOTA`].
pub const QUOTA_USAGE: Described = Described::new(
    "trestle.quota.usage",
    "{amount}",
    "What an account uses of a quota on what it stores",
);
/// The quota, by the same labels.
pub const QUOTA_LIMIT: Described =
    Described::new("trestle.quota.limit", "{amount}", "A quota of an account on what it stores");
/// Bytes of log records that are not sealed.
pub const UNSEALED_BYTES: Described = Described::new(
    "trestle.log.unsealed",
    "By",
    "Bytes of log records that are not in segments yet, of all streams",
);
/// How late sealing is.
pub const SEAL_DELAY: Described = Described::new(
    "trestle.log.seal.delay",
    "s",
    "How long log records have been due to be sealed by age, of the stream where it is longest",
);
/// Segments of log records.
pub const SEGMENTS: Described =
    Described::new("trestle.log.segments", "{segment}", "Segments of log records, of all streams");
/// Damaged ones.
pub const DAMAGED_SEGMENTS: Described = Described::new(
    "trestle.log.segments.damaged",
    "{segment}",
    "Segments of log records that cannot be read and are left out of merges, of all streams",
);
/// Their bytes.
pub const SEGMENT_BYTES: Described =
    Described::new("trestle.log.sealed", "By", "Bytes of the segments of all streams");
/// The build that runs.
pub const BUILD_INFO: Described =
    Described::new("trestle.build.info", "", "Always 1; the labels identify the build");
/// Lines of the access log that were not written because the output was too slow.
pub const ACCESS_LOG_DROPPED: Described = Described::new(
    "trestle.access_log.lost",
    "{line}",
    "Lines of the access log that were dropped because its output was too slow",
);
/// Resident memory of the process. The names of these are those of clients of Prometheus.
pub const PROCESS_MEMORY: Described =
    Described::new("process.resident_memory", "By", "Bytes of memory that the process uses");
/// The most memory that it may have.
pub const PROCESS_MEMORY_MAX: Described = Described::new(
    "process.memory_limit",
    "By",
    "Bytes of memory that the process may use: the limit of its container, or the memory of the machine",
);
/// Time of the processor.
pub const PROCESS_CPU: Described =
    Described::new("process.cpu", "s", "Time of the processor that the process used");
/// Open descriptors.
pub const PROCESS_DESCRIPTORS: Described =
    Described::new("process.open_fds", "", "File descriptors that the process has open");
/// Most descriptors.
pub const PROCESS_DESCRIPTORS_MAX: Described =
    Described::new("process.max_fds", "", "File descriptors that the process may have open");
/// The start of the process.
pub const PROCESS_START: Described =
    Described::new("process.start_time", "s", "Start of the process, since 1970");
/// Bytes of the store on disk.
pub const STORAGE_BYTES: Described =
    Described::new("trestle.storage.used", "By", "Bytes of the store on disk");
/// Bytes free on the disk of the store.
pub const FREE_BYTES: Described =
    Described::new("trestle.storage.free", "By", "Bytes free on the disk of the store");
/// Bytes of free space below which only deletes are accepted.
pub const RESERVE_BYTES: Described = Described::new(
    "trestle.storage.reserve",
    "By",
    "Bytes that must remain free on the disk of the store: below, only deletes are accepted",
);
/// Whether only deletes are accepted.
pub const STORAGE_READ_ONLY: Described = Described::new(
    "trestle.storage.read_only",
    "{flag}",
    "1 when disk space is short and only reads and deletes are accepted",
);
/// Bytes that wait in memory to be flushed.
pub const WRITE_BUFFER_BYTES: Described = Described::new(
    "trestle.storage.write_buffer.used",
    "By",
    "Bytes in memory that wait to be flushed",
);
/// Whether the store takes no more writes.
pub const STORAGE_STOPPED: Described = Described::new(
    "trestle.storage.stopped",
    "{flag}",
    "1 when the store takes no more writes until a restart",
);
/// How far service time is from the wall clock.
pub const CLOCK_OFFSET: Described = Described::new(
    "trestle.clock.offset",
    "s",
    "Service time minus the wall clock: greater than 0 where service time is ahead",
);
/// The rates of the hottest partitions, by [`super::PARTITION_RANK`]: their names are data, and
/// unbounded.
pub const HOT_PARTITIONS: Described = Described::new(
    "trestle.partition.hottest",
    "{entity}/s",
    "Entities a second on the partitions that were used most in the last ten seconds, by rank",
);
/// Changes that wait for the commit thread, or for a worker of a database.
pub const COMMIT_QUEUE: Described =
    Described::new("trestle.storage.commit.queue", "{change}", "Changes that wait to be committed");
/// Bytes that were committed.
pub const COMMIT_BYTES: Described = Described::new(
    "trestle.storage.commit.size",
    "By",
    "Bytes of keys and values that were written",
);
/// Changes that were rejected.
pub const COMMIT_SHED: Described = Described::new(
    "trestle.storage.commit.shed",
    "{change}",
    "Changes rejected because too many were waiting",
);
/// How often the commit thread waited for compaction.
pub const STALLS: Described = Described::new(
    "trestle.storage.stalls",
    "{stall}",
    "Times that writes waited for compaction to catch up",
);
/// How long it waited.
pub const STALL_SECONDS: Described = Described::new(
    "trestle.storage.stall.time",
    "s",
    "Time that writes waited for compaction to catch up",
);
/// Bytes in the cache of blocks.
pub const CACHE_BYTES: Described =
    Described::new("trestle.storage.cache.used", "By", "Bytes of blocks in the cache");
/// Blocks that were requested, by [`super::CACHE_RESULT`].
pub const CACHE_BLOCKS: Described = Described::new(
    "trestle.storage.cache.blocks",
    "{block}",
    "Blocks that reads requested, in the cache or not",
);
/// Memtables that wait to be written as files.
pub const FLUSHES: Described = Described::new(
    "trestle.storage.flushes.waiting",
    "{memtable}",
    "Memtables that wait to be written as files",
);
/// Compactions under way.
pub const COMPACTIONS: Described =
    Described::new("trestle.storage.compactions.active", "{compaction}", "Compactions under way");
/// Time spent compacting.
pub const COMPACTION_SECONDS: Described =
    Described::new("trestle.storage.compaction.time", "s", "Time spent compacting");
/// Journal files.
pub const JOURNALS: Described = Described::new(
    "trestle.storage.journals",
    "{file}",
    "Journal files, which a start after a crash reads",
);

/// A metric that is observed at collection.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// Its unit, as UCUM writes it.
    pub unit: &'static str,
    /// Its description.
    pub help: &'static str,
}

impl Described {
    pub(super) const fn new(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, unit, help }
    }
}

/// A metric that counts values in buckets.
#[derive(Debug, Clone, Copy)]
pub struct Distribution {
    /// Its name.
    pub name: &'static str,
    /// Its unit, as UCUM writes it.
    pub unit: &'static str,
    /// Its description.
    pub help: &'static str,
    /// The upper bounds of its buckets, ascending; a last bucket has none.
    pub bounds: &'static [f64],
}

impl Distribution {
    /// The same without buckets: a count and a sum.
    #[must_use]
    pub const fn without_buckets(self) -> Self {
        Self { bounds: &[], ..self }
    }

    /// The metric, for values with fractions.
    #[must_use]
    pub fn of_fractions(&self, meter: &Meter) -> Histogram<f64> {
        meter
            .f64_histogram(self.name)
            .with_unit(self.unit)
            .with_description(self.help)
            .with_boundaries(self.bounds.to_vec())
            .build()
    }

    /// The metric, for counts.
    #[must_use]
    pub fn of_counts(&self, meter: &Meter) -> Histogram<u64> {
        meter
            .u64_histogram(self.name)
            .with_unit(self.unit)
            .with_description(self.help)
            .with_boundaries(self.bounds.to_vec())
            .build()
    }
}
