//! NATS JetStream: a work queue on disk, every publication synced before it is acknowledged. Acknowledgements of
//! consumers are not confirmed.

use std::{fs, process::Command};

use async_nats::jetstream::{
    self,
    consumer::{AckPolicy, pull},
    stream::{RetentionPolicy, StorageType},
};
use async_trait::async_trait;
use futures::StreamExt as _;

use crate::{
    AHEAD, CLIENTS, CONNECTIONS,
    load::{self, Started},
    servers::{Installed, Server, free_port},
};

const SUBJECT: &str = "bench";

struct Client {
    context: jetstream::Context,
    consumer: pull::Config,
    /// From the first cycle on: while the backlog is made, nobody consumes.
    messages: Option<pull::Stream>,
}

/// Starts a server with a work queue.
pub(crate) async fn start(installed: &Installed) -> Result<Started, String> {
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
    let clients = connect(port).await.map_err(|error| error.to_string())?;
    Ok(Started { server, clients })
}

async fn connect(port: u16) -> Result<Vec<Box<dyn load::Client>>, async_nats::Error> {
    let mut contexts = Vec::new();
    for _ in 0..CONNECTIONS {
        let connection = async_nats::connect(format!("127.0.0.1:{port}")).await?;
        contexts.push(jetstream::new(connection));
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
    stream.await?.create_consumer(consumer.clone()).await?;
    let client = |context: &jetstream::Context| {
        let (context, consumer) = (context.clone(), consumer.clone());
        Box::new(Client { context, consumer, messages: None }) as Box<dyn load::Client>
    };
    Ok(contexts.iter().cycle().take(CLIENTS).map(client).collect())
}

impl Client {
    async fn consume(&self) -> Result<pull::Stream, async_nats::Error> {
        let stream = self.context.get_stream_no_info(SUBJECT).await?;
        let name = self.consumer.durable_name.clone().unwrap_or_default();
        let consumer = stream.get_or_create_consumer(&name, self.consumer.clone()).await?;
        Ok(consumer.stream().max_messages_per_batch(AHEAD.into()).messages().await?)
    }
}

#[async_trait]
impl load::Client for Client {
    async fn send(&mut self) {
        let sent = self.context.publish(SUBJECT, load::payload_bytes()).await;
        sent.expect("a message is sent").await.expect("and acknowledged");
    }

    async fn cycle(&mut self) {
        self.send().await;
        if self.messages.is_none() {
            self.messages = Some(self.consume().await.expect("a consumer"));
        }
        let messages = self.messages.as_mut().expect("it was made above");
        let message = messages.next().await.expect("the consumer goes on").expect("a message");
        message.ack().await.expect("it is acknowledged");
    }
}
