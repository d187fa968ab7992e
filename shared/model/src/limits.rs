//! Every limit of the data model and of a call, with its unit and its origin.
//!
//! "Azure" marks a limit of Azure storage, kept so that programs move both ways; the others are ours.

use std::time::Duration;

/// Shortest table name, in characters. Azure.
pub const TABLE_NAME_CHARS_MIN: usize = 3;
/// Longest table name, in characters. Azure.
pub const TABLE_NAME_CHARS_MAX: usize = 63;
/// Longest partition or row key, in UTF-16 code units. Azure documents 1 KiB; the larger interpretation
/// applies.
pub const KEY_UTF16_UNITS_MAX: usize = 1024;
/// Longest property name, in UTF-16 code units. Azure.
pub const PROPERTY_NAME_UTF16_UNITS_MAX: usize = 255;
/// Most custom properties of an entity: 255 with the three system properties. Azure.
pub const PROPERTIES_MAX: usize = 252;
/// Longest string value, in UTF-16 code units (64 KiB). Azure.
pub const STRING_UTF16_UNITS_MAX: usize = 32_768;
/// Largest binary value, in bytes. Azure.
pub const BINARY_BYTES_MAX: usize = 65_536;
/// Largest entity, in bytes as Azure counts them. Azure.
pub const ENTITY_BYTES_MAX: usize = 1_048_576;
/// Most operations of a batch. Azure.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// Largest batch, and largest chunk of an import, in bytes of the encoded request. Azure.
pub const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most entities of one chunk of an import: bounds the work before the next chunk, and the answer.
pub const IMPORT_CHUNK_ENTITIES_MAX: usize = 1000;
/// How long a client of a stream may send nothing before it is disconnected. The listener bounds how long it may
/// read nothing.
pub const STREAM_IDLE_MAX: Duration = Duration::from_secs(120);
/// Longest wait of a stream or an import for quota before it fails.
pub const QUOTA_WAIT_MAX: Duration = Duration::from_secs(30);
/// Most entities or tables in a page. Azure.
pub const PAGE_ENTITIES_MAX: usize = 1000;
/// Largest page, in bytes of encoded entities: under the 4 MiB that gRPC clients accept by default.
pub const PAGE_BYTES_MAX: usize = 3_670_016;
/// Longest work on one page before it ends early with a token. Azure.
pub const PAGE_TIME_MAX: Duration = Duration::from_secs(5);
/// Most entities examined for one page before it ends early with a token: bounds the work of one call.
pub const PAGE_SCANNED_MAX: usize = 200_000;
/// Most names in a projection. Azure.
pub const SELECT_NAMES_MAX: usize = 255;
/// Longest filter, in bytes.
pub const FILTER_BYTES_MAX: usize = 32_768;
/// How deep `and`, `or` and `not` may be inside of another one of these: bounds the recursion over the tree. The same
/// operator in itself, and parentheses alone, do not count: what clients generate stays below ten.
pub const FILTER_NESTING_MAX: usize = 250;
/// Longest page token, in bytes.
pub const PAGE_TOKEN_BYTES_MAX: usize = 16_384;
/// Most stored access policies of a table. Azure.
pub const ACCESS_POLICIES_MAX: usize = 5;
/// Longest id of an access policy, in characters. Azure.
pub const ACCESS_POLICY_ID_CHARS_MAX: usize = 64;
/// Most cross-origin rules. Azure.
pub const CORS_RULES_MAX: usize = 5;
/// Largest message a server decodes, in bytes: a batch of 4 MiB and its wrapping.
pub const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most bytes that the largest export of OpenTelemetry may be set to: records of it are in one commit.
pub const EXPORT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most calls of health at a time; of these, half may be watches. Anyone may make them, and each costs a few KiB.
pub const HEALTH_CALLS_MAX: usize = 2048;
/// Largest message of health, in bytes: the name of a service.
pub const HEALTH_MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// Most bytes of messages of health at a time.
pub const HEALTH_BODY_BYTES_MAX: usize = HEALTH_CALLS_MAX * HEALTH_MESSAGE_BYTES_MAX;
/// Most calls of reflection at a time; half of them may be streams, as its only method is. Each costs up to the
/// flow-control window of a call, 1 MiB, where its client sends and does not receive.
pub const REFLECTION_CALLS_MAX: usize = 128;
/// Largest message of reflection, in bytes: the name of a symbol or of a file, and a host.
pub const REFLECTION_MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of messages of reflection at a time.
pub const REFLECTION_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest host in a request of reflection, in bytes: the longest name of DNS.
pub const REFLECTION_HOST_BYTES_MAX: usize = 255;

/// Shortest queue name, in characters. Azure.
pub const QUEUE_NAME_CHARS_MIN: usize = 3;
/// Longest queue name, in characters. Azure.
pub const QUEUE_NAME_CHARS_MAX: usize = 63;
/// Largest metadata of a queue, a container or a blob, names and values together, in bytes. Azure.
pub const METADATA_BYTES_MAX: usize = 8192;
/// Largest message of a queue, in bytes. Azure.
pub const MESSAGE_BODY_BYTES_MAX: usize = 65_536;
/// Default time to live (TTL) of a message. Azure.
pub const MESSAGE_TTL_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Shortest TTL of a message. Azure.
pub const MESSAGE_TTL_MIN: Duration = Duration::from_secs(1);
/// Longest visibility timeout of a message. Azure.
pub const VISIBILITY_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Default visibility timeout of a received message. Azure.
pub const VISIBILITY_DEFAULT: Duration = Duration::from_secs(30);
/// Shortest visibility timeout of a received message. Azure.
pub const VISIBILITY_RECEIVE_MIN: Duration = Duration::from_secs(1);
/// Most messages of one receive or peek. Azure.
pub const RECEIVE_MESSAGES_MAX: usize = 32;
/// Longest wait for a message.
pub const RECEIVE_WAIT_MAX: Duration = Duration::from_secs(20);
/// Most messages of one send or delete.
pub const QUEUE_BATCH_MESSAGES_MAX: usize = 100;
/// Most bytes of the messages of one send.
pub const QUEUE_BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most credit of a stream, in messages: bounds what one client withholds from others.
pub const STREAM_CREDIT_MAX: u32 = 1000;
/// Most messages of one redrive.
pub const REDRIVE_MESSAGES_MAX: usize = 1000;
/// Most deliveries that a dead-letter policy may allow.
pub const DEQUEUE_COUNT_MAX: u32 = 1000;
/// Longest deduplication id, in bytes.
pub const DEDUPLICATION_ID_BYTES_MAX: usize = 128;
/// Longest name of an ordering group, in bytes.
pub const ORDERING_GROUP_BYTES_MAX: usize = 128;
/// Shortest deduplication window.
pub const DEDUPLICATION_WINDOW_MIN: Duration = Duration::from_secs(1);
/// Longest deduplication window.
pub const DEDUPLICATION_WINDOW_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Longest request id of a send, in bytes.
pub const SEND_REQUEST_ID_BYTES_MAX: usize = 64;
/// How long the request id of a send is deduplicated.
pub const SEND_REQUEST_REMEMBERED: Duration = Duration::from_secs(600);
/// Most queues in a page. Azure.
pub const PAGE_QUEUES_MAX: usize = 5000;

/// Shortest container name, in characters. Azure.
pub const CONTAINER_NAME_CHARS_MIN: usize = 3;
/// Longest container name, in characters. Azure.
pub const CONTAINER_NAME_CHARS_MAX: usize = 63;
/// Longest blob name, in characters. Azure.
pub const BLOB_NAME_CHARS_MAX: usize = 1024;
/// Most segments of a blob name, separated by `/`. Azure.
pub const BLOB_NAME_SEGMENTS_MAX: usize = 254;
/// Longest HTTP property of a blob, in bytes.
pub const HTTP_PROPERTY_BYTES_MAX: usize = 1024;
/// Most etags in a condition.
pub const CONDITION_ETAGS_MAX: usize = 64;
/// Largest blob content that is stored beside its record, in bytes; larger content is stored as objects.
pub const INLINE_BYTES_MAX: usize = 32 * 1024;
/// Most data in one message of an upload, in bytes.
pub const UPLOAD_MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most data in one message of a read, in bytes.
pub const READ_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// How long an upload may send nothing before it fails.
pub const UPLOAD_IDLE_MAX: Duration = Duration::from_secs(30);
/// Fewest bytes a second that an upload has to send, on the whole and beyond [`UPLOAD_GRACE`].
pub const UPLOAD_RATE_MIN: u64 = 8 * 1024;
/// How long an upload may wait for its client in all, beside the time that its bytes need at [`UPLOAD_RATE_MIN`].
pub const UPLOAD_GRACE: Duration = Duration::from_secs(60);
/// Longest upload. Shorter than the grace period after which objects without a blob are deleted.
pub const UPLOAD_TIME_MAX: Duration = Duration::from_secs(12 * 3600);
/// Longest id of a block, in bytes. Azure.
pub const BLOCK_ID_BYTES_MAX: usize = 64;
/// Largest block, in bytes (4,000 MiB). Azure.
pub const BLOCK_BYTES_MAX: u64 = 4000 * 1024 * 1024;
/// Largest block of an append blob, in bytes. Azure.
pub const APPEND_BYTES_MAX: u64 = 100 * 1024 * 1024;
/// Largest page blob, in bytes (8 TiB). Azure.
pub const PAGE_BLOB_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024 * 1024;
/// Most data of one write of pages, in bytes. Azure.
pub const PAGES_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Most ranges in a page of page ranges. Azure.
pub const PAGE_RANGES_MAX: usize = 10_000;
/// Most committed blocks of a blob. Azure.
pub const BLOCKS_MAX: usize = 50_000;
/// Most staged blocks of a blob. Azure.
pub const STAGED_BLOCKS_MAX: u64 = 100_000;
/// Most bytes of a blob, and of its staged blocks: 50,000 blocks of 4,000 MiB. Azure.
pub const BLOB_BYTES_MAX: u64 = 50_000 * BLOCK_BYTES_MAX;
/// How long staged blocks are kept after the last one was staged. Azure.
pub const STAGED_BLOCKS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Shortest duration of a lease that expires. Azure.
pub const LEASE_MIN: Duration = Duration::from_secs(15);
/// Longest duration of a lease that expires, and longest break period. Azure.
pub const LEASE_MAX: Duration = Duration::from_secs(60);
/// Most containers in a page. Azure.
pub const PAGE_CONTAINERS_MAX: usize = 5000;
/// Most blobs and groups in a page. Azure.
pub const PAGE_BLOBS_MAX: usize = 5000;
/// Most blobs that one call deletes. Azure.
pub const DELETED_BLOBS_MAX: usize = 256;
/// Longest text that names the source of a copy, in bytes. Azure.
pub const COPY_SOURCE_BYTES_MAX: usize = 2048;
/// Longest time that deleted blobs can be restored, in days. Azure.
pub const DELETE_RETENTION_DAYS_MAX: u32 = 365;
/// Longest delimiter of a listing, in bytes.
pub const DELIMITER_BYTES_MAX: usize = 64;
