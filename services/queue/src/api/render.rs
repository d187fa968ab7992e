//! From domain types to responses.

use std::time::Duration;

use bytes::Bytes;
use trestle_kv::EngineStatus;
use trestle_model::{fault::Fault, time::Ticks};
use trestle_proto::queue::v1::{self as proto, message::Body as ProtoBody, send_result::Outcome};
use trestle_rpc::{instance::instance_id, served_store::durability};

use super::item_error;
use crate::{
    deduplication::Sent,
    messages::Delivered,
    peek::Peeked,
    receipt::Receipt,
    record::QueueRecord,
    stats::QueueStats,
    stored::{Body, MessageState, Payload},
};

fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}

/// A queue.
pub(super) fn queue(name: &str, record: QueueRecord) -> proto::Queue {
    let settings = record.settings;
    let dead_letter = settings.dead_letter.map(|policy| proto::DeadLetterPolicy {
        queue: policy.queue.as_str().to_owned(),
        max_dequeue_count: policy.dequeue_count_max,
    });
    proto::Queue {
        name: name.to_owned(),
        metadata: settings.metadata.into_iter().collect(),
        dead_letter,
        deduplication_window: settings.deduplication_window.map(duration),
        create_time: Some(record.created_at.into()),
    }
}

/// Queue statistics.
pub(super) fn stats(stats: QueueStats) -> proto::QueueStats {
    let age = |inserted_at| duration(stats.now.since(inserted_at));
    proto::QueueStats {
        approximate_message_count: stats.messages,
        oldest_message_age: stats.oldest_inserted_at.map(age),
    }
}

/// A message.
pub(super) fn message(state: &MessageState, body: Body) -> proto::Message {
    let origin = body.origin.map(|origin| proto::DeadLetterOrigin {
        queue: origin.queue,
        dequeue_count: origin.dequeue_count,
    });
    proto::Message {
        message_id: state.id.to_string(),
        insertion_time: Some(state.inserted_at.into()),
        expiration_time: state.expires_at.map(Into::into),
        dequeue_count: state.dequeue_count,
        dead_letter_origin: origin,
        ordering_group: body.group.unwrap_or_default(),
        body: Some(payload(body.payload)),
        visible_time: None,
    }
}

/// A message that was peeked at.
pub(super) fn peeked(Peeked { state, body, visible_at }: Peeked) -> proto::Message {
    proto::Message { visible_time: visible_at.map(Into::into), ..message(&state, body) }
}

fn payload(payload: Payload) -> ProtoBody {
    match payload {
        // Checked when it was sent; damage would have failed the checksum of its block.
        Payload::Text(bytes) => ProtoBody::Text(text(&bytes)),
        Payload::Data(bytes) => ProtoBody::Data(bytes),
    }
}

fn text(bytes: &Bytes) -> String {
    // The check costs most; the lossy conversion takes five times as long.
    String::from_utf8(bytes.to_vec())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A delivery.
pub(super) fn delivery(delivered: Delivered) -> proto::Delivery {
    proto::Delivery {
        pop_receipt: delivered.receipt().to_text(),
        next_visible_time: Some(delivered.slot.visible_at.into()),
        message: Some(message(&delivered.state, delivered.body)),
    }
}

/// The outcomes of a send.
pub(super) fn sent(sent: Vec<Result<Sent, Fault>>) -> proto::SendMessagesResponse {
    let outcome = |sent| match sent {
        Ok(sent) => Outcome::Sent(sent_message(&sent)),
        Err(fault) => Outcome::Error(item_error(fault)),
    };
    let results = sent.into_iter().map(|sent| proto::SendResult { outcome: Some(outcome(sent)) });
    proto::SendMessagesResponse { results: results.collect() }
}

fn sent_message(sent: &Sent) -> proto::SentMessage {
    let state = &sent.sent.state;
    proto::SentMessage {
        message_id: state.id.to_string(),
        insertion_time: Some(state.inserted_at.into()),
        expiration_time: state.expires_at.map(Into::into),
        pop_receipt: sent.receipt().map(Receipt::to_text).unwrap_or_default(),
        next_visible_time: (!sent.sent.waits).then(|| sent.sent.slot.visible_at.into()),
        duplicate: sent.is_duplicate,
    }
}

/// The state of the service.
pub(super) fn service_stats(
    engine: &EngineStatus,
    started_at: Ticks,
    queues_being_reclaimed: usize,
) -> proto::GetServiceStatsResponse {
    proto::GetServiceStatsResponse {
        durability: durability(engine.durability).into(),
        engine: engine.name.to_owned(),
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        start_time: Some(started_at.into()),
        storage_bytes: engine.disk.map_or(0, |disk| disk.storage_bytes),
        free_bytes: engine.disk.map(|disk| disk.free_bytes),
        queues_being_reclaimed: queues_being_reclaimed as u64,
        instance_id: instance_id().to_owned(),
        quotas: Vec::new(),
        processes: Vec::new(),
    }
}
