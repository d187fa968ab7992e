//! Operations on messages.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use prost_types::Duration;
use tonic::{Code, Status, body::Body};
use trestle_model::fault::{Fault, Reason};
use trestle_proto::google::rpc::Status as ItemStatus;
use trestle_proto::queue::v1::{
    self as proto, outgoing_message, send_result::Outcome, update_message_request,
};

use super::operation::{MessageReceipt, OnMessages, TimeToLive};
use crate::{date, error::RestError, grpc_call::GrpcCall, reply, xml};

/// The new receipt of a message that was updated.
const POP_RECEIPT: HeaderName = HeaderName::from_static("x-ms-popreceipt");
/// When it becomes visible.
const TIME_NEXT_VISIBLE: HeaderName = HeaderName::from_static("x-ms-time-next-visible");

/// Longest duration that protobuf has: 10,000 years, which the year 9999 ends as it does every longer TTL.
const DURATION_SECONDS_MAX: i64 = 315_576_000_000;

/// Performs an operation on the messages of the queue of this name.
///
/// # Errors
/// A malformed body, or a failed call.
pub(super) async fn perform(
    queue: String,
    operation: OnMessages,
    body: &Bytes,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let path = operation.path();
    match operation {
        OnMessages::Send { visibility_timeout, time_to_live } => {
            let messages = vec![outgoing(body, visibility_timeout, time_to_live)?];
            let request = proto::SendMessagesRequest { queue, messages, ..Default::default() };
            let answer: proto::SendMessagesResponse = call.unary(path, &request).await?;
            sent(answer)
        }
        OnMessages::Receive { max, visibility_timeout } => {
            let (max_messages, visibility_timeout) = (max, visibility_timeout.map(seconds));
            let request = proto::ReceiveMessagesRequest {
                queue,
                max_messages,
                visibility_timeout,
                wait: None,
            };
            let answer: proto::ReceiveMessagesResponse = call.unary(path, &request).await?;
            Ok(reply::xml(xml::write_deliveries(&answer.deliveries)))
        }
        OnMessages::Peek { max } => {
            let request = proto::PeekMessagesRequest {
                queue,
                max_messages: max,
                ..proto::PeekMessagesRequest::default()
            };
            let answer: proto::PeekMessagesResponse = call.unary(path, &request).await?;
            Ok(reply::xml(xml::write_peeked(&answer.messages)))
        }
        OnMessages::Clear => {
            let request = proto::ClearMessagesRequest { queue };
            let _: proto::ClearMessagesResponse = call.unary(path, &request).await?;
            Ok(reply::empty(StatusCode::NO_CONTENT))
        }
        OnMessages::Update { message, visibility_timeout } => {
            // Without a body or a text in it, the text of the message is unchanged.
            let text = if body.is_empty() { None } else { xml::read_message(body)? };
            let request = proto::UpdateMessageRequest {
                queue,
                receipt: Some(message.into()),
                visibility_timeout: Some(seconds(visibility_timeout)),
                body: text.map(update_message_request::Body::Text),
            };
            let answer: proto::UpdateMessageResponse = call.unary(path, &request).await?;
            Ok(updated(&answer))
        }
        OnMessages::Delete { message } => {
            let request = proto::DeleteMessagesRequest { queue, receipts: vec![message.into()] };
            let answer: proto::DeleteMessagesResponse = call.unary(path, &request).await?;
            deleted(answer)
        }
    }
}

impl From<MessageReceipt> for proto::ReceiptRef {
    fn from(message: MessageReceipt) -> Self {
        let MessageReceipt { message_id, pop_receipt } = message;
        Self { message_id, pop_receipt }
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration { seconds, nanos: 0 }
}

fn outgoing(
    body: &Bytes,
    visibility_timeout: Option<i64>,
    time_to_live: Option<TimeToLive>,
) -> Result<proto::OutgoingMessage, RestError> {
    use outgoing_message::{Body, Expiration};
    let text = xml::read_message(body)?.ok_or_else(|| {
        let rule = "must have an element MessageText";
        Fault::violation(Reason::MissingRequiredXmlNode, "QueueMessage", rule)
    })?;
    let time_to_live = time_to_live.map(|time_to_live| match time_to_live {
        TimeToLive::Seconds(time_to_live) => {
            Expiration::TimeToLive(seconds(time_to_live.min(DURATION_SECONDS_MAX)))
        }
        TimeToLive::Never => Expiration::NeverExpires(proto::NoExpiry {}),
    });
    let (body, visibility_delay) = (Some(Body::Text(text)), visibility_timeout.map(seconds));
    Ok(proto::OutgoingMessage {
        body,
        visibility_delay,
        expiration: time_to_live,
        ..Default::default()
    })
}

fn sent(answer: proto::SendMessagesResponse) -> Result<Response<Body>, RestError> {
    match answer.results.into_iter().next().and_then(|result| result.outcome) {
        Some(Outcome::Sent(sent)) => {
            let text = xml::write_sent(&sent);
            Ok(reply::whole(StatusCode::CREATED, xml::CONTENT_TYPE, text))
        }
        Some(Outcome::Error(error)) => Err(failed(&error)),
        None => Err(unanswered()),
    }
}

fn updated(answer: &proto::UpdateMessageResponse) -> Response<Body> {
    let next_visible = date::http_date(answer.next_visible_time.as_ref());
    let mut updated = reply::empty(StatusCode::NO_CONTENT);
    let headers = updated.headers_mut();
    for (name, text) in [(POP_RECEIPT, &answer.pop_receipt), (TIME_NEXT_VISIBLE, &next_visible)] {
        headers.extend(HeaderValue::from_str(text).ok().map(|value| (name, value)));
    }
    updated
}

fn deleted(answer: proto::DeleteMessagesResponse) -> Result<Response<Body>, RestError> {
    match answer.results.into_iter().next() {
        Some(proto::DeleteResult { error: None }) => Ok(reply::empty(StatusCode::NO_CONTENT)),
        Some(proto::DeleteResult { error: Some(error) }) => Err(failed(&error)),
        None => Err(unanswered()),
    }
}

/// The error of one message as the error of its call.
fn failed(error: &ItemStatus) -> RestError {
    let (code, message) = (Code::from_i32(error.code), error.message.clone());
    let details = prost::Message::encode_to_vec(error);
    Status::with_details(code, message, details.into()).into()
}

fn unanswered() -> RestError {
    Fault::new(Reason::InternalError, "the service returned no outcome of the message").into()
}
