//! `send`, `receive`, `peek`, `delete` of a message, `redrive`.

use std::{path::Path, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tonic::{Code, Request};
use trestle_command::{
    errors::{CliError, status_of},
    files,
    messages::{proto_duration, send_messages},
    output::{counted, thousands, with_fields},
};
use trestle_proto::queue::v1::{
    DeleteMessagesRequest, Delivery, Message, NoExpiry, OutgoingMessage, PeekMessagesRequest,
    ReceiptRef, ReceiveMessagesRequest, RedriveMessagesRequest, SendMessagesRequest, SentMessage,
    UpdateMessageRequest, UpdateMessageResponse,
    message::Body,
    outgoing_message::{Body as OutgoingBody, Expiration},
    send_result::Outcome,
    update_message_request::Body as NewBody,
};

use super::{Context, MessageArgs, PeekArgs, ReceiptArgs};
use crate::datetime;

/// Most messages of one call. The server's limit.
pub(super) const BATCH_MAX: usize = 100;
/// Most messages of one peek. The server's limit.
const PEEK_MAX: u32 = 32;
/// What is printed in place of messages.
const NO_MESSAGES: &str = "no messages";
/// Longest text that is read from standard input; the server's limit is lower.
const INPUT_BYTES_MAX: u64 = 1024 * 1024;
/// Most messages of one redrive. The server's limit.
const REDRIVE_MAX: u32 = 1000;
/// The extra time of a receive beyond its wait.
const WAIT_EXTRA: Duration = Duration::from_secs(10);

/// Arguments of a receive.
pub(super) struct ReceiveOptions {
    pub(super) queue: String,
    pub(super) limit: u32,
    pub(super) visibility_timeout: Duration,
    pub(super) wait: Option<Duration>,
}

/// Sends messages.
pub(super) async fn send(context: &mut Context, args: MessageArgs) -> Result<(), CliError> {
    if !args.id.is_empty() && args.texts.len() > 1 {
        return Err(CliError::Usage("--id is for one message".to_owned()));
    }
    let expiration = match (args.ttl, args.never_expires) {
        (_, true) => Some(Expiration::NeverExpires(NoExpiry {})),
        (ttl, false) => ttl.map(|ttl| Expiration::TimeToLive(proto_duration(ttl))),
    };
    let mut messages = Vec::with_capacity(args.texts.len());
    for text in args.texts {
        let text = match text.as_str() {
            "-" => files::read_exact(Path::new("-"), INPUT_BYTES_MAX)?,
            _ => text,
        };
        messages.push(OutgoingMessage {
            body: Some(OutgoingBody::Text(text)),
            visibility_delay: args.delay.map(proto_duration),
            expiration,
            deduplication_id: args.id.clone(),
            ordering_group: args.group.clone(),
        });
    }
    for batch in messages.chunks(BATCH_MAX) {
        for sent in send_batch(context, &args.queue, batch.to_vec(), "").await? {
            let text = match sent.duplicate {
                true => format!("{} is its duplicate", sent.message_id),
                false => format!("sent {}", sent.message_id),
            };
            let object = json!({
                "message_id": sent.message_id, "pop_receipt": sent.pop_receipt,
                "duplicate": sent.duplicate,
                "next_visible_time": sent.next_visible_time.as_ref().and_then(datetime::format),
            });
            context.output.either(&text, &object)?;
        }
    }
    Ok(())
}

/// Sends up to a hundred messages; the first that is rejected fails the command.
pub(super) async fn send_batch(
    context: &mut Context,
    queue: &str,
    messages: Vec<OutgoingMessage>,
    request_id: &str,
) -> Result<Vec<SentMessage>, CliError> {
    let (queue, request_id) = (queue.to_owned(), request_id.to_owned());
    let request = SendMessagesRequest { queue, messages, request_id };
    let outcomes = send_messages(&context.session, request).await?;
    let sent = outcomes.into_iter().map(|outcome| match outcome {
        Outcome::Sent(sent) => Ok(sent),
        Outcome::Error(error) => Err(status_of(&error.into()).into()),
    });
    sent.collect()
}

/// Receives messages; the call itself may take as long as its wait.
pub(super) async fn take(
    context: &mut Context,
    options: &ReceiveOptions,
) -> Result<Vec<Delivery>, CliError> {
    let mut request = Request::new(ReceiveMessagesRequest {
        queue: options.queue.clone(),
        max_messages: Some(options.limit),
        visibility_timeout: Some(proto_duration(options.visibility_timeout)),
        wait: options.wait.map(proto_duration),
    });
    if let Some(wait) = options.wait {
        request.set_timeout(wait.saturating_add(WAIT_EXTRA));
    }
    Ok(context.session.queues().receive_messages(request).await?.into_inner().deliveries)
}

/// Receives messages and prints them, and deletes them if that is requested.
pub(super) async fn receive(
    context: &mut Context,
    options: ReceiveOptions,
    delete: bool,
) -> Result<(), CliError> {
    let deliveries = take(context, &options).await?;
    let records = deliveries.iter().filter_map(|delivery| {
        let visible = delivery.next_visible_time.as_ref().and_then(datetime::format);
        let receipt = json!({ "pop_receipt": delivery.pop_receipt, "next_visible_time": visible });
        Some(with_fields(to_json(delivery.message.as_ref()?), receipt))
    });
    print(context, &records.collect::<Vec<_>>())?;
    // Printed first: a deleted message cannot be received again.
    context.output.finish()?;
    if delete {
        delete_all(context, &options.queue, &deliveries).await?;
    }
    Ok(())
}

/// Deletes deliveries; the first error fails the command.
pub(super) async fn delete_all(
    context: &mut Context,
    queue: &str,
    deliveries: &[Delivery],
) -> Result<(), CliError> {
    if deliveries.is_empty() {
        return Ok(());
    }
    let receipts = deliveries.iter().map(receipt).collect();
    delete_receipts(context, queue.to_owned(), receipts).await
}

/// The receipt of a delivery.
pub(super) fn receipt(delivery: &Delivery) -> ReceiptRef {
    ReceiptRef {
        message_id: delivery.message.as_ref().map(|m| m.message_id.clone()).unwrap_or_default(),
        pop_receipt: delivery.pop_receipt.clone(),
    }
}

async fn delete_receipts(
    context: &mut Context,
    queue: String,
    receipts: Vec<ReceiptRef>,
) -> Result<(), CliError> {
    let request = DeleteMessagesRequest { queue, receipts };
    let results = context.session.queues().delete_messages(request).await?.into_inner().results;
    match results.into_iter().find_map(|result| result.error) {
        Some(error) => Err(status_of(&error.into()).into()),
        None => Ok(()),
    }
}

/// Makes deliveries visible again, all in a limited time; returns how many remain invisible.
pub(super) async fn release(
    context: &Context,
    queue: &str,
    deliveries: &[Delivery],
    within: Duration,
) -> usize {
    let released = deliveries.iter().map(|delivery| {
        let request = UpdateMessageRequest {
            queue: queue.to_owned(),
            receipt: Some(receipt(delivery)),
            visibility_timeout: Some(proto_duration(Duration::ZERO)),
            body: None,
        };
        let mut queues = context.session.queues();
        async move {
            match tokio::time::timeout(within, queues.update_message(request)).await {
                // Its visibility timeout ended before, or it was deleted.
                Ok(Err(status)) => status.code() == Code::NotFound,
                Ok(Ok(_)) => true,
                Err(_) => false,
            }
        }
    });
    let released = futures::future::join_all(released).await;
    released.into_iter().filter(|is_released| !is_released).count()
}

/// Deletes one message.
pub(super) async fn delete(context: &mut Context, args: ReceiptArgs) -> Result<(), CliError> {
    let ReceiptArgs { queue, message_id, receipt: pop_receipt } = args;
    let receipts = vec![ReceiptRef { message_id: message_id.clone(), pop_receipt }];
    delete_receipts(context, queue, receipts).await?;
    let text = format!("deleted message {message_id}");
    context.output.either(&text, &json!({ "message_id": message_id, "deleted": true }))
}

/// Changes how long one message is invisible, and its text where one is given; prints the new receipt.
pub(super) async fn extend(
    context: &mut Context,
    args: ReceiptArgs,
    visibility_timeout: Duration,
    text: Option<String>,
) -> Result<(), CliError> {
    let body = text.map(NewBody::Text);
    let (message_id, answer) = update(context, args, visibility_timeout, body).await?;
    let visible = answer.next_visible_time.as_ref().and_then(datetime::format);
    let record = json!({
        "message_id": message_id, "pop_receipt": answer.pop_receipt, "next_visible_time": visible,
    });
    context.output.record(["Message", ""], &record)
}

/// Makes one message visible again.
pub(super) async fn release_one(context: &mut Context, args: ReceiptArgs) -> Result<(), CliError> {
    let (message_id, _) = update(context, args, Duration::ZERO, None).await?;
    let text = format!("released message {message_id}");
    context.output.either(&text, &json!({ "message_id": message_id, "released": true }))
}

async fn update(
    context: &Context,
    args: ReceiptArgs,
    visibility_timeout: Duration,
    body: Option<NewBody>,
) -> Result<(String, UpdateMessageResponse), CliError> {
    let ReceiptArgs { queue, message_id, receipt: pop_receipt } = args;
    let request = UpdateMessageRequest {
        queue,
        receipt: Some(ReceiptRef { message_id: message_id.clone(), pop_receipt }),
        visibility_timeout: Some(proto_duration(visibility_timeout)),
        body,
    };
    let answer = context.session.queues().update_message(request).await?.into_inner();
    Ok((message_id, answer))
}

/// Prints messages without receiving them.
pub(super) async fn peek(context: &mut Context, args: PeekArgs) -> Result<(), CliError> {
    let PeekArgs { queue, count, all } = args;
    let max_messages = Some(if all { PEEK_MAX } else { count.limit });
    let mut request =
        PeekMessagesRequest { queue, max_messages, include_invisible: all, ..Default::default() };
    let mut is_empty = true;
    loop {
        let peeked = context.session.queues().peek_messages(request.clone()).await?.into_inner();
        is_empty &= peeked.messages.is_empty();
        records(context, &peeked.messages.iter().map(peeked_json).collect::<Vec<_>>())?;
        request.page_token = peeked.next_page_token;
        if !all || request.page_token.is_empty() {
            return context.output.unless_empty(!is_empty, NO_MESSAGES);
        }
    }
}

fn peeked_json(message: &Message) -> Value {
    let visible = message.visible_time.as_ref().and_then(datetime::format);
    match visible {
        Some(visible) => with_fields(to_json(message), json!({ "next_visible_time": visible })),
        None => to_json(message),
    }
}

fn print(context: &mut Context, found: &[Value]) -> Result<(), CliError> {
    records(context, found)?;
    context.output.unless_empty(!found.is_empty(), NO_MESSAGES)
}

fn records(context: &mut Context, found: &[Value]) -> Result<(), CliError> {
    context.output.records(
        found,
        &[
            "message_id",
            "insertion_time",
            "dequeue_count",
            "dead_letter_origin",
            "text",
            "data_base64",
            "pop_receipt",
            "expiration_time",
            "next_visible_time",
        ],
    )
}

/// Redrives messages to their source queue or another one.
pub(super) async fn redrive(
    context: &mut Context,
    queue: String,
    destination: String,
) -> Result<(), CliError> {
    let mut moved = 0_u64;
    let progress = context.output.progress(None, 0);
    loop {
        let request = RedriveMessagesRequest {
            queue: queue.clone(),
            destination: destination.clone(),
            max_messages: Some(REDRIVE_MAX),
        };
        let step = context.session.queues().redrive_messages(request).await?.into_inner().moved;
        moved = moved.saturating_add(step.into());
        progress.set_message(format!("{} moved", thousands(moved)));
        if step < REDRIVE_MAX {
            break;
        }
    }
    progress.finish_and_clear();
    let text = format!("moved {}", counted(moved, "message"));
    context.output.either(&text, &json!({ "queue": queue, "moved": moved }))
}

/// A message for programs, as `drain` writes it and `load` reads it.
pub(super) fn to_json(message: &Message) -> Value {
    let origin = message
        .dead_letter_origin
        .as_ref()
        .map(|origin| json!({ "queue": origin.queue, "dequeue_count": origin.dequeue_count }));
    let object = json!({
        "message_id": message.message_id,
        "insertion_time": message.insertion_time.as_ref().and_then(datetime::format),
        "expiration_time": message.expiration_time.as_ref().and_then(datetime::format),
        "dequeue_count": message.dequeue_count,
        "dead_letter_origin": origin,
    });
    let body = match &message.body {
        Some(Body::Data(data)) => json!({ "data_base64": STANDARD.encode(data) }),
        Some(Body::Text(text)) => json!({ "text": text }),
        None => Value::Null,
    };
    with_fields(object, body)
}
