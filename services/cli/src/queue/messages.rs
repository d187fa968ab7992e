//! `send`, `receive`, `peek`, `delete` of a message, `redrive`.

use std::{io::Read as _, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tonic::{Code, Status};
use trestle_proto::queue::v1::{
    DeleteMessagesRequest, Delivery, Message, NoExpiry, OutgoingMessage, PeekMessagesRequest,
    ReceiptRef, ReceiveMessagesRequest, RedriveMessagesRequest, SendMessagesRequest, SendResult,
    SentMessage, UpdateMessageRequest,
    message::Body,
    outgoing_message::{Body as OutgoingBody, Expiration},
    send_result::Outcome,
};

use super::{MessageArgs, QueueContext, duration};
use crate::{
    datetime,
    errors::CliError,
    output::{counted, thousands},
};

/// Most messages of one call. The server's limit.
pub(super) const BATCH_MAX: usize = 100;
/// Most messages of one redrive. The server's limit.
const REDRIVE_MAX: u32 = 1000;
/// The extra time of a receive beyond its wait.
const WAIT_EXTRA: Duration = Duration::from_secs(10);

/// Arguments of a receive.
pub(super) struct ReceiveOptions {
    pub(super) queue: String,
    pub(super) max: u32,
    pub(super) hidden: Duration,
    pub(super) wait: Option<Duration>,
}

/// Sends messages.
pub(super) async fn send(context: &mut QueueContext, args: MessageArgs) -> Result<(), CliError> {
    if !args.id.is_empty() && args.texts.len() > 1 {
        return Err(CliError::Usage("--id is for one message".to_owned()));
    }
    let life = match (args.life, args.never_expires) {
        (_, true) => Some(Expiration::NeverExpires(NoExpiry {})),
        (life, false) => life.map(|life| Expiration::TimeToLive(duration(life))),
    };
    let mut messages = Vec::with_capacity(args.texts.len());
    for text in args.texts {
        messages.push(OutgoingMessage {
            body: Some(OutgoingBody::Text(text_or_input(text)?)),
            visibility_delay: args.delay.map(duration),
            expiration: life,
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

fn text_or_input(text: String) -> Result<String, CliError> {
    if text != "-" {
        return Ok(text);
    }
    let mut input = String::new();
    let read = std::io::stdin().read_to_string(&mut input);
    read.map_err(CliError::file("cannot read standard input"))?;
    Ok(input)
}

/// Sends up to a hundred messages; the first that is refused fails the command.
pub(super) async fn send_batch(
    context: &mut QueueContext,
    queue: &str,
    messages: Vec<OutgoingMessage>,
    request_id: &str,
) -> Result<Vec<SentMessage>, CliError> {
    let (queue, request_id) = (queue.to_owned(), request_id.to_owned());
    let count = messages.len();
    let request = SendMessagesRequest { queue, messages, request_id };
    let request = context.session.request(request);
    outcomes(context.queues.send_messages(request).await?.into_inner().results, count)
}

/// The outcomes of a batch of messages.
fn outcomes(results: Vec<SendResult>, count: usize) -> Result<Vec<SentMessage>, CliError> {
    if results.len() != count {
        // Fewer results must not pass for all of them.
        return Err(CliError::Protocol(format!(
            "{count} messages were answered with {} results",
            results.len()
        )));
    }
    let outcome = |outcome| match outcome {
        Some(Outcome::Sent(sent)) => Ok(sent),
        Some(Outcome::Error(error)) => Err(status(&error).into()),
        None => Err(CliError::Protocol("a message without an outcome".to_owned())),
    };
    results.into_iter().map(|result| outcome(result.outcome)).collect()
}

/// The error of one element of a batch as the error of a call.
fn status(error: &tonic_types::Status) -> Status {
    use prost::Message as _;
    let details = error.encode_to_vec().into();
    Status::with_details(Code::from_i32(error.code), error.message.clone(), details)
}

/// Receives messages; the call itself may take as long as its wait.
pub(super) async fn take(
    context: &mut QueueContext,
    options: &ReceiveOptions,
) -> Result<Vec<Delivery>, CliError> {
    let mut request = context.session.request(ReceiveMessagesRequest {
        queue: options.queue.clone(),
        max_messages: Some(options.max),
        visibility_timeout: Some(duration(options.hidden)),
        wait: options.wait.map(duration),
    });
    if let Some(wait) = options.wait {
        request.set_timeout(wait.saturating_add(WAIT_EXTRA));
    }
    Ok(context.queues.receive_messages(request).await?.into_inner().deliveries)
}

/// Receives messages and prints them, and deletes them if that is requested.
pub(super) async fn receive(
    context: &mut QueueContext,
    options: ReceiveOptions,
    delete: bool,
) -> Result<(), CliError> {
    let deliveries = take(context, &options).await?;
    if deliveries.is_empty() && !context.output.is_json() {
        return context.output.line("no messages");
    }
    let mut rows = Vec::new();
    for delivery in &deliveries {
        let Some(message) = &delivery.message else { continue };
        let visible = delivery.next_visible_time.as_ref().and_then(datetime::format);
        if context.output.is_json() {
            let mut object = to_json(message);
            if let Some(fields) = object.as_object_mut() {
                fields.insert("pop_receipt".to_owned(), json!(delivery.pop_receipt));
                fields.insert("next_visible_time".to_owned(), json!(visible));
            }
            context.output.line(&object.to_string())?;
        } else {
            let mut row = row(message);
            row.push(delivery.pop_receipt.clone());
            rows.push(row);
        }
    }
    if !context.output.is_json() {
        let header = ["Message", "Inserted", "Received", "Body", "Receipt"];
        context.output.table(&header, &rows)?;
    }
    // Printed first: a deleted message cannot be received again.
    context.output.flush()?;
    if delete {
        delete_all(context, &options.queue, &deliveries).await?;
    }
    Ok(())
}

/// Deletes deliveries; the first error fails the command.
pub(super) async fn delete_all(
    context: &mut QueueContext,
    queue: &str,
    deliveries: &[Delivery],
) -> Result<(), CliError> {
    if deliveries.is_empty() {
        return Ok(());
    }
    let receipts = deliveries.iter().map(receipt).collect();
    delete_receipts(context, queue.to_owned(), receipts).await
}

fn receipt(delivery: &Delivery) -> ReceiptRef {
    ReceiptRef {
        message_id: delivery.message.as_ref().map(|m| m.message_id.clone()).unwrap_or_default(),
        pop_receipt: delivery.pop_receipt.clone(),
    }
}

async fn delete_receipts(
    context: &mut QueueContext,
    queue: String,
    receipts: Vec<ReceiptRef>,
) -> Result<(), CliError> {
    let request = context.session.request(DeleteMessagesRequest { queue, receipts });
    let results = context.queues.delete_messages(request).await?.into_inner().results;
    match results.into_iter().find_map(|result| result.error) {
        Some(error) => Err(status(&error).into()),
        None => Ok(()),
    }
}

/// Makes deliveries visible again, as many as possible; the first error fails the command.
pub(super) async fn release(
    context: &mut QueueContext,
    queue: &str,
    deliveries: &[Delivery],
) -> Result<(), CliError> {
    let given = deliveries.iter().map(|delivery| {
        let request = context.session.request(UpdateMessageRequest {
            queue: queue.to_owned(),
            receipt: Some(receipt(delivery)),
            visibility_timeout: Some(duration(Duration::ZERO)),
            body: None,
        });
        let mut queues = context.queues.clone();
        async move { queues.update_message(request).await }
    });
    let given = futures::future::join_all(given).await;
    given.into_iter().try_for_each(|answer| answer.map(drop)).map_err(CliError::from)
}

/// Deletes one message.
pub(super) async fn delete(
    context: &mut QueueContext,
    queue: String,
    (message_id, pop_receipt): (String, String),
) -> Result<(), CliError> {
    let receipts = vec![ReceiptRef { message_id: message_id.clone(), pop_receipt }];
    delete_receipts(context, queue, receipts).await?;
    let text = format!("deleted message {message_id}");
    context.output.either(&text, &json!({ "message_id": message_id, "deleted": true }))
}

/// Prints messages without receiving them.
pub(super) async fn peek(
    context: &mut QueueContext,
    queue: String,
    max: u32,
) -> Result<(), CliError> {
    let request = context.session.request(PeekMessagesRequest { queue, max_messages: Some(max) });
    let messages = context.queues.peek_messages(request).await?.into_inner().messages;
    if context.output.is_json() {
        return messages.iter().try_for_each(|m| context.output.line(&to_json(m).to_string()));
    }
    if messages.is_empty() {
        return context.output.line("no messages");
    }
    let mut header = vec!["Message", "Inserted", "Received", "Body"];
    let mut rows: Vec<_> = messages.iter().map(row).collect();
    if messages.iter().any(|message| message.dead_letter_origin.is_some()) {
        header.extend(["From", "Tried"]);
        for (row, message) in rows.iter_mut().zip(&messages) {
            let origin = message.dead_letter_origin.as_ref();
            row.push(origin.map(|origin| origin.queue.clone()).unwrap_or_default());
            row.push(origin.map(|o| o.dequeue_count.to_string()).unwrap_or_default());
        }
    }
    context.output.table(&header, &rows)
}

/// Redrives messages to their source queue or another one.
pub(super) async fn redrive(
    context: &mut QueueContext,
    queue: String,
    destination: String,
) -> Result<(), CliError> {
    let mut moved = 0_u64;
    let progress = context.output.progress(None);
    loop {
        let request = context.session.request(RedriveMessagesRequest {
            queue: queue.clone(),
            destination: destination.clone(),
            max_messages: Some(REDRIVE_MAX),
        });
        let step = context.queues.redrive_messages(request).await?.into_inner().moved;
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
    let mut object = json!({
        "message_id": message.message_id,
        "insertion_time": message.insertion_time.as_ref().and_then(datetime::format),
        "expiration_time": message.expiration_time.as_ref().and_then(datetime::format),
        "dequeue_count": message.dequeue_count,
        "dead_letter_origin": origin,
    });
    if let Some(fields) = object.as_object_mut() {
        match &message.body {
            Some(Body::Data(data)) => {
                fields.insert("data_base64".to_owned(), json!(STANDARD.encode(data)));
            }
            Some(Body::Text(text)) => {
                fields.insert("text".to_owned(), json!(text));
            }
            None => {}
        }
    }
    object
}

fn row(message: &Message) -> Vec<String> {
    let body = match &message.body {
        Some(Body::Text(text)) => text.clone(),
        Some(Body::Data(data)) => format!("{} bytes", data.len()),
        None => String::new(),
    };
    vec![
        message.message_id.clone(),
        message.insertion_time.as_ref().and_then(datetime::format).unwrap_or_default(),
        message.dequeue_count.to_string(),
        body,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_with_another_number_of_results_is_an_error() {
        let sent = SendResult { outcome: Some(Outcome::Sent(SentMessage::default())) };
        assert_eq!(outcomes(vec![sent.clone()], 1).map(|sent| sent.len()).ok(), Some(1));
        for count in [0, 2] {
            let error = outcomes(vec![sent.clone()], count).map(drop).map_err(|e| e.to_string());
            let text = format!("{count} messages were answered with 1 results");
            assert!(error.as_ref().is_err_and(|error| error.contains(&text)), "{error:?}");
        }
    }
}
