//! What the access log records from requests and responses: the names in requests, and the statistics of both.

use trestle_proto::queue::v1::{self as proto, message::Body};
use trestle_rpc::call_statistics::{CallStatistics, StatisticsRecorder};

/// A request that contains names. They are recorded before they are checked, so that the log also has the names of a
/// rejected call.
pub(super) trait NamedRequest {
    /// Records the names.
    fn record_names(&self, statistics: &mut CallStatistics);
}

macro_rules! names_a_queue {
    ($($request:ident),+ $(,)?) => {$(
        impl NamedRequest for proto::$request {
            fn record_names(&self, statistics: &mut CallStatistics) {
                statistics.set_queue(&self.queue);
            }
        }
    )+};
}

macro_rules! holds_a_queue {
    ($($request:ident),+ $(,)?) => {$(
        impl NamedRequest for proto::$request {
            fn record_names(&self, statistics: &mut CallStatistics) {
                if let Some(queue) = &self.queue {
                    statistics.set_queue(&queue.name);
                }
            }
        }
    )+};
}

macro_rules! names_nothing {
    ($($request:ident),+ $(,)?) => {$(
        impl NamedRequest for proto::$request {
            fn record_names(&self, _: &mut CallStatistics) {}
        }
    )+};
}

names_a_queue!(
    GetQueueRequest,
    DeleteQueueRequest,
    GetQueueAccessPoliciesRequest,
    SetQueueAccessPoliciesRequest,
    ReceiveMessagesRequest,
    PeekMessagesRequest,
    ClearMessagesRequest,
    RedriveMessagesRequest,
);
holds_a_queue!(CreateQueueRequest, UpdateQueueRequest);
names_nothing!(
    ListQueuesRequest,
    GetServicePropertiesRequest,
    SetServicePropertiesRequest,
    GetServiceStatsRequest,
);

impl NamedRequest for proto::SendMessagesRequest {
    fn record_names(&self, statistics: &mut CallStatistics) {
        statistics.set_queue(&self.queue);
        statistics.written = self.messages.len() as u64;
    }
}

impl NamedRequest for proto::UpdateMessageRequest {
    fn record_names(&self, statistics: &mut CallStatistics) {
        statistics.set_queue(&self.queue);
        statistics.written = 1;
    }
}

impl NamedRequest for proto::DeleteMessagesRequest {
    fn record_names(&self, statistics: &mut CallStatistics) {
        statistics.set_queue(&self.queue);
        statistics.written = self.receipts.len() as u64;
    }
}

/// The first message of a stream contains the name of its queue.
impl<T> NamedRequest for tonic::Streaming<T> {
    fn record_names(&self, _: &mut CallStatistics) {}
}

/// Records which messages a response, or one of a stream of them, returns.
pub(super) fn record_returned<'a>(
    recorder: &StatisticsRecorder,
    messages: impl IntoIterator<Item = Option<&'a proto::Message>>,
) {
    recorder.record(|statistics| {
        for message in messages {
            statistics.returned += 1;
            statistics.bytes +=
                message.and_then(|message| message.body.as_ref()).map_or(0, bytes_of);
        }
    });
}

fn bytes_of(body: &Body) -> u64 {
    let bytes = match body {
        Body::Text(text) => text.len(),
        Body::Data(data) => data.len(),
    };
    bytes as u64
}
