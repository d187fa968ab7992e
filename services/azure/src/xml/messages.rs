//! Messages of queues: `QueueMessage` in, `QueueMessagesList` out.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use trestle_model::fault::Fault;
use trestle_proto::queue::v1::{Delivery, Message, SentMessage, message::Body};

use super::{element::Element, write::XmlWriter};
use crate::date::http_date;

const LIST: &str = "QueueMessagesList";
const MESSAGE: &str = "QueueMessage";
const TEXT: &str = "MessageText";

/// Parses the text of a message, white space and line breaks unchanged; none if the document has no
/// text.
///
/// # Errors
/// A malformed document: its element and rule.
pub fn read_message(body: &[u8]) -> Result<Option<String>, Fault> {
    let mut root = Element::root(body, MESSAGE)?;
    let text = root.optional(TEXT).map(Element::into_text).transpose()?;
    root.finish()?;
    Ok(text.map(Cow::into_owned))
}

/// The response to a send.
#[must_use]
pub fn write_sent(sent: &SentMessage) -> String {
    XmlWriter::document(LIST, |writer| {
        writer.element(MESSAGE, |writer| {
            writer.text("MessageId", &sent.message_id);
            writer.text("InsertionTime", &http_date(sent.insertion_time.as_ref()));
            writer.text("ExpirationTime", &http_date(sent.expiration_time.as_ref()));
            writer.text("PopReceipt", &sent.pop_receipt);
            writer.text("TimeNextVisible", &http_date(sent.next_visible_time.as_ref()));
        });
    })
}

/// The response to a receive.
#[must_use]
pub fn write_deliveries(deliveries: &[Delivery]) -> String {
    XmlWriter::document(LIST, |writer| {
        for delivery in deliveries {
            let Some(message) = &delivery.message else { continue };
            writer.element(MESSAGE, |writer| write_message(writer, message, Some(delivery)));
        }
    })
}

/// The response to a peek.
#[must_use]
pub fn write_peeked(messages: &[Message]) -> String {
    XmlWriter::document(LIST, |writer| {
        for message in messages {
            writer.element(MESSAGE, |writer| write_message(writer, message, None));
        }
    })
}

fn write_message(writer: &mut XmlWriter, message: &Message, delivery: Option<&Delivery>) {
    writer.text("MessageId", &message.message_id);
    writer.text("InsertionTime", &http_date(message.insertion_time.as_ref()));
    writer.text("ExpirationTime", &http_date(message.expiration_time.as_ref()));
    if let Some(delivery) = delivery {
        writer.text("PopReceipt", &delivery.pop_receipt);
        writer.text("TimeNextVisible", &http_date(delivery.next_visible_time.as_ref()));
    }
    writer.value("DequeueCount", &message.dequeue_count);
    // The protocol has text only; bytes from other clients are encoded in the form of its own
    // clients.
    match &message.body {
        Some(Body::Text(text)) => writer.text(TEXT, text),
        Some(Body::Data(data)) => writer.text(TEXT, &STANDARD.encode(data)),
        None => writer.text(TEXT, ""),
    }
}

#[cfg(test)]
mod tests;
