//! Reading records by time, as a stream of responses.

use std::sync::Arc;

use trestle_model::fault::{Fault, Reason, Violations, quoted};
use trestle_model::page;
use trestle_proto::log::v1 as proto;
use trestle_rpc::call_statistics::StatisticsRecorder;
use trestle_rpc::response_stream::{self, ResponseStream};

use super::{LogApi, failed, parse};
use crate::{
    authorize::LogAccess,
    filter::LogFilter,
    read::{ReadPlan, RowPosition},
    record::RecordFields,
    row::RowPredicate,
    segment::SealedRow,
};

/// Most records of a response.
const ROWS_MAX: usize = 1000;
/// A response ends with the record that takes it to this many bytes; one record more is at most 1 MiB.
const BYTES_MAX: usize = 1024 * 1024;
/// Records of the first response: it is sent soon.
const FIRST_ROWS: usize = 100;

impl LogApi {
    pub(super) async fn read(
        &self,
        access: &LogAccess,
        request: proto::ReadRecordsRequest,
        recorder: StatisticsRecorder,
    ) -> Result<ResponseStream<proto::ReadRecordsResponse>, Fault> {
        let name = parse::stream_name(request.stream.clone())?;
        let stream = self.logs.open(access.account_of(&name)?, &name).await?;
        let (identity, plan) = plan(&request, stream.record.id.0)?;
        let mut position = plan.behind;
        let (_, rows) = self.logs.read(&stream, plan).await?;
        Ok(response_stream::spawn(|sender| async move {
            let (mut rows, mut rows_max) = (rows, FIRST_ROWS);
            while let Some(records) = rows.next(rows_max, BYTES_MAX).await.map_err(failed)? {
                position = records.last().map(|last| (last.time, last.sequence)).or(position);
                sender
                    .send(response(records, resume_token(identity, position), rows.cost()))
                    .await?;
                rows_max = ROWS_MAX;
            }
            let cost = rows.cost();
            recorder.record(|statistics| {
                statistics.scanned += cost.records_scanned;
                statistics.returned += cost.records_returned;
            });
            // The cost and the position of a read that ends without a record.
            sender.send(response(Vec::new(), resume_token(identity, position), cost)).await
        }))
    }
}

/// The identity of a read, for its resume tokens, and what it returns.
///
/// # Errors
/// Every violated rule.
fn plan(request: &proto::ReadRecordsRequest, stream: u64) -> Result<(u64, ReadPlan), Fault> {
    let mut violations = Violations::default();
    let times = parse::times(request.start_time, request.end_time, &mut violations);
    let is_backward = match request.direction() {
        proto::ReadDirection::Unspecified | proto::ReadDirection::Forward => false,
        proto::ReadDirection::Backward => true,
    };
    if proto::ReadDirection::try_from(request.direction).is_err() {
        let rule = format!("must be a direction: value=`{}`", request.direction);
        violations.push(Reason::InvalidInput, "direction", rule);
    }
    let fields = fields(request.fields.as_ref(), &mut violations);
    let identity = page::request_identity(&[
        b"records",
        &stream.to_be_bytes(),
        &times.start.to_be_bytes(),
        &times.end.to_be_bytes(),
        &[u8::from(is_backward)],
        request.filter.as_bytes(),
    ]);
    let behind = behind(&request.resume_token, identity, &mut violations);
    let predicate = predicate(&request.filter, &mut violations);
    let within = predicate.as_ref().map_or(0..u64::MAX, |predicate| predicate.times());
    let times = times.start.max(within.start)..times.end.min(within.end);
    let (limit, sequences) = (request.limit, 0..u64::MAX);
    let plan = ReadPlan { times, is_backward, behind, predicate, fields, limit, sequences };
    violations.check((identity, plan))
}

/// The predicate of a filter; none for the empty one.
pub(super) fn predicate(
    filter: &str,
    violations: &mut Violations,
) -> Option<Arc<dyn RowPredicate>> {
    let filter = LogFilter::parse(filter).unwrap_or_else(|error| {
        violations.push(Reason::InvalidInput, "filter", error.to_string());
        None
    });
    filter.map(|filter| Arc::new(filter) as _)
}

/// The fields of records that are returned.
pub(super) fn fields(
    mask: Option<&prost_types::FieldMask>,
    violations: &mut Violations,
) -> RecordFields {
    let paths = mask.map(|mask| mask.paths.as_slice()).unwrap_or_default();
    let fields = RecordFields::from_names(paths.iter().map(String::as_str));
    fields.unwrap_or_else(|name| {
        let rule = "must be fields of a record, such as `body` or `attributes`";
        let rule = format!("{rule}: value=`{}`", quoted(name));
        violations.push(Reason::InvalidInput, "fields", rule);
        RecordFields::ALL
    })
}

/// The token of a read that continues behind a position. A read that returned nothing continues where it began.
fn resume_token(identity: u64, position: Option<RowPosition>) -> String {
    let bytes =
        position.map(|(time, sequence)| [time.to_be_bytes(), sequence.to_be_bytes()].concat());
    page::encode(identity, &bytes.unwrap_or_default())
}

/// The position in a resume token; none where the request has no token, or that of a read that returned nothing.
fn behind(token: &str, identity: u64, violations: &mut Violations) -> Option<RowPosition> {
    if token.is_empty() {
        return None;
    }
    let position = page::decode(token, identity).map_err(|error| error.to_string());
    let position = position.and_then(|bytes| {
        if bytes.is_empty() {
            return Ok(None);
        }
        let (time, sequence) = bytes.split_first_chunk().ok_or("malformed")?;
        let sequence = sequence.try_into().map_err(|_| "malformed")?;
        Ok(Some((u64::from_be_bytes(*time), u64::from_be_bytes(sequence))))
    });
    position.unwrap_or_else(|rule| {
        violations.push(Reason::InvalidInput, "resume_token", rule);
        None
    })
}

fn response(
    records: Vec<SealedRow>,
    resume_token: String,
    cost: proto::LogReadCost,
) -> proto::ReadRecordsResponse {
    let records = records.into_iter().map(|row| row.record).collect();
    proto::ReadRecordsResponse { records, resume_token, cost: Some(cost) }
}
