//! Operations on an account: its queues, and the settings of the service.

use bytes::Bytes;
use http::{Response, StatusCode};
use tonic::body::Body;
use trestle_identity::{credentials::Identity, spec::QUEUE};
use trestle_proto::queue::v1 as proto;

use super::operation::{ListPage, OnAccount};
use crate::{delegation, error::RestError, grpc_call::GrpcCall, head::RequestHead, reply, xml};

/// Performs an operation.
///
/// # Errors
/// A malformed body, or a failed call.
pub(super) async fn perform(
    operation: OnAccount,
    head: &RequestHead,
    body: &Bytes,
    call: GrpcCall,
    identity: &Identity,
) -> Result<Response<Body>, RestError> {
    let path = operation.path();
    match operation {
        OnAccount::ListQueues(page) => list(path, &page, head, call).await,
        OnAccount::GetProperties => {
            let request = proto::GetServicePropertiesRequest {};
            let answer: proto::GetServicePropertiesResponse = call.unary(path, &request).await?;
            Ok(reply::xml(xml::write_properties(&answer.properties.unwrap_or_default())))
        }
        OnAccount::SetProperties => {
            let properties = Some(xml::read_properties(body)?);
            let request = proto::SetServicePropertiesRequest { properties };
            let _: proto::SetServicePropertiesResponse = call.unary(path, &request).await?;
            Ok(reply::empty(StatusCode::ACCEPTED))
        }
        OnAccount::GetDelegationKey => delegation::get_key(head, body, &call, identity, &QUEUE),
        OnAccount::GetStats => {
            let request = proto::GetServiceStatsRequest {};
            let _: proto::GetServiceStatsResponse = call.unary(path, &request).await?;
            Ok(reply::xml(xml::write_stats(&identity.clock.now().into())))
        }
    }
}

async fn list(
    path: &'static str,
    page: &ListPage,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let request = proto::ListQueuesRequest {
        prefix: page.prefix.clone().unwrap_or_default(),
        page_size: page.max_results.and_then(|max| i32::try_from(max).ok()),
        page_token: page.marker.clone().unwrap_or_default(),
    };
    let answer: proto::ListQueuesResponse = call.unary(path, &request).await?;
    Ok(reply::xml(xml::write_queues(&xml::Listing {
        echo: xml::Echo {
            endpoint: &head.base,
            prefix: page.prefix.as_deref(),
            marker: page.marker.as_deref(),
            max_results: page.max_results,
            ..xml::Echo::default()
        },
        has_metadata: page.has_metadata,
        queues: &answer.queues,
        next_marker: &answer.next_page_token,
    })))
}
