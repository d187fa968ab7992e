//! The quotas of accounts on bytes and blobs, in front of the services that store them.
//!
//! A call that adds bytes is rejected while its account has used its quota, and so is a stream that adds bytes, at its
//! next part. What passes counts until the next measurement. Reads, deletes and calls that hold what is stored, such as
//! leases, receives and changes of settings, always pass. [`measured`] is the task that measures.

use std::{convert::Infallible, future::Future};

use opentelemetry::{KeyValue, metrics::Meter};
use tonic::Status;
use tower::Service;
use trestle_identity::caller::Caller;
use trestle_model::fault::Fault;
use trestle_rpc::layer::body_wrapper::{BodyPart, BodyWrapper, Next, wrap_body};
use trestle_rpc::layer::middleware::{Middleware, MiddlewareLayer};
use trestle_rpc::layer::{Request, Response, ResponseFuture, error_response};
use trestle_rpc::quota::{
    MEASURE_EVERY, QuotaUsage, StorageLimit, StorageMeter, StorageOwner, StorageQuotas,
};
use trestle_rpc::semconv;
use trestle_rpc::status::{DOMAIN, IntoStatus as _};
use trestle_runtime::task::Task;

/// How many times as long as a measurement takes is waited before the next: it may use a twentieth of the time.
const PAUSE_FACTOR: u32 = 20;

/// Most accounts that metrics name.
const ACCOUNTS_MAX: usize = 100;

/// See the module.
pub(crate) type StorageQuotaLayer = MiddlewareLayer<StorageQuotaCheck>;

/// The layer that checks the calls of one service.
#[derive(Debug, Clone)]
pub(crate) struct StorageQuotaCheck {
    quotas: StorageQuotas,
    owner: StorageOwner,
}

/// The layer of a service.
pub(crate) fn layer(quotas: &StorageQuotas, owner: StorageOwner) -> StorageQuotaLayer {
    MiddlewareLayer(StorageQuotaCheck { quotas: quotas.clone(), owner })
}

/// How a method adds to what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adds {
    /// One message, which is rejected as a whole.
    Message,
    /// One message, which the service rejects where it adds bytes; it may only remove or hold something.
    MayBe,
    /// Messages of a stream, each of which may be rejected.
    Stream,
    /// One message, that makes a blob.
    Blob,
    /// Messages of a stream, that makes a blob.
    BlobStream,
}

impl Adds {
    /// None for a method that adds nothing, or little to what exists: settings, policies, tags and metadata.
    fn of(path: &str) -> Option<Self> {
        Some(match path.rsplit('/').next()? {
            "InsertEntity" | "UpdateEntity" | "UpsertEntity" | "CreateTable" | "SendMessages"
            | "CreateQueue" | "CreateContainer" | "SnapshotBlob" | "CreateStream"
            | "AppendRecords" | "Export" => Self::Message,
            "ExecuteBatch" | "UpdateMessage" => Self::MayBe,
            "ImportEntities" | "StageBlock" | "AppendBlock" | "WritePages" | "AppendStream" => {
                Self::Stream
            }
            "CommitBlocks" | "CreateAppendBlob" | "CreatePageBlob" | "CopyBlob" => Self::Blob,
            "WriteBlob" => Self::BlobStream,
            _ => return None,
        })
    }

    fn is_stream(self) -> bool {
        matches!(self, Self::Stream | Self::BlobStream)
    }

    fn makes_blob(self) -> bool {
        matches!(self, Self::Blob | Self::BlobStream)
    }

    /// Whether the account may make the call.
    fn check(self, meter: &StorageMeter) -> Result<(), Fault> {
        if self.makes_blob() {
            meter.check(StorageLimit::Blobs)?;
        }
        if self == Self::MayBe { Ok(()) } else { meter.check(StorageLimit::StoredBytes) }
    }
}

impl Middleware for StorageQuotaCheck {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let Some((adds, meter)) = self.find(&request) else { return inner.call(request) };
        if let Err(fault) = adds.check(&meter) {
            return Box::pin(async move { Ok(error_response(fault)) });
        }
        let metered = MeteredBody { meter: meter.clone(), may_reject: adds.is_stream() };
        let answer = inner.call(request.map(|body| wrap_body(body, metered)));
        if !adds.makes_blob() {
            return answer;
        }
        Box::pin(async move {
            let answer = answer.await?;
            // A failed call has its code in the headers.
            if !answer.headers().contains_key(Status::GRPC_STATUS) {
                meter.add(StorageLimit::Blobs, 1);
            }
            Ok(answer)
        })
    }
}

impl StorageQuotaCheck {
    /// How a call adds to what its account stores, where a quota needs it.
    fn find(&self, request: &Request) -> Option<(Adds, StorageMeter)> {
        if !self.quotas.has_meters() {
            return None;
        }
        let adds = Adds::of(request.uri().path())?;
        let caller = Caller::of_call(request)?;
        Some((adds, self.quotas.meter(self.owner, &caller.account)?))
    }
}

/// The body of a request, whose bytes count as stored. A call that the service rejects counts too, until the next
/// measurement.
struct MeteredBody {
    meter: StorageMeter,
    /// Whether a part is rejected once the quota is used: that of a stream.
    may_reject: bool,
}

impl BodyWrapper for MeteredBody {
    fn map_part(&mut self, part: BodyPart) -> Next {
        let Some(Ok(frame)) = &part else { return Next::Part(part) };
        let Some(data) = frame.data_ref() else { return Next::Part(part) };
        if self.may_reject
            && let Err(fault) = self.meter.check(StorageLimit::StoredBytes)
        {
            return Next::Part(Some(Err(fault.into_status(DOMAIN))));
        }
        self.meter.add(StorageLimit::StoredBytes, data.len() as u64);
        Next::Part(part)
    }
}

/// Reports the usage of quotas beside them, of the first accounts by name.
pub(crate) fn observe(quotas: &StorageQuotas, meter: &Meter) {
    for (metric, value) in [
        (semconv::QUOTA_USAGE, (|usage| usage.used) as fn(QuotaUsage) -> u64),
        (semconv::QUOTA_LIMIT, |usage| usage.max),
    ] {
        let quotas = quotas.clone();
        let gauge = meter.u64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            for (account, usage) in quotas.every_usage().into_iter().take(ACCOUNTS_MAX) {
                for usage in usage {
                    let account = KeyValue::new(semconv::ACCOUNT, account.as_str().to_owned());
                    let quota = KeyValue::new(semconv::QUOTA, usage.limit.label());
                    observer.observe(value(usage), &[account, quota]);
                }
            }
        });
        let _ = gauge.build();
    }
}

/// The name of the tasks that measure: one series of failures for all roles.
const TASK: &str = "usage";

/// A task that measures what accounts store in a service, at most every [`MEASURE_EVERY`], and less often where that
/// takes long.
pub(crate) fn measured<A>(measure: impl Fn() -> A + Send + 'static) -> Task
where
    A: Future<Output = Result<(), Fault>> + Send + 'static,
{
    let task = Task::new(TASK, MEASURE_EVERY, move || {
        let measured = measure();
        async move {
            measured.await?;
            Ok(false)
        }
    });
    task.resting(PAUSE_FACTOR)
}

#[cfg(test)]
mod tests;
