//! Requests on messages.

use std::time::Duration;

use bytes::Bytes;
use trestle_model::fault::{Fault, Reason, Violations};
use trestle_model::limits::{
    DEDUPLICATION_ID_BYTES_MAX, MESSAGE_BODY_BYTES_MAX, MESSAGE_TTL_DEFAULT, MESSAGE_TTL_MIN,
    ORDERING_GROUP_BYTES_MAX, QUEUE_BATCH_BYTES_MAX, QUEUE_BATCH_MESSAGES_MAX,
    RECEIVE_MESSAGES_MAX, RECEIVE_WAIT_MAX, SEND_REQUEST_ID_BYTES_MAX, VISIBILITY_MAX,
};
use trestle_model::name::QueueName;
use trestle_proto::queue::v1::{
    self as proto,
    outgoing_message::{Body, Expiration},
    update_message_request::Body as NewBody,
};

use super::{Between, count, duration, finish, redrive_count, short_text, visibility_timeout};
use crate::{
    peek::Peek,
    receipt::{Claimed, Receipt, malformed},
    receive::Receive,
    send::{Attempt, NewMessage},
    stored::Payload,
    update::Update,
};

/// A send.
#[derive(Debug)]
pub(in crate::api) struct Send {
    /// The queue.
    pub(in crate::api) queue: QueueName,
    /// The request id, which makes a send idempotent.
    pub(in crate::api) request_id: Option<String>,
    /// Each message, or the error with which it is rejected.
    pub(in crate::api) messages: Vec<Attempt>,
}

/// A send.
pub(in crate::api) fn send(request: proto::SendMessagesRequest) -> Result<Send, Fault> {
    let mut violations = Violations::default();
    let queue = QueueName::parse(request.queue, "queue", &mut violations);
    let max = SEND_REQUEST_ID_BYTES_MAX;
    let request_id = short_text(request.request_id, max, "request_id", &mut violations);
    check_batch(request.messages.len(), "messages", &mut violations);
    let body_bytes = |message: &proto::OutgoingMessage| match &message.body {
        Some(Body::Text(text)) => text.len(),
        Some(Body::Data(data)) => data.len(),
        None => 0,
    };
    let bytes: usize = request.messages.iter().map(body_bytes).sum();
    if bytes > QUEUE_BATCH_BYTES_MAX {
        let max = QUEUE_BATCH_BYTES_MAX;
        let rule = format!("must have at most {max} bytes together: bytes=`{bytes}`");
        violations.push(Reason::RequestBodyTooLarge, "messages", rule);
    }
    let queue = finish(violations, queue)?;
    let messages = request.messages.into_iter().enumerate();
    let messages =
        messages.map(|(index, message)| outgoing(message, &format!("messages[{index}].")));
    Ok(Send { queue, request_id, messages: messages.collect() })
}

fn check_batch(count: usize, field: &str, violations: &mut Violations) {
    if !(1..=QUEUE_BATCH_MESSAGES_MAX).contains(&count) {
        let max = QUEUE_BATCH_MESSAGES_MAX;
        let rule = format!("must have 1 to {max} elements: count=`{count}`");
        violations.push(Reason::InvalidInput, field, rule);
    }
}

fn outgoing(message: proto::OutgoingMessage, prefix: &str) -> Result<NewMessage, Fault> {
    let mut violations = Violations::default();
    let field = |name: &str| format!("{prefix}{name}");
    let payload = match message.body {
        Some(Body::Text(text)) => Some(Payload::Text(Bytes::from(text))),
        Some(Body::Data(data)) => Some(Payload::Data(data)),
        None => {
            let rule = "required: text or data, which may be empty";
            violations.push(Reason::PropertiesNeedValue, field("body"), rule);
            None
        }
    };
    if let Some(payload) = &payload {
        check_payload(payload, &field("body"), &mut violations);
    }
    let visible = Between(Duration::ZERO, VISIBILITY_MAX);
    let delay_field = field("visibility_delay");
    let delay = duration(message.visibility_delay, visible, &delay_field, &mut violations);
    let delay = delay.unwrap_or_default();
    let time_to_live = match message.expiration {
        None => Some(MESSAGE_TTL_DEFAULT),
        Some(Expiration::NeverExpires(_)) => None,
        Some(Expiration::TimeToLive(given)) => {
            let between = Between(MESSAGE_TTL_MIN, Duration::MAX);
            let time_to_live =
                duration(Some(given), between, &field("time_to_live"), &mut violations);
            Some(time_to_live.unwrap_or(MESSAGE_TTL_DEFAULT))
        }
    };
    // The rule applies to a requested delay: without one, no comparison is needed.
    if violations.is_empty() && time_to_live.is_some_and(|time_to_live| time_to_live <= delay) {
        let rule = format!(
            "must be less than time_to_live: visibility_delay=`{}s`, time_to_live=`{}s`",
            delay.as_secs_f64(),
            time_to_live.unwrap_or_default().as_secs_f64()
        );
        violations.push(Reason::InvalidQueryParameterValue, delay_field, rule);
    }
    let max = DEDUPLICATION_ID_BYTES_MAX;
    let (id, id_field) = (message.deduplication_id, field("deduplication_id"));
    let deduplication_id = short_text(id, max, &id_field, &mut violations);
    let (max, group_field) = (ORDERING_GROUP_BYTES_MAX, field("ordering_group"));
    let group = short_text(message.ordering_group, max, &group_field, &mut violations);
    let parsed =
        payload.map(|payload| NewMessage { payload, delay, time_to_live, deduplication_id, group });
    finish(violations, parsed)
}

fn check_payload(payload: &Payload, field: &str, violations: &mut Violations) {
    let bytes = payload.len();
    if bytes > MESSAGE_BODY_BYTES_MAX {
        let rule = format!("must have at most {MESSAGE_BODY_BYTES_MAX} bytes: bytes=`{bytes}`");
        violations.push(Reason::RequestBodyTooLarge, field, rule);
    }
}

/// A receive.
pub(in crate::api) fn receive(
    request: proto::ReceiveMessagesRequest,
) -> Result<(QueueName, Receive), Fault> {
    let mut violations = Violations::default();
    let queue = QueueName::parse(request.queue, "queue", &mut violations);
    let max = received(request.max_messages, &mut violations);
    let (timeout, field) = (request.visibility_timeout, "visibility_timeout");
    let visibility_timeout = visibility_timeout(timeout, field, &mut violations);
    let waits = Between(Duration::ZERO, RECEIVE_WAIT_MAX);
    let wait = duration(request.wait, waits, "wait", &mut violations).unwrap_or_default();
    let receive = Receive { max, visibility_timeout, wait, deadline: None };
    finish(violations, queue.map(|queue| (queue, receive)))
}

/// A peek.
pub(in crate::api) fn peek(
    request: proto::PeekMessagesRequest,
) -> Result<(QueueName, Peek), Fault> {
    let mut violations = Violations::default();
    let queue = QueueName::parse(request.queue, "queue", &mut violations);
    let max = received(request.max_messages, &mut violations);
    let (page_token, is_every) = (request.page_token, request.include_invisible);
    finish(violations, queue.map(|queue| (queue, Peek { max, page_token, is_every })))
}

fn received(max: Option<u32>, violations: &mut Violations) -> usize {
    count(max, RECEIVE_MESSAGES_MAX, 1, "max_messages", violations)
}

/// An update of a message: its queue, and the update or the error, which is returned once the queue was found.
pub(in crate::api) fn update(
    mut request: proto::UpdateMessageRequest,
) -> Result<(QueueName, Result<Update, Fault>), Fault> {
    let queue = super::queue(std::mem::take(&mut request.queue))?;
    Ok((queue, changes(request)))
}

fn changes(request: proto::UpdateMessageRequest) -> Result<Update, Fault> {
    let mut violations = Violations::default();
    let receipt = request.receipt.unwrap_or_default();
    let (message_id, text) = (receipt.message_id, receipt.pop_receipt);
    let receipt = match Receipt::parse(&text) {
        Some(receipt) => Some(Claimed { message_id, receipt }),
        None => {
            let fault = malformed("receipt.pop_receipt", &text);
            violations.extend(fault.violations);
            None
        }
    };
    let field = "visibility_timeout";
    if request.visibility_timeout.is_none() {
        let rule = "required: how long the message stays invisible";
        violations.push(Reason::MissingRequiredQueryParameter, field, rule);
    }
    let between = Between(Duration::ZERO, VISIBILITY_MAX);
    let visibility_timeout = duration(request.visibility_timeout, between, field, &mut violations);
    let payload = request.body.map(|body| match body {
        NewBody::Text(text) => Payload::Text(Bytes::from(text)),
        NewBody::Data(data) => Payload::Data(data),
    });
    if let Some(payload) = &payload {
        check_payload(payload, "body", &mut violations);
    }
    let parsed = receipt.zip(visibility_timeout);
    let parsed =
        parsed.map(|(claimed, visibility_timeout)| Update { claimed, visibility_timeout, payload });
    finish(violations, parsed)
}

/// The messages to delete: a receipt each, or the error for a malformed one.
pub(in crate::api) type Receipts = Vec<Result<Claimed, Fault>>;

/// A delete.
pub(in crate::api) fn delete(
    request: proto::DeleteMessagesRequest,
) -> Result<(QueueName, Receipts), Fault> {
    let mut violations = Violations::default();
    let queue = QueueName::parse(request.queue, "queue", &mut violations);
    check_batch(request.receipts.len(), "receipts", &mut violations);
    let queue = finish(violations, queue)?;
    let receipt = |(index, receipt): (usize, proto::ReceiptRef)| {
        let proto::ReceiptRef { message_id, pop_receipt } = receipt;
        let field = format!("receipts[{index}].pop_receipt");
        let parsed = Receipt::parse(&pop_receipt).ok_or_else(|| malformed(field, &pop_receipt));
        parsed.map(|receipt| Claimed { message_id, receipt })
    };
    Ok((queue, request.receipts.into_iter().enumerate().map(receipt).collect()))
}

/// A redrive: the source, the destination if one is given, and the maximum number of messages.
pub(in crate::api) fn redrive(
    request: proto::RedriveMessagesRequest,
) -> Result<(QueueName, Option<QueueName>, usize), Fault> {
    let mut violations = Violations::default();
    let queue = QueueName::parse(request.queue, "queue", &mut violations);
    let destination = match request.destination {
        name if name.is_empty() => None,
        name => QueueName::parse(name, "destination", &mut violations),
    };
    if destination.is_some() && destination == queue {
        let rule = "must be another queue than the one to move from";
        violations.push(Reason::InvalidInput, "destination", rule);
    }
    let max = redrive_count(request.max_messages, &mut violations);
    finish(violations, queue.map(|queue| (queue, destination, max)))
}

#[cfg(test)]
mod tests;
