//! Batches of exports of OpenTelemetry: one for each stream, more of a large request, without the items that violate a
//! rule. What is invalid and optional in an item, in its resource or its scope, is left out alone.
//!
//! Exports of logs, of metrics and of traces have one structure: resources have scopes, which have items. Each item is
//! read on its own, so that a malformed one rejects no other.

use std::{collections::BTreeMap, fmt};

use bytes::Bytes;
use trestle_model::fault::Fault;
use trestle_proto::wire::{MalformedMessage, MessageReader};
use trestle_rpc::layer::shares::Share;

use super::{
    BatchRoom, EncodedBatch, RecordError, RecordTimes, Rejected,
    check::{OriginKind, RecordChecker},
    encode::{BATCH_BYTES_MAX, BatchEncoder, EncodedBatches},
    repair::{Leniency, admit_origin},
};
use crate::record::entries_of;

/// Most bytes of a batch for each byte of its request, beside [`EXPANDED_BYTES`]. A histogram of 160 buckets with long
/// attributes becomes a hundred times as much.
const EXPANSION_MAX: usize = 128;
/// Bytes that a batch of a small request may have.
const EXPANDED_BYTES: usize = 1024 * 1024;
/// Most bytes of the batches of a stream for each byte of a large request, whose batches are more than one.
const LARGE_EXPANSION_MAX: usize = 2;

/// The names of repeated fields: of a request, of a resource in it, and of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExportFields {
    pub(crate) resources: &'static str,
    pub(crate) scopes: &'static str,
    pub(crate) items: &'static str,
}

/// The message of a resource in an export, such as `ResourceSpans`.
pub(crate) trait ResourceItems: 'static {
    /// Where its items are, in errors.
    const FIELDS: ExportFields;

    /// How many are rejected with an encoded item: log records, data points or spans.
    fn count(item: &[u8]) -> u64;

    /// Adds the records of an encoded item.
    fn add<'a>(item: &'a [u8], place: ItemPlace, encoder: &mut ExportEncoder<'a>);
}

/// Where an item is in a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemPlace {
    fields: ExportFields,
    resource: usize,
    scope: usize,
    item: usize,
}

impl fmt::Display for ItemPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExportFields { resources, scopes, items } = self.fields;
        let Self { resource, scope, item, .. } = self;
        write!(out, "{resources}[{resource}].{scopes}[{scope}].{items}[{item}]")
    }
}

/// An encoded resource of a request, with its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EncodedResource {
    /// Its index in the request.
    index: usize,
    bytes: Bytes,
}

/// The resources of a request, by stream.
pub(crate) type ResourcesByStream = BTreeMap<String, Vec<EncodedResource>>;

/// Distributes resources to streams; `stream_of` names that of an encoded `Resource`.
///
/// # Errors
/// A request that is malformed around its items: nothing of it can be stored.
pub(crate) fn resources_by_stream<T: ResourceItems>(
    resources: &[Bytes],
    stream_of: impl Fn(&[u8]) -> String,
) -> Result<ResourcesByStream, RecordError> {
    let mut streams = ResourcesByStream::new();
    for (index, bytes) in resources.iter().enumerate() {
        let at = || format!("{}[{index}]", T::FIELDS.resources);
        let found =
            check_structure::<T>(bytes).map_err(|error| RecordError::malformed(&at(), error))?;
        // A resource without items creates no stream.
        if let Some(resource) = found {
            let encoded = EncodedResource { index, bytes: bytes.clone() };
            streams.entry(stream_of(resource)).or_default().push(encoded);
        }
    }
    Ok(streams)
}

/// The `Resource` of a message in which everything around the items is well-formed; none where there is no item.
fn check_structure<T: ResourceItems>(bytes: &[u8]) -> Result<Option<&[u8]>, MalformedMessage> {
    let (mut resource, mut has_items): (&[u8], _) = (&[], false);
    let mut fields = MessageReader::new(bytes);
    while let Some((number, value)) = fields.next_field()? {
        match number {
            1 => resource = value.bytes()?,
            2 => {
                let mut fields = MessageReader::new(value.bytes()?);
                while let Some((number, value)) = fields.next_field()? {
                    if let 1 | 2 = number {
                        let found = value.bytes()?;
                        has_items = has_items || number == 2 && T::count(found) > 0;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(has_items.then_some(resource))
}

/// The bytes of resources in their request.
pub(crate) fn request_bytes(resources: &[EncodedResource]) -> usize {
    resources.iter().map(|resource| resource.bytes.len()).sum()
}

/// What becomes of the resources of one stream.
#[derive(Debug)]
pub(crate) struct ExportedBatches {
    /// In their order, none without a valid item.
    pub(crate) batches: Vec<EncodedBatch>,
    /// On how many days (UTC) their records are.
    pub(crate) days: usize,
    /// What is charged for them, to be kept until they are stored or dropped.
    pub(crate) charged: Option<Share>,
    /// What they leave out.
    pub(crate) rejected: Rejected,
}

/// The batches of the resources of one stream, which [`resources_by_stream`] returned.
///
/// # Errors
/// Their bytes beyond those of the request could not be charged. Nothing of it should be stored.
pub(crate) fn batches_of_resources<T: ResourceItems>(
    resources: &[EncodedResource],
    times: RecordTimes,
    room: BatchRoom,
) -> Result<ExportedBatches, Fault> {
    let request_bytes = request_bytes(resources);
    let expanded = request_bytes.saturating_mul(EXPANSION_MAX).saturating_add(EXPANDED_BYTES);
    let most = BATCH_BYTES_MAX.max(request_bytes.saturating_mul(LARGE_EXPANSION_MAX));
    let room = BatchRoom { bytes: room.bytes.min(expanded).min(most), ..room };
    let mut encoder = ExportEncoder::new(times, room, request_bytes);
    resources.iter().for_each(|resource| encoder.add_resource::<T>(resource));
    let EncodedBatches { batches, days, charged } = encoder.batch.finish()?;
    Ok(ExportedBatches { batches, days, charged, rejected: encoder.rejected })
}

/// The batches of an export, and what they leave out.
pub(crate) struct ExportEncoder<'a> {
    pub(super) times: RecordTimes,
    pub(super) checker: RecordChecker<'a>,
    pub(super) batch: BatchEncoder,
    /// How many attributes of the present resource are left out. Its records count them.
    pub(super) left_out: u64,
    pub(super) rejected: Rejected,
}

impl<'a> ExportEncoder<'a> {
    /// Of a request with so many bytes.
    pub(super) fn new(times: RecordTimes, room: BatchRoom, request_bytes: usize) -> Self {
        Self {
            times,
            checker: RecordChecker::new(times),
            batch: BatchEncoder::new(times.received, room, request_bytes),
            left_out: 0,
            rejected: Rejected::default(),
        }
    }

    fn add_resource<T: ResourceItems>(&mut self, resource: &'a EncodedResource) {
        let EncodedResource { index, bytes } = resource;
        let origin = fields_of(bytes, 1).last().unwrap_or_default();
        let leniency = Leniency::InvalidParts;
        match admit_origin(&mut self.checker, OriginKind::Resource, origin, leniency) {
            Ok(resource) => {
                self.left_out = resource.left_out;
                self.batch.begin_resource(&resource.message);
            }
            Err(error) => {
                let items = fields_of(bytes, 2).flat_map(|scope| fields_of(scope, 2));
                let at = format!("{}[{index}].resource", T::FIELDS.resources);
                return self.rejected.add(items.map(T::count).sum(), &at, &error);
            }
        }
        for (at, scope) in fields_of(bytes, 2).enumerate() {
            self.add_scope::<T>(scope, *index, at);
        }
    }

    fn add_scope<T: ResourceItems>(&mut self, bytes: &'a [u8], resource: usize, scope: usize) {
        let fields = T::FIELDS;
        let origin = fields_of(bytes, 1).last().unwrap_or_default();
        let leniency = Leniency::InvalidParts;
        match admit_origin(&mut self.checker, OriginKind::Scope, origin, leniency) {
            Ok(scope) => self.batch.begin_group(&scope.message),
            Err(error) => {
                let ExportFields { resources, scopes, .. } = fields;
                let at = format!("{resources}[{resource}].{scopes}[{scope}].scope");
                return self.rejected.add(fields_of(bytes, 2).map(T::count).sum(), &at, &error);
            }
        }
        for (item, bytes) in fields_of(bytes, 2).enumerate() {
            T::add(bytes, ItemPlace { fields, resource, scope, item }, self);
        }
    }
}

/// The fields `number` of a message whose structure was checked.
fn fields_of(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    entries_of(message, number).map_while(Result::ok)
}
