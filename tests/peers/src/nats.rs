//! NATS JetStream: a work queue on disk, every publication synced before it is acknowledged. Acknowledgements of
//! consumers are not confirmed. What is pushed is fetched ahead in batches by the client.

use std::{fs, process::Command, time::Duration};

use async_nats::jetstream::{
    self,
    consumer::{self, AckPolicy, pull},
    stream::{RetentionPolicy, StorageType},
};
use async_trait::async_trait;
use futures::StreamExt as _;

use crate::{
    CLIENTS, CONNECTIONS,
    load::{self, Started, Way},
    servers::{Installed, Server, free_port},
};

const SUBJECT: &str = "bench";
/// How long an acknowledgement may take: two thousand publications may wait for it, each with a sync of its own.
const TIMEOUT: Duration = Duration::from_secs(60);

struct Client {
    context: jetstream::Context,
    way: Way,
    consumer: consumer::Consumer<pull::Config>,
    /// From the first cycle on: while the backlog is made, there are no consumers.
    messages: Option<pull::Stream>,
}

/// Starts a server with a work queue.
pub(crate) async fn start(installed: &Installed, way: Way) -> Result<Started, String> {
    let binary = installed.peers.join("root/usr/sbin/nats-server");
    if !binary.exists() {
        return Err("it is not installed".to_owned());
    }
    let (mut server, port) = (Server::new(), free_port());
    let store = server.data().join("jetstream");
    let settings = server.data().join("settings");
    let text = format!(
        "host: 127.0.0.1\nport: {port}\njetstream {{ store_dir: {store:?}, sync_interval: always }}\n"
    );
    fs::write(&settings, text).map_err(|error| error.to_string())?;
    server.spawn(Command::new(binary).arg("--config").arg(settings))?;
    server.listening(port).await?;
    let clients = connect(port, way).await.map_err(|error| error.to_string())?;
    Ok(Started { server, clients })
}

async fn connect(port: u16, way: Way) -> Result<Vec<Box<dyn load::Client>>, async_nats::Error> {
    let mut contexts = Vec::new();
    for _ in 0..CONNECTIONS {
        let connection = async_nats::connect(format!("127.0.0.1:{port}")).await?;
        let mut context = jetstream::new(connection);
        context.set_timeout(TIMEOUT);
        contexts.push(context);
    }
    let stream = contexts[0].create_stream(jetstream::stream::Config {
        name: SUBJECT.to_owned(),
        subjects: vec![SUBJECT.to_owned()],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        ..Default::default()
    });
    let consumer = pull::Config {
        durable_name: Some(SUBJECT.to_owned()),
        ack_policy: AckPolicy::Explicit,
        max_ack_pending: -1,
        ..Default::default()
    };
    stream.await?.create_consumer(consumer).await?;
    let mut clients: Vec<Box<dyn load::Client>> = Vec::new();
    for context in contexts.iter().cycle().take(CLIENTS) {
        let stream = context.get_stream_no_info(SUBJECT).await?;
        let consumer = stream.get_consumer(SUBJECT).await?;
        clients.push(Box::new(Client { context: context.clone(), way, consumer, messages: None }));
    }
    Ok(clients)
}

impl Client {
    async fn pull(&self) -> jetstream::Message {
        let mut fetched = self.consumer.fetch().max_messages(1).messages().await.expect("fetched");
        fetched.next().await.expect("a message waits").expect("a message")
    }

    async fn take(&mut self) -> jetstream::Message {
        if self.messages.is_none() {
            let ahead = self.way.ahead().into();
            let messages = self.consumer.stream().max_messages_per_batch(ahead).messages().await;
            self.messages = Some(messages.expect("a consumer"));
        }
        let messages = self.messages.as_mut().expect("it was made above");
        messages.next().await.expect("the consumer continues").expect("a message")
    }
}

#[async_trait]
impl load::Client for Client {
    /// All of them, then all the acknowledgements.
    async fn send(&mut self) {
        let mut acknowledged = Vec::with_capacity(self.way.messages());
        for _ in 0..self.way.messages() {
            let sent = self.context.publish(SUBJECT, load::payload_bytes()).await;
            acknowledged.push(sent.expect("a message is sent"));
        }
        for sent in acknowledged {
            sent.await.expect("and acknowledged");
        }
    }

    async fn cycle(&mut self) {
        self.send().await;
        for _ in 0..self.way.messages() {
            let message = match self.way {
                Way::Pulled => self.pull().await,
                Way::Pushed | Way::Batched => self.take().await,
            };
            message.ack().await.expect("it is acknowledged");
        }
    }
}
