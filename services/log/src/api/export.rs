//! What exports of logs, of metrics and of traces share: the stream that a request names, and one commit for all its
//! streams.

use std::sync::Arc;

use bytes::Bytes;
use tonic::{Request, metadata::MetadataMap};
use trestle_identity::caller::Caller;
use trestle_model::fault::{Fault, Reason, Violations};
use trestle_rpc::layer::shares::{Holder, Share};

use super::LogApi;
use crate::{
    append::NewBatch,
    authorize::{LogAccess, LogNeed},
    batch::{
        BatchRoom, DerivedBytes, EncodedBatch, EncodedResource, ExportedBatches, RecordTimes,
        Rejected, ResourceItems, ResourcesByStream, batches_of_resources, request_bytes,
        resources_by_stream, stream_of_resource,
    },
    error::LogError,
    names::{STREAM_NAME_CHARS_MAX, StreamName},
    streams::OpenStream,
    threads,
};

/// The metadata that names the stream of all records of a request.
const STREAM_HEADER: &str = "trestle-log-stream";
/// Most streams of a request: their batches are committed at once.
const STREAMS_MAX: usize = 1_000;
/// Most tries to append a request whose streams are deleted meanwhile.
const TRIES_MAX: usize = 3;
/// Most bytes of the batches of a request: the numbers of a point repeat its attributes, and the largest request has
/// 64 MiB.
const REQUEST_BYTES_MAX: usize = 96 * 1024 * 1024;

/// Most segments that a request may begin, as pairs of a stream and a day (UTC): each is an object when it is sealed.
/// Two for each stream, of a request at midnight.
const STREAM_DAYS_MAX: usize = 2 * STREAMS_MAX;
/// Bytes of a request up to which a stream is encoded by the thread of the call, since that takes at most milliseconds.
const INLINE_BYTES_MAX: usize = 16 * 1024;

/// Makes the batches of the resources of a stream, and reports what it leaves out.
pub(super) trait EncodeStream:
    Fn(&[EncodedResource], RecordTimes, BatchRoom) -> Result<ExportedBatches, Fault>
    + Send
    + Sync
    + 'static
{
}

impl<F> EncodeStream for F where
    F: Fn(&[EncodedResource], RecordTimes, BatchRoom) -> Result<ExportedBatches, Fault>
        + Send
        + Sync
        + 'static
{
}

/// Encodes a stream, beside the threads of calls where that takes long.
async fn encode_stream(
    encode: &Arc<impl EncodeStream>,
    resources: &[EncodedResource],
    times: RecordTimes,
    room: BatchRoom,
) -> Result<ExportedBatches, LogError> {
    if request_bytes(resources) <= INLINE_BYTES_MAX {
        return Ok(encode(resources, times, room)?);
    }
    let (encode, resources) = (Arc::clone(encode), resources.to_vec());
    Ok(threads::export(move || encode(&resources, times, room)).await??)
}

/// A request with what applies to all of it.
pub(super) struct EnteredExport<T> {
    pub(super) access: LogAccess,
    pub(super) message: T,
    named: Option<StreamName>,
}

impl<T> EnteredExport<T> {
    /// # Errors
    /// A caller without the permission, and a name of a stream that violates the rules.
    pub(super) fn of(request: Request<T>) -> Result<Self, Fault> {
        let access = LogAccess::new(Caller::of(&request)?, LogNeed::AppendOrCreate)?;
        let named = named_stream(request.metadata())?;
        Ok(Self { access, message: request.into_inner(), named })
    }

    /// The stream of an encoded resource: the one that the request names, or else that of its service, with `suffix`.
    pub(super) fn stream_of(&self, suffix: &str) -> impl Fn(&[u8]) -> String {
        move |resource| match &self.named {
            Some(name) => name.as_str().to_owned(),
            None => {
                let mut name = stream_of_resource(resource);
                name.truncate(STREAM_NAME_CHARS_MAX - suffix.len());
                name + suffix
            }
        }
    }
}

/// The stream that the metadata of a request names; none where it does not.
///
/// # Errors
/// A name that violates the rules.
fn named_stream(metadata: &MetadataMap) -> Result<Option<StreamName>, Fault> {
    let Some(name) = metadata.get(STREAM_HEADER) else { return Ok(None) };
    let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
    let mut violations = Violations::default();
    let name = StreamName::parse(name, STREAM_HEADER, &mut violations);
    violations.check(name)
}

/// Checks how many streams a request has records of.
///
/// # Errors
/// Too many.
fn check_streams(count: usize, field: &str) -> Result<(), Fault> {
    if count <= STREAMS_MAX {
        return Ok(());
    }
    let rule = format!("must be of at most {STREAMS_MAX} streams: count=`{count}`");
    Err(Fault::violation(Reason::OutOfRangeInput, field, rule))
}

/// The batch of an export to a stream.
fn export_batch(
    stream: &Arc<OpenStream>,
    parts: Vec<EncodedBatch>,
    charged: Option<Share>,
) -> NewBatch {
    NewBatch {
        stream: stream.record.id,
        name: stream.name.clone(),
        parts,
        request_id: None,
        expected_next_sequence: None,
        charged: charged.map(Arc::new),
    }
}

impl LogApi {
    /// Stores the valid items of the encoded resources of a request, all or none. Returns what was rejected.
    ///
    /// # Errors
    /// A request that is malformed around its items, too many streams, and a failed append.
    pub(super) async fn export_resources<T: ResourceItems, M>(
        &self,
        export: &EnteredExport<M>,
        resources: &[Bytes],
        suffix: &str,
    ) -> Result<Rejected, Fault> {
        let by_stream = resources_by_stream::<T>(resources, export.stream_of(suffix))?;
        check_streams(by_stream.len(), T::FIELDS.resources)?;
        for name in by_stream.keys() {
            export.access.account_of(&StreamName::stored(name.clone()))?;
        }
        self.export_streams(&export.access, by_stream, batches_of_resources::<T>).await
    }

    /// Appends the batches that `encode` makes of the resources of each stream, all or none. Returns what was rejected.
    ///
    /// # Errors
    /// A failed append.
    pub(super) async fn export_streams(
        &self,
        access: &LogAccess,
        by_stream: ResourcesByStream,
        encode: impl EncodeStream,
    ) -> Result<Rejected, Fault> {
        let (encode, mut tries) = (Arc::new(encode), 0);
        loop {
            tries += 1;
            match self.try_export(access, &by_stream, &encode).await {
                // Deleted behind its opening. Nothing was written, and the next try creates it again.
                Err(LogError::StreamNotFound(_)) if tries < TRIES_MAX => {}
                Err(LogError::StreamNotFound(name)) => {
                    return Err(LogError::KeepsChanging(name).into());
                }
                exported => return Ok(exported?),
            }
        }
    }

    /// The same, once.
    ///
    /// # Errors
    /// [`LogError::StreamNotFound`] where a stream is deleted meanwhile, or a failed append.
    async fn try_export(
        &self,
        access: &LogAccess,
        by_stream: &ResourcesByStream,
        encode: &Arc<impl EncodeStream>,
    ) -> Result<Rejected, LogError> {
        let (mut batches, mut by_stream_rejected) = (Vec::new(), Vec::new());
        let holder = Holder::account_alone(access.account().as_str());
        let (mut bytes_left, mut days_left) = (REQUEST_BYTES_MAX, STREAM_DAYS_MAX);
        let clocks = self.logs.clocks();
        for (name, resources) in by_stream {
            let name = StreamName::stored(name.clone());
            let account = access.account_of(&name)?;
            let found = self.logs.find(account, &name).await?;
            let retention = found.as_ref().and_then(|stream| stream.record.settings.retention);
            let derived = DerivedBytes::new(Arc::clone(&self.logs.derived_bytes), holder);
            let room = BatchRoom { bytes: bytes_left, days: days_left, derived: Some(derived) };
            let times = clocks.record_times(retention);
            let exported = encode_stream(encode, resources, times, room).await?;
            let ExportedBatches { batches: parts, days, charged, rejected: left_out } = exported;
            if left_out.has_time_out_of_range && clocks.disagree() {
                // A client takes a partial success for the end of it.
                return Err(LogError::ClocksDisagree { offset_ms: clocks.offset_ms });
            }
            if left_out.count > 0 {
                by_stream_rejected.push((name.clone(), left_out));
            }
            if parts.is_empty() {
                continue;
            }
            bytes_left -= parts.iter().map(|part| part.bytes.len()).sum::<usize>().min(bytes_left);
            days_left = days_left.saturating_sub(days);
            let stream = match found {
                Some(stream) => stream,
                // After its records: a stream without one is not created.
                None => {
                    access.check_create()?;
                    self.logs.open_or_create(account, &name).await?
                }
            };
            let batch = export_batch(&stream, parts, charged);
            batches.push((stream, batch));
        }
        self.logs.append(batches).await?;
        let mut rejected = Rejected::default();
        for (name, left_out) in &by_stream_rejected {
            self.rejections.report(name.as_str(), left_out);
            rejected.merge(left_out);
        }
        Ok(rejected)
    }
}
