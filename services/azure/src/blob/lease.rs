//! Leases of containers and blobs.

use http::{Response, StatusCode};
use prost_types::Duration;
use tonic::body::Body;
use trestle_model::fault::Fault;
use trestle_proto::blob::v1 as proto;

use super::{
    conditions::{conditions, container_conditions, lease_id},
    containers,
    header::{
        self as names, LEASE_ACTION, LEASE_BREAK_PERIOD, LEASE_DURATION, LEASE_ID, LEASE_TIME,
        PROPOSED_LEASE_ID, set_some,
    },
    operation::{BlobPath, OnBlob, OnContainer},
    properties::set_etag,
};
use crate::{error::RestError, grpc_call::GrpcCall, head::RequestHead, reply};

/// The duration of a lease without expiry.
const INFINITE: &str = "-1";

/// What a request does with a lease.
enum StatedLeaseAction {
    Acquire(proto::AcquireLease),
    Renew(proto::RenewLease),
    Change(proto::ChangeLease),
    Release(proto::ReleaseLease),
    Break(proto::BreakLease),
}

/// The action of one of the two requests.
macro_rules! action_of {
    ($module:ident, $action:expr) => {
        match $action {
            StatedLeaseAction::Acquire(action) => proto::$module::Action::Acquire(action),
            StatedLeaseAction::Renew(action) => proto::$module::Action::Renew(action),
            StatedLeaseAction::Change(action) => proto::$module::Action::Change(action),
            StatedLeaseAction::Release(action) => proto::$module::Action::Release(action),
            StatedLeaseAction::Break(action) => proto::$module::Action::Break(action),
        }
    };
}

impl StatedLeaseAction {
    /// The action of a request.
    ///
    /// # Errors
    /// A missing or malformed header.
    fn of(head: &RequestHead) -> Result<Self, Fault> {
        let action =
            names::text(head, &LEASE_ACTION).ok_or_else(|| names::required(&LEASE_ACTION))?;
        let proposed_lease_id = names::text(head, &PROPOSED_LEASE_ID).unwrap_or_default();
        let lease_id = || match lease_id(head) {
            id if id.is_empty() => Err(names::required(&LEASE_ID)),
            id => Ok(id),
        };
        Ok(match action.to_ascii_lowercase().as_str() {
            "acquire" => Self::Acquire(proto::AcquireLease {
                duration: acquired_for(head)?,
                proposed_lease_id: proposed_lease_id.to_owned(),
            }),
            "renew" => Self::Renew(proto::RenewLease { lease_id: lease_id()? }),
            "change" if proposed_lease_id.is_empty() => {
                return Err(names::required(&PROPOSED_LEASE_ID));
            }
            "change" => Self::Change(proto::ChangeLease {
                lease_id: lease_id()?,
                proposed_lease_id: proposed_lease_id.to_owned(),
            }),
            "release" => Self::Release(proto::ReleaseLease { lease_id: lease_id()? }),
            "break" => Self::Break(proto::BreakLease {
                break_period: names::number(head, &LEASE_BREAK_PERIOD)?.map(seconds),
            }),
            _ => {
                let rule = "must be acquire, renew, change, release or break";
                return Err(names::invalid(&LEASE_ACTION, action, rule));
            }
        })
    }

    /// The status of the response.
    fn status(&self) -> StatusCode {
        match self {
            Self::Acquire(_) => StatusCode::CREATED,
            Self::Renew(_) | Self::Change(_) | Self::Release(_) => StatusCode::OK,
            Self::Break(_) => StatusCode::ACCEPTED,
        }
    }
}

/// The duration of a new lease; none without expiry.
fn acquired_for(head: &RequestHead) -> Result<Option<Duration>, Fault> {
    match names::text(head, &LEASE_DURATION) {
        None => Err(names::required(&LEASE_DURATION)),
        Some(INFINITE) => Ok(None),
        Some(_) => Ok(names::number(head, &LEASE_DURATION)?.map(seconds)),
    }
}

/// Seconds beyond what a duration has are as wrong as the most that it has.
fn seconds(seconds: u64) -> Duration {
    Duration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 }
}

/// Lease Blob.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn on_blob(
    path: BlobPath,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    if let Some(value) = head.params.get("snapshot") {
        let rule = "must not be on a lease: a snapshot has none";
        let reason = trestle_model::fault::Reason::InvalidQueryParameterValue;
        return Err(RestError::of_parameter(reason, "snapshot", value, rule));
    }
    let action = StatedLeaseAction::of(head)?;
    let status = action.status();
    let is_break = matches!(action, StatedLeaseAction::Break(_));
    // The id of the lease is part of the action, and no condition.
    let of_action = |conditions| proto::BlobConditions { lease_id: String::new(), ..conditions };
    let request = proto::LeaseBlobRequest {
        container: path.container,
        blob: path.blob,
        action: Some(action_of!(lease_blob_request, action)),
        conditions: conditions(head)?.map(of_action),
    };
    let response: proto::LeaseBlobResponse = call.unary(OnBlob::Lease.path(), &request).await?;
    let mut answer = leased(status, &response.lease_id, response.remaining, is_break);
    set_etag(answer.headers_mut(), &response.blob.unwrap_or_default());
    Ok(answer)
}

/// Lease Container.
///
/// # Errors
/// Malformed headers, or a failed call.
pub(super) async fn on_container(
    container: String,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let action = StatedLeaseAction::of(head)?;
    let status = action.status();
    let is_break = matches!(action, StatedLeaseAction::Break(_));
    let of_action =
        |conditions| proto::ContainerConditions { lease_id: String::new(), ..conditions };
    let request = proto::LeaseContainerRequest {
        container,
        action: Some(action_of!(lease_container_request, action)),
        conditions: container_conditions(head)?.map(of_action),
    };
    let method = OnContainer::Lease.path();
    let response: proto::LeaseContainerResponse = call.unary(method, &request).await?;
    let mut answer = leased(status, &response.lease_id, response.remaining, is_break);
    containers::set_etag(answer.headers_mut(), &response.container.unwrap_or_default());
    Ok(answer)
}

fn leased(
    status: StatusCode,
    lease_id: &str,
    remaining: Option<Duration>,
    is_break: bool,
) -> Response<Body> {
    let mut answer = reply::empty(status);
    let headers = answer.headers_mut();
    if is_break {
        let remaining = remaining.unwrap_or_default();
        // Whole seconds: with fewer the client would come back before the end.
        let seconds = remaining.seconds + i64::from(remaining.nanos > 0);
        headers.insert(LEASE_TIME, seconds.into());
    } else {
        set_some(headers, LEASE_ID, lease_id);
    }
    answer
}
