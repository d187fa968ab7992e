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
    CreateQueueRequest, DeleteMessagesRequest, Delivery, OutgoingMessage, Queue, ReceiptRef,
    ReceiveMessagesRequest, SendMessagesRequest, StreamMessagesRequest, StreamMessagesResponse,
    outgoing_message::Body,
    queue_service_client::QueueServiceClient,
    stream_messages_request::{Grant, Message, Open},
};

use crate::{
    AHEAD, CLIENTS, CONNECTIONS,
    load::{self, Started, Way},
    servers::{Installed, Server, free_port},
};

const QUEUE: &str = "bench";

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
    /// What came together with the one before.
    ready: Vec<Delivery>,
}

/// Starts a server with a queue.
pub(crate) async fn start(installed: &Installed, way: Way) -> Result<Started, String> {
    let (mut server, port) = (Server::new(), free_port());
    let mut command = Command::new(&installed.trestle);
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--admin", "127.0.0.1:0"]);
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
    async fn ask(&mut self) -> Delivery {
        let request = ReceiveMessagesRequest { queue: QUEUE.to_owned(), ..Default::default() };
        let received = self.rpc.receive_messages(request).await.expect("a message is received");
        received.into_inner().deliveries.pop().expect("a message waits")
    }

    async fn take(&mut self) -> Delivery {
        if self.pushed.is_none() {
            let (grants, requests) = mpsc::channel(usize::from(AHEAD));
            let open = Open { queue: QUEUE.to_owned(), credit: AHEAD.into(), ..Default::default() };
            grants.send(request(Message::Open(open))).await.expect("it is taken below");
            let opened = self.rpc.stream_messages(ReceiverStream::new(requests)).await;
            let deliveries = opened.expect("a stream").into_inner();
            self.pushed = Some(Pushed { grants, deliveries, ready: Vec::new() });
        }
        let pushed = self.pushed.as_mut().expect("it was made above");
        if pushed.ready.is_empty() {
            let answer = pushed.deliveries.message().await.expect("the stream goes on");
            pushed.ready = answer.expect("without an end").deliveries;
        }
        let grant = request(Message::Grant(Grant { credit: 1 }));
        pushed.grants.send(grant).await.expect("the stream goes on");
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
        let messages = vec![OutgoingMessage { body, ..OutgoingMessage::default() }];
        let request =
            SendMessagesRequest { queue: QUEUE.to_owned(), messages, ..Default::default() };
        self.rpc.send_messages(request).await.expect("a message is sent");
    }

    async fn cycle(&mut self) {
        self.send().await;
        let delivery = match self.way {
            Way::Asked => self.ask().await,
            Way::Pushed => self.take().await,
        };
        let message_id = delivery.message.expect("a delivery has a message").message_id;
        let receipts = vec![ReceiptRef { message_id, pop_receipt: delivery.pop_receipt }];
        let request = DeleteMessagesRequest { queue: QUEUE.to_owned(), receipts };
        self.rpc.delete_messages(request).await.expect("a message is deleted");
    }
}
