//! Appending records to a stream.

use std::sync::Arc;

use trestle_model::fault::{Fault, Reason, Violations};
use trestle_proto::log::v1 as proto;

use super::{LogApi, parse};
use crate::{
    append::NewBatch, authorize::LogAccess, batch::batch_of_append, error::LogError,
    names::StreamName, streams::OpenStream,
};

/// Most records of an append.
const RECORDS_MAX: usize = 10_000;

/// A parsed append.
pub(super) struct PreparedAppend {
    stream: Arc<OpenStream>,
    batch: NewBatch,
}

impl LogApi {
    pub(super) async fn append(
        &self,
        access: &LogAccess,
        request: proto::AppendRecordsRequest,
    ) -> Result<proto::AppendRecordsResponse, Fault> {
        let prepared = self.prepare(access, request).await?;
        self.commit(prepared).await
    }

    /// Parses an append and opens its stream.
    ///
    /// # Errors
    /// Every violated rule, or that the stream does not exist.
    pub(super) async fn prepare(
        &self,
        access: &LogAccess,
        request: proto::AppendRecordsRequest,
    ) -> Result<PreparedAppend, Fault> {
        let mut violations = Violations::default();
        let name = StreamName::parse(request.stream.clone(), "stream", &mut violations);
        let request_id = parse::request_id(request.request_id.clone(), &mut violations);
        let count = request.records.len();
        if !(1..=RECORDS_MAX).contains(&count) {
            let rule = format!("must have 1 to 10,000: count=`{count}`");
            violations.push(Reason::OutOfRangeInput, "records", rule);
        }
        let name = parse::finish(violations, name)?;
        let stream = self.logs.open(access.account_of(&name)?, &name).await?;
        let expected_next_sequence = request.expected_next_sequence;
        let clocks = self.logs.clocks();
        let times = clocks.record_times(stream.record.settings.retention);
        let encoded = batch_of_append(&request, times).map_err(|error| match error.reason {
            Reason::RecordTimeOutOfRange if clocks.disagree() => {
                LogError::ClocksDisagree { offset_ms: clocks.offset_ms }.into()
            }
            _ => Fault::from(error),
        })?;
        let batch = NewBatch {
            stream: stream.record.id,
            name,
            parts: vec![encoded],
            request_id,
            expected_next_sequence,
            charged: None,
        };
        Ok(PreparedAppend { stream, batch })
    }

    /// Appends. The change is handed to the store when the future is polled first.
    ///
    /// # Errors
    /// As [`crate::append::append`].
    pub(super) async fn commit(
        &self,
        prepared: PreparedAppend,
    ) -> Result<proto::AppendRecordsResponse, Fault> {
        let PreparedAppend { stream, batch } = prepared;
        let appended = self.logs.append(vec![(stream, batch)]).await?;
        let [appended] = appended.as_slice() else {
            return Err(Fault::new(Reason::InternalError, "an append has no outcome"));
        };
        Ok(proto::AppendRecordsResponse {
            first_sequence: appended.first_sequence,
            count: appended.count,
            is_repeated: appended.is_repeated,
        })
    }
}
