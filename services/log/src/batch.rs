//! Batches: what one append stores of a stream, before its records are sealed into a segment.
//!
//! A batch is a byte with the version of its format, and the message `StoredBatch`, whose groups have their resource
//! and scope before their records. A resource that several groups have after each other is in the first of them only.
//! Records that keep the rules are stored as they arrived.

mod append;
mod check;
mod derived;
mod encode;
mod export;
mod items;
mod logs;
mod metrics;
mod naming;
mod rejected;
mod repair;
mod rules;
mod spans;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use append::batch_of_append;
pub(crate) use derived::DerivedBytes;
#[cfg(test)]
pub(crate) use encode::BATCH_BYTES_MAX;
pub(crate) use encode::{BatchRoom, EncodedBatch};
pub(crate) use export::{
    EncodedResource, ExportedBatches, ResourceItems, ResourcesByStream, batches_of_resources,
    request_bytes, resources_by_stream,
};
pub(crate) use naming::stream_of_resource;
pub(crate) use rejected::Rejected;
pub(crate) use rules::{DAYS_MAX, RecordError, RecordTimes};
pub(crate) use view::{BatchRow, BatchView, CorruptBatch};

/// The version of the format, its first byte.
const FORMAT: u8 = 2;
/// The version in which every group has its resource.
const FORMAT_WITH_RESOURCES: u8 = 1;

/// The fields of a stored batch.
mod stored {
    /// `fixed64`: when the batch was received, in nanoseconds since 1970.
    pub(super) const RECEIVED: u32 = 1;
    /// Repeated message: records with one resource and one scope.
    pub(super) const GROUP: u32 = 2;

    /// Bytes: an encoded `Resource`.
    pub(super) const RESOURCE: u32 = 1;
    /// Bytes: an encoded `InstrumentationScope`.
    pub(super) const SCOPE: u32 = 2;
    /// Repeated bytes: an encoded `Record`.
    pub(super) const RECORD: u32 = 3;
    /// Bytes, empty: the resource is that of the group before. Instead of a resource; since format 2.
    pub(super) const SAME_RESOURCE: u32 = 4;
}
