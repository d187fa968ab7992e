//! RabbitMQ: a durable queue, persistent messages, publisher confirms. Acknowledgements of consumers are not confirmed;
//! there is nothing of the kind.

use std::process::Command;

use async_trait::async_trait;
use futures::StreamExt as _;
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties, Consumer,
    message::Delivery,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicPublishOptions,
        BasicQosOptions, ConfirmSelectOptions, QueueDeclareOptions,
    },
    types::FieldTable,
};

use crate::{
    CLIENTS, CONNECTIONS,
    load::{self, Started, Way},
    servers::{Installed, Server, free_port},
};

const QUEUE: &str = "bench";
/// Delivery mode of a message that survives a restart.
const PERSISTENT: u8 = 2;

struct Client {
    channel: Channel,
    way: Way,
    /// From the first cycle on, where messages are pushed.
    consumer: Option<Consumer>,
    /// Kept open.
    _connection: std::sync::Arc<Connection>,
}

/// Starts a server with a queue.
pub(crate) async fn start(installed: &Installed, way: Way) -> Result<Started, String> {
    let root = installed.peers.join("root");
    let erlang = root.join("usr/lib/erlang");
    let script = std::fs::read_dir(root.join("usr/lib/rabbitmq/lib")).ok();
    let script = script.and_then(|mut homes| homes.next()?.ok());
    let script = script.ok_or("it is not installed")?.path().join("sbin/rabbitmq-server");
    let (mut server, port, names) = (Server::new(), free_port(), free_port());
    let data = server.data().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", erlang.join("bin").display());
    // The name server of Erlang would otherwise be started as a daemon, and keep running.
    let mut command = Command::new(erlang.join("bin/epmd"));
    command.args(["-address", "127.0.0.1", "-port", &names.to_string()]);
    server.spawn(&mut command)?;
    server.listening(names).await?;
    let mut command = Command::new("sh");
    command.arg(script).env("PATH", path).env("HOME", &data);
    command.env("LD_LIBRARY_PATH", root.join("lib/x86_64-linux-gnu"));
    command.env("ERL_EPMD_PORT", names.to_string()).env("ERL_EPMD_ADDRESS", "127.0.0.1");
    command.env("RABBITMQ_NODENAME", format!("bench{port}@localhost"));
    command.env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1");
    command.env("RABBITMQ_NODE_PORT", port.to_string());
    command.env("RABBITMQ_DIST_PORT", free_port().to_string());
    let loopback = "-kernel inet_dist_use_interface {127,0,0,1}";
    command.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", loopback);
    for (name, file) in [
        ("MNESIA_BASE", "mnesia"),
        ("LOG_BASE", "log"),
        ("CONF_ENV_FILE", "none"),
        ("CONFIG_FILE", "config"),
        ("ADVANCED_CONFIG_FILE", "advanced"),
        ("ENABLED_PLUGINS_FILE", "plugins"),
    ] {
        command.env(format!("RABBITMQ_{name}"), data.join(file));
    }
    // The script then becomes the server, instead of waiting for it.
    command.env("RUNNING_UNDER_SYSTEMD", "true");
    server.spawn(&mut command)?;
    server.listening(port).await?;
    let clients = connect(port, way).await.map_err(|error| error.to_string())?;
    Ok(Started { server, clients })
}

async fn connect(port: u16, way: Way) -> Result<Vec<Box<dyn load::Client>>, lapin::Error> {
    let address = format!("amqp://guest:guest@127.0.0.1:{port}/%2f");
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let connection = Connection::connect(&address, ConnectionProperties::default()).await?;
        connections.push(std::sync::Arc::new(connection));
    }
    let mut clients: Vec<Box<dyn load::Client>> = Vec::new();
    for connection in connections.iter().cycle().take(CLIENTS) {
        let channel = connection.create_channel().await?;
        let (durable, none) = (QueueDeclareOptions::durable(), FieldTable::default());
        channel.queue_declare(QUEUE.into(), durable, none).await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        channel.basic_qos(way.ahead(), BasicQosOptions::default()).await?;
        let connection = std::sync::Arc::clone(connection);
        clients.push(Box::new(Client { channel, way, consumer: None, _connection: connection }));
    }
    Ok(clients)
}

impl Client {
    async fn pull(&mut self) -> Delivery {
        let got = self.channel.basic_get(QUEUE.into(), BasicGetOptions::default()).await;
        got.expect("a message is received").expect("a message waits").delivery
    }

    async fn take(&mut self) -> Delivery {
        if self.consumer.is_none() {
            let options = BasicConsumeOptions::default();
            let consumer =
                self.channel.basic_consume(QUEUE.into(), "".into(), options, FieldTable::default());
            self.consumer = Some(consumer.await.expect("a consumer"));
        }
        let consumer = self.consumer.as_mut().expect("it was made above");
        consumer.next().await.expect("the consumer continues").expect("a message")
    }
}

#[async_trait]
impl load::Client for Client {
    /// All of them, then all the confirmations.
    async fn send(&mut self) {
        let mut confirms = Vec::with_capacity(self.way.messages());
        for _ in 0..self.way.messages() {
            let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
            let (options, payload) = (BasicPublishOptions::default(), load::payload().as_bytes());
            let sent =
                self.channel.basic_publish("".into(), QUEUE.into(), options, payload, properties);
            confirms.push(sent.await.expect("a message is sent"));
        }
        for confirm in confirms {
            let confirmed = confirm.await.expect("and confirmed");
            assert!(confirmed.is_ack(), "{confirmed:?}");
        }
    }

    async fn cycle(&mut self) {
        self.send().await;
        let mut last = match self.way {
            Way::Pulled => self.pull().await,
            Way::Pushed | Way::Batched => self.take().await,
        };
        for _ in 1..self.way.messages() {
            last = self.take().await;
        }
        // One acknowledgement for all of them.
        let options = BasicAckOptions { multiple: self.way == Way::Batched };
        last.ack(options).await.expect("they are acknowledged");
    }
}
