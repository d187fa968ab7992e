//! The verbs on one queue.

use std::time::Duration;

use trestle_proto::queue::v1::{
    self as proto, Delivery, NoExpiry, OutgoingMessage, ReceiptRef, SentMessage,
    outgoing_message::{Body, Expiration},
    queue_service_client::QueueServiceClient,
    send_result::Outcome,
};
use trestle_proto::service::v1::{AccessPolicy, ServiceProperties};

use crate::{CallError, Transport, World};

/// A queue of a world.
#[derive(Debug, Clone)]
pub struct Queue {
    client: QueueServiceClient<Transport>,
    name: String,
}

/// A duration in protobuf.
pub fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: duration.as_secs().try_into().expect("a short duration"),
        nanos: duration.subsec_nanos().try_into().expect("less than a second"),
    }
}

/// A duration of whole seconds, negative ones included.
pub fn seconds(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

/// A message of text.
pub fn text(text: &str) -> OutgoingMessage {
    OutgoingMessage { body: Some(Body::Text(text.to_owned())), ..Default::default() }
}

/// A message of bytes.
pub fn data(data: impl Into<bytes::Bytes>) -> OutgoingMessage {
    OutgoingMessage { body: Some(Body::Data(data.into())), ..Default::default() }
}

/// The message, with a visibility delay.
pub fn delayed(message: OutgoingMessage, delay: prost_types::Duration) -> OutgoingMessage {
    OutgoingMessage { visibility_delay: Some(delay), ..message }
}

/// The message, with a TTL.
pub fn with_ttl(message: OutgoingMessage, ttl: prost_types::Duration) -> OutgoingMessage {
    OutgoingMessage { expiration: Some(Expiration::TimeToLive(ttl)), ..message }
}

/// The message, without an expiry.
pub fn without_expiry(message: OutgoingMessage) -> OutgoingMessage {
    OutgoingMessage { expiration: Some(Expiration::NeverExpires(NoExpiry {})), ..message }
}

/// The message, with a deduplication id.
pub fn unique(message: OutgoingMessage, id: &str) -> OutgoingMessage {
    OutgoingMessage { deduplication_id: id.to_owned(), ..message }
}

/// The text of a message; empty for bytes.
pub fn text_of(message: &proto::Message) -> &str {
    match &message.body {
        Some(proto::message::Body::Text(text)) => text,
        _ => "",
    }
}

/// The texts of deliveries.
pub fn texts(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| text_of(delivery.message.as_ref().expect("set"))).collect()
}

/// What deletes or extends a delivery.
pub fn receipt_of(delivery: &Delivery) -> ReceiptRef {
    let message_id = delivery.message.as_ref().expect("a message").message_id.clone();
    ReceiptRef { message_id, pop_receipt: delivery.pop_receipt.clone() }
}

/// What deletes or updates a message that was sent.
pub fn receipt_of_sent(sent: &SentMessage) -> ReceiptRef {
    let SentMessage { message_id, pop_receipt, .. } = sent.clone();
    ReceiptRef { message_id, pop_receipt }
}

impl World {
    /// A client of queues.
    pub fn queues(&self) -> QueueServiceClient<Transport> {
        QueueServiceClient::new(self.transport())
            .max_decoding_message_size(16 * 1024 * 1024)
            .max_encoding_message_size(64 * 1024 * 1024)
    }

    /// A new queue.
    pub async fn queue(&self, name: &str) -> Queue {
        let queue = proto::Queue { name: name.to_owned(), ..Default::default() };
        self.queue_with(queue).await
    }

    /// A new queue with settings.
    pub async fn queue_with(&self, queue: proto::Queue) -> Queue {
        let name = queue.name.clone();
        let request = proto::CreateQueueRequest { queue: Some(queue) };
        self.queues().create_queue(request).await.expect("the queue is created");
        self.existing_queue(&name)
    }

    /// A queue that may exist or not.
    pub fn existing_queue(&self, name: &str) -> Queue {
        Queue { client: self.queues(), name: name.to_owned() }
    }

    /// The settings of the queue service.
    pub async fn queue_properties(&self) -> Result<ServiceProperties, CallError> {
        let request = proto::GetServicePropertiesRequest {};
        let response = self.queues().get_service_properties(request).await?.into_inner();
        Ok(response.properties.expect("settings are returned"))
    }

    /// Changes settings of the queue service.
    pub async fn set_queue_properties(&self, change: ServiceProperties) -> Result<(), CallError> {
        let request = proto::SetServicePropertiesRequest { properties: Some(change) };
        Ok(self.queues().set_service_properties(request).await.map(drop)?)
    }
}

impl Queue {
    /// A queue at the other end of a client.
    pub fn new(client: QueueServiceClient<Transport>, name: &str) -> Self {
        Self { client, name: name.to_owned() }
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// A client.
    pub fn client(&self) -> QueueServiceClient<Transport> {
        self.client.clone()
    }

    /// Sends one message.
    pub async fn send(&self, message: OutgoingMessage) -> Result<SentMessage, CallError> {
        self.send_all(vec![message]).await?.remove(0)
    }

    /// Sends messages; the outcome of each.
    pub async fn send_all(
        &self,
        messages: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<SentMessage, CallError>>, CallError> {
        self.send_as("", messages).await
    }

    /// Sends messages under a request id; the outcome of each.
    pub async fn send_as(
        &self,
        request_id: &str,
        messages: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<SentMessage, CallError>>, CallError> {
        let (queue, request_id) = (self.name(), request_id.to_owned());
        let request = proto::SendMessagesRequest { queue, messages, request_id };
        let response = self.client().send_messages(request).await?;
        let outcome = |result: proto::SendResult| match result.outcome.expect("an outcome") {
            Outcome::Sent(sent) => Ok(sent),
            Outcome::Error(error) => Err(CallError::of_item(&error)),
        };
        Ok(response.into_inner().results.into_iter().map(outcome).collect())
    }

    /// Receives up to so many messages with a visibility timeout.
    pub async fn receive(
        &self,
        max: u32,
        visibility_timeout: prost_types::Duration,
    ) -> Result<Vec<Delivery>, CallError> {
        self.receive_as(proto::ReceiveMessagesRequest {
            max_messages: Some(max),
            visibility_timeout: Some(visibility_timeout),
            ..Default::default()
        })
        .await
    }

    /// Receives one message, waiting for it.
    pub async fn wait(&self, wait: prost_types::Duration) -> Result<Vec<Delivery>, CallError> {
        let wait = Some(wait);
        self.receive_as(proto::ReceiveMessagesRequest { wait, ..Default::default() }).await
    }

    /// Receives with this request, from this queue.
    pub async fn receive_as(
        &self,
        request: proto::ReceiveMessagesRequest,
    ) -> Result<Vec<Delivery>, CallError> {
        let request = proto::ReceiveMessagesRequest { queue: self.name(), ..request };
        Ok(self.client().receive_messages(request).await?.into_inner().deliveries)
    }

    /// Peeks up to so many messages.
    pub async fn peek(&self, max: u32) -> Result<Vec<proto::Message>, CallError> {
        let request = proto::PeekMessagesRequest { max_messages: Some(max), ..Default::default() };
        Ok(self.peek_as(request).await?.messages)
    }

    /// Peeks with this request, at this queue.
    pub async fn peek_as(
        &self,
        request: proto::PeekMessagesRequest,
    ) -> Result<proto::PeekMessagesResponse, CallError> {
        let request = proto::PeekMessagesRequest { queue: self.name(), ..request };
        Ok(self.client().peek_messages(request).await?.into_inner())
    }

    /// Updates a message; its new receipt.
    pub async fn update(
        &self,
        receipt: ReceiptRef,
        visibility_timeout: prost_types::Duration,
        text: Option<&str>,
    ) -> Result<ReceiptRef, CallError> {
        let message_id = receipt.message_id.clone();
        let body = text.map(|text| proto::update_message_request::Body::Text(text.to_owned()));
        let request = proto::UpdateMessageRequest {
            queue: self.name(),
            receipt: Some(receipt),
            visibility_timeout: Some(visibility_timeout),
            body,
        };
        let response = self.client().update_message(request).await?.into_inner();
        Ok(ReceiptRef { message_id, pop_receipt: response.pop_receipt })
    }

    /// Deletes one message.
    pub async fn delete(&self, receipt: ReceiptRef) -> Result<(), CallError> {
        self.delete_all(vec![receipt]).await?.remove(0)
    }

    /// Deletes messages; the outcome of each.
    pub async fn delete_all(
        &self,
        receipts: Vec<ReceiptRef>,
    ) -> Result<Vec<Result<(), CallError>>, CallError> {
        let request = proto::DeleteMessagesRequest { queue: self.name(), receipts };
        let response = self.client().delete_messages(request).await?;
        let outcome = |result: proto::DeleteResult| match result.error {
            None => Ok(()),
            Some(error) => Err(CallError::of_item(&error)),
        };
        Ok(response.into_inner().results.into_iter().map(outcome).collect())
    }

    /// Deletes every message.
    pub async fn clear(&self) -> Result<(), CallError> {
        let request = proto::ClearMessagesRequest { queue: self.name() };
        Ok(self.client().clear_messages(request).await.map(drop)?)
    }

    /// Redrives messages to their source, or to another queue.
    pub async fn redrive(&self, destination: &str, max: u32) -> Result<u32, CallError> {
        let (queue, destination) = (self.name(), destination.to_owned());
        let max_messages = Some(max);
        let request = proto::RedriveMessagesRequest { queue, destination, max_messages };
        Ok(self.client().redrive_messages(request).await?.into_inner().moved)
    }

    /// The queue and its statistics.
    pub async fn get(&self) -> Result<(proto::Queue, proto::QueueStats), CallError> {
        let request = proto::GetQueueRequest { queue: self.name() };
        let response = self.client().get_queue(request).await?.into_inner();
        Ok((response.queue.expect("a queue"), response.stats.expect("its stats")))
    }

    /// How many messages it holds.
    pub async fn count(&self) -> u64 {
        self.get().await.expect("the queue exists").1.approximate_message_count
    }

    /// Replaces its access policies.
    pub async fn set_policies(&self, policies: Vec<AccessPolicy>) -> Result<(), CallError> {
        let request = proto::SetQueueAccessPoliciesRequest { queue: self.name(), policies };
        Ok(self.client().set_queue_access_policies(request).await.map(drop)?)
    }

    /// Deletes the queue.
    pub async fn drop_queue(&self) -> Result<(), CallError> {
        let request = proto::DeleteQueueRequest { queue: self.name() };
        Ok(self.client().delete_queue(request).await.map(drop)?)
    }
}
