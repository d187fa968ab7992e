//! Batches of the calls of Trestle: all records of a request, or none.

use trestle_model::fault::Reason;
use trestle_proto::{log::v1::AppendRecordsRequest, wire::put_bytes};

use super::{
    EncodedBatch, RecordError, RecordTimes,
    check::{OriginKind, RecordChecker},
    encode::{BatchEncoder, BatchRoom},
    repair::{Leniency, admit_origin, admit_record},
    rules::FRAME_BYTES_MAX,
};

/// Most records of a request.
const RECORDS_MAX: usize = 10_000;

/// The batch of an append.
///
/// # Errors
/// The first rule that a record, the resource or the scope violates, with its path such as `records[3].trace_id`.
pub(crate) fn batch_of_append(
    request: &AppendRecordsRequest,
    times: RecordTimes,
) -> Result<EncodedBatch, RecordError> {
    let out_of_range = || RecordError {
        reason: Reason::OutOfRangeInput,
        field: "records".to_owned(),
        rule: format!("has {} entries, not 1 to {RECORDS_MAX}", request.records.len()),
    };
    if request.records.len() > RECORDS_MAX {
        return Err(out_of_range());
    }
    let mut resource = Vec::new();
    request.resource.iter().for_each(|entry| put_bytes(&mut resource, 1, entry));
    let scope = request.scope.as_deref().unwrap_or_default();

    let (mut checker, leniency) = (RecordChecker::new(times), Leniency::RepeatedKeys);
    let resource = admit_origin(&mut checker, OriginKind::Resource, &resource, leniency);
    let resource = resource.map_err(|error| error.in_resource())?;
    let scope = admit_origin(&mut checker, OriginKind::Scope, scope, leniency);
    let scope = scope.map_err(|error| error.within("scope"))?;
    let bytes = request.records.iter().map(|record| record.len() + FRAME_BYTES_MAX).sum();
    let mut batch = BatchEncoder::new(times.received, BatchRoom::default(), bytes);
    batch.begin_resource(&resource.message);
    batch.begin_group(&scope.message);
    for (index, record) in request.records.iter().enumerate() {
        let added = admit_record(&mut checker, record, leniency, resource.left_out)
            .and_then(|admitted| batch.add(&admitted));
        added.map_err(|error| error.within(&format!("records[{index}]")))?;
    }
    // All are in one: no request is larger.
    let batches = batch.finish().map(|encoded| encoded.batches).unwrap_or_default();
    batches.into_iter().next().ok_or_else(out_of_range)
}

impl RecordError {
    /// The error of a resource, whose attributes are a map in the request.
    fn in_resource(self) -> Self {
        Self { field: "resource".to_owned(), ..self }
    }
}
