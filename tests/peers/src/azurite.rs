//! Azurite: the queue half of the emulator, over its REST protocol. It has its messages in memory and writes them
//! to disk at intervals.

use std::process::Command;

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;

use crate::{
    CLIENTS,
    load::{self, Started, Way},
    servers::{Installed, Server, free_port},
};

/// Azurite's default account, and its well-known key.
pub(crate) const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// The visibility timeout: with a backlog a cycle may take seconds.
const VISIBILITY_SECONDS: u32 = 300;

type Http = legacy::Client<HttpConnector, Full<Bytes>>;

struct Client {
    http: Http,
    way: Way,
    /// Address of the queue.
    queue: String,
    /// The credentials; the same for every call, so that they cost the clients nothing.
    signature: String,
    body: Bytes,
}

/// Starts a server with a queue.
pub(crate) async fn start(installed: &Installed, way: Way) -> Result<Started, String> {
    let binary = installed.program("azurite/node_modules/.bin/azurite-queue")?;
    let (mut server, port) = (Server::new(), free_port());
    let mut command = Command::new(binary);
    command.args(["--silent", "--disableTelemetry", "--queueHost", "127.0.0.1", "--queuePort"]);
    command.arg(port.to_string()).arg("--location").arg(server.data().join("data"));
    server.spawn(&mut command)?;
    server.listening(port).await?;
    let http: Http = legacy::Client::builder(TokioExecutor::new()).build(HttpConnector::new());
    let text = load::payload();
    let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    let (signature, body) = (signature('q'), Bytes::from(body));
    let queue = format!("http://127.0.0.1:{port}/{ACCOUNT}/bench");
    let client = || Client {
        http: http.clone(),
        way,
        queue: queue.clone(),
        signature: signature.clone(),
        body: body.clone(),
    };
    let created = client().call(Method::PUT, "", "", Bytes::new()).await;
    created.map_err(|reason| format!("it does not create a queue: {reason}"))?;
    let clients = (0..CLIENTS).map(|_| Box::new(client()) as Box<dyn load::Client>).collect();
    Ok(Started { server, clients })
}

/// A signature for everything in one service of the account: `b` or `q`.
pub(crate) fn signature(service: char) -> String {
    let (version, end) = ("2018-03-28", "2099-01-01T00:00:00Z");
    let signed = format!("{ACCOUNT}\nrwdlacup\n{service}\nsco\n\n{end}\n\nhttps,http\n{version}\n");
    let key = STANDARD.decode(KEY).expect("base64");
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes());
    let tag = STANDARD.encode(tag);
    let tag = utf8_percent_encode(&tag, NON_ALPHANUMERIC);
    format!("sv={version}&ss={service}&srt=sco&sp=rwdlacup&se={end}&spr=https,http&sig={tag}")
}

impl Client {
    /// The text of the answer.
    async fn call(
        &self,
        method: Method,
        path: &str,
        query: &str,
        body: Bytes,
    ) -> Result<String, String> {
        let address = format!("{}{path}?{}{query}", self.queue, self.signature);
        let request = Request::builder().method(method).uri(address);
        let request = request.header("x-ms-version", "2021-10-04").body(Full::new(body));
        let answer = self.http.request(request.map_err(|error| error.to_string())?).await;
        let (head, body) = answer.map_err(|error| error.to_string())?.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        match head.status {
            StatusCode::OK | StatusCode::CREATED | StatusCode::NO_CONTENT => Ok(text),
            status => Err(format!("{status}: {text}")),
        }
    }
}

/// The text between the tags of an element.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

#[async_trait]
impl load::Client for Client {
    async fn send(&mut self) {
        for _ in 0..self.way.messages() {
            let sent = self.call(Method::POST, "/messages", "", self.body.clone()).await;
            sent.expect("a message is sent");
        }
    }

    async fn cycle(&mut self) {
        self.send().await;
        let messages = self.way.messages();
        let query = format!("&numofmessages={messages}&visibilitytimeout={VISIBILITY_SECONDS}");
        let text = self.call(Method::GET, "/messages", &query, Bytes::new()).await;
        let text = text.expect("messages are received");
        let received = text.split("<QueueMessage>").skip(1).collect::<Vec<_>>();
        assert_eq!(received.len(), messages, "as many wait");
        for message in received {
            let id = element(message, "MessageId").expect("it has an id");
            let receipt = element(message, "PopReceipt").expect("and a receipt");
            let query = format!("&popreceipt={}", utf8_percent_encode(receipt, NON_ALPHANUMERIC));
            let path = format!("/messages/{id}");
            let deleted = self.call(Method::DELETE, &path, &query, Bytes::new()).await;
            deleted.expect("a message is deleted");
        }
    }
}
