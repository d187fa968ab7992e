//! Trestle as it is by default: every call is answered when its write is on disk.

use std::process::Command;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Streaming,
    transport::{Channel, Endpoint},
};
use trestle_proto::queue::v1::{
    CreateQueueRequest, CreditGrant, DeleteMessagesRequest, Delivery, OutgoingMessage, Queue,
    ReceiptRef, ReceiveMessagesRequest, SendMessagesRequest, StreamMessagesRequest,
    StreamMessagesResponse, StreamOpen, outgoing_message::Body,
    queue_service_client::QueueServiceClient, stream_messages_request::Message,
};

use crate::{
    CLIENTS, CONNECTIONS,
    load::{self, Started, Way},
    servers::{Installed, Server, free_port},
};

const QUEUE: &str = "bench";
/// The visibility timeout: messages sent ahead wait for the next turn.
const VISIBILITY_TIMEOUT: prost_types::Duration = prost_types::Duration { seconds: 600, nanos: 0 };

struct Client {
    rpc: QueueServiceClient<Channel>,
    way: Way,
    /// From the first cycle on, where messages are pushed.
    pushed: Option<Pushed>,
}

/// A stream of deliveries.
struct Pushed {
    grants: mpsc::Sender<StreamMessagesRequest>,
    deliveries: Streaming<StreamMessagesResponse>,
    /// Messages received together with the previous one.
    ready: Vec<Delivery>,
}

/// Starts a server with a queue.
pub(crate) async fn start(installed: &Installed, way: Way) -> Result<Started, String> {
    let (mut server, port) = (Server::new(), free_port());
    let mut command = Command::new(&installed.trestle);
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--admin", "127.0.0.1:0"]);
    // Free ones, too: the edges for Azure clients are not measured here.
    command.args(["--azure-queue", "127.0.0.1:0", "--azure-table", "127.0.0.1:0"]);
    command.args(["--azure-blob", "off"]);
    command.arg("--data-dir").arg(server.data().join("data"));
    server.spawn(&mut command)?;
    server.listening(port).await?;
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
    let endpoint = endpoint.expect("an address").tcp_nodelay(true);
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let channel = endpoint.connect().await.map_err(|error| error.to_string())?;
        connections.push(QueueServiceClient::new(channel));
    }
    let queue = Queue { name: QUEUE.to_owned(), ..Queue::default() };
    let created = connections[0].create_queue(CreateQueueRequest { queue: Some(queue) }).await;
    created.map_err(|status| status.to_string())?;
    let client = |rpc: &QueueServiceClient<Channel>| {
        Box::new(Client { rpc: rpc.clone(), way, pushed: None }) as Box<dyn load::Client>
    };
    let clients = connections.iter().cycle().take(CLIENTS).map(client).collect();
    Ok(Started { server, clients })
}

impl Client {
    async fn pull(&mut self) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        while deliveries.len() < self.way.messages() {
            let missing = u32::try_from(self.way.messages() - deliveries.len());
            let request = ReceiveMessagesRequest {
                queue: QUEUE.to_owned(),
                max_messages: missing.ok(),
                visibility_timeout: Some(VISIBILITY_TIMEOUT),
                ..Default::default()
            };
            let received = self.rpc.receive_messages(request).await.expect("it is received");
            let received = received.into_inner().deliveries;
            assert!(!received.is_empty(), "a message waits");
            deliveries.extend(received);
        }
        deliveries
    }

    async fn take(&mut self) -> Delivery {
        if self.pushed.is_none() {
            let credit = self.way.ahead();
            let (grants, requests) = mpsc::channel(usize::from(credit));
            let visibility_timeout = Some(VISIBILITY_TIMEOUT);
            let open =
                StreamOpen { queue: QUEUE.to_owned(), credit: credit.into(), visibility_timeout };
            grants.send(request(Message::Open(open))).await.expect("it is received below");
            let opened = self.rpc.stream_messages(ReceiverStream::new(requests)).await;
            let deliveries = opened.expect("a stream").into_inner();
            self.pushed = Some(Pushed { grants, deliveries, ready: Vec::new() });
        }
        let pushed = self.pushed.as_mut().expect("it was made above");
        if pushed.ready.is_empty() {
            let answer = pushed.deliveries.message().await.expect("the stream continues");
            pushed.ready = answer.expect("without an end").deliveries;
        }
        let grant = request(Message::Grant(CreditGrant { credit: 1 }));
        pushed.grants.send(grant).await.expect("the stream continues");
        pushed.ready.pop().expect("an answer holds a delivery")
    }
}

fn request(message: Message) -> StreamMessagesRequest {
    StreamMessagesRequest { message: Some(message) }
}

#[async_trait]
impl load::Client for Client {
    async fn send(&mut self) {
        let body = Some(Body::Text(load::payload().to_owned()));
        let messages = vec![OutgoingMessage { body, ..Default::default() }; self.way.messages()];
        let request =
            SendMessagesRequest { queue: QUEUE.to_owned(), messages, ..Default::default() };
        let sent = self.rpc.send_messages(request).await.expect("they are sent").into_inner();
        assert_eq!(sent.results.len(), self.way.messages());
    }

    async fn cycle(&mut self) {
        self.send().await;
        let deliveries = match self.way {
            Way::Pulled | Way::Batched => self.pull().await,
            Way::Pushed => vec![self.take().await],
        };
        let receipts = deliveries.into_iter().map(|delivery| {
            let message_id = delivery.message.expect("a delivery has a message").message_id;
            ReceiptRef { message_id, pop_receipt: delivery.pop_receipt }
        });
        let receipts = receipts.collect();
        let request = DeleteMessagesRequest { queue: QUEUE.to_owned(), receipts };
        let deleted = self.rpc.delete_messages(request).await.expect("they are deleted");
        let failed = deleted.into_inner().results.into_iter().find_map(|result| result.error);
        assert_eq!(failed, None, "a receipt held");
    }
}
