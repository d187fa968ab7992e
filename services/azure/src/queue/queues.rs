//! Operations on queues themselves.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use prost_types::FieldMask;
use tonic::body::Body;
use trestle_proto::queue::v1 as proto;

use super::operation::OnQueue;
use crate::{
    error::RestError,
    grpc_call::GrpcCall,
    head::RequestHead,
    metadata::{read_metadata, write_metadata},
    reply, xml,
};

/// The approximate number of messages of a queue, never too low.
const COUNT: HeaderName = HeaderName::from_static("x-ms-approximate-messages-count");

/// Performs an operation on the queue of this name.
///
/// # Errors
/// Malformed headers or a malformed body, or a failed call.
pub(super) async fn perform(
    name: String,
    operation: OnQueue,
    head: &RequestHead,
    body: &Bytes,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let path = operation.path();
    match operation {
        OnQueue::Create => {
            let queue = Some(queue_of(name, head, &call)?);
            let request = proto::CreateQueueRequest { queue };
            let answer: proto::CreateQueueResponse = call.unary(path, &request).await?;
            let is_new = answer.created;
            Ok(reply::empty(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT }))
        }
        OnQueue::Delete => {
            let request = proto::DeleteQueueRequest { queue: name };
            let _: proto::DeleteQueueResponse = call.unary(path, &request).await?;
            Ok(reply::empty(StatusCode::NO_CONTENT))
        }
        OnQueue::GetMetadata => {
            let request = proto::GetQueueRequest { queue: name };
            let answer: proto::GetQueueResponse = call.unary(path, &request).await?;
            Ok(metadata(answer))
        }
        OnQueue::SetMetadata => {
            let queue = Some(queue_of(name, head, &call)?);
            let update_mask = Some(FieldMask { paths: vec!["metadata".to_owned()] });
            let request = proto::UpdateQueueRequest { queue, update_mask };
            let _: proto::UpdateQueueResponse = call.unary(path, &request).await?;
            Ok(reply::empty(StatusCode::NO_CONTENT))
        }
        OnQueue::GetPolicies => {
            let request = proto::GetQueueAccessPoliciesRequest { queue: name };
            let answer: proto::GetQueueAccessPoliciesResponse = call.unary(path, &request).await?;
            Ok(reply::xml(xml::write_policies(&answer.policies)))
        }
        OnQueue::SetPolicies => {
            let policies = xml::read_policies(body)?;
            let request = proto::SetQueueAccessPoliciesRequest { queue: name, policies };
            let _: proto::SetQueueAccessPoliciesResponse = call.unary(path, &request).await?;
            Ok(reply::empty(StatusCode::NO_CONTENT))
        }
    }
}

/// A queue with the metadata of the request.
fn queue_of(name: String, head: &RequestHead, call: &GrpcCall) -> Result<proto::Queue, RestError> {
    let metadata = read_metadata(&head.headers, &call.extensions)?;
    Ok(proto::Queue { name, metadata, ..proto::Queue::default() })
}

fn metadata(found: proto::GetQueueResponse) -> Response<Body> {
    let count = found.stats.unwrap_or_default().approximate_message_count;
    let mut answer = reply::empty(StatusCode::OK);
    write_metadata(&found.queue.unwrap_or_default().metadata, &mut answer);
    answer.headers_mut().insert(COUNT, HeaderValue::from(count));
    answer
}
