//! A client of queues by the Azure Storage protocol that signs its requests and does nothing else
//! for them, so that a test says every byte that matters.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prost_types::Timestamp;
use tempfile::TempDir;
use tokio::net::TcpStream;
use trestle::{
    running::{Listeners, Running},
    settings::Settings,
};
use trestle_azure::xml::http_date;
use trestle_runtime::{config::Sources, openmetrics::Exposition};
use trestle_service::{
    account::AccountKey,
    clock::{Clock as _, SystemClock},
    shared_key::{Scheme, queue::Signed},
};

use crate::world::{node, store};

/// The account of development, which requests here are for.
const ACCOUNT: &str = "devstoreaccount1";

/// A server in this process, behind sockets as any other, and the address of its queues.
pub struct QueueRest {
    address: String,
    // Dropped in this order: what is served before the directory that it uses.
    _running: Running,
    _data: TempDir,
}

/// A request to queues.
#[derive(Debug, Clone)]
pub struct QueueAsk {
    method: Method,
    /// Path and query, the account included.
    target: String,
    headers: HeaderMap,
    body: Bytes,
    scheme: Option<Scheme>,
}

/// What queues answered.
#[derive(Debug, Clone)]
pub struct QueueTold {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: String,
}

impl QueueRest {
    /// Starts a server with a store of its own.
    pub async fn start() -> Self {
        let free = "127.0.0.1:0".to_owned();
        let listeners = ["LISTEN", "ADMIN", "AZURE_TABLE", "AZURE_QUEUE"];
        let free = listeners.map(|name| (format!("TRESTLE__SERVER__{name}"), free.clone()));
        let sources = Sources { environment: free.into_iter().collect(), ..Sources::default() };
        let settings = Settings::load(sources).expect("settings that make sense");
        let (engine, data) = store();
        let listeners = Listeners::bind(&settings).await.expect("free addresses");
        let address = listeners.azure_queue().expect("queues are served").to_string();
        let node = node(&settings, engine).await;
        let running = Running::start(node, listeners, &settings, Exposition::default());
        Self { address, _running: running, _data: data }
    }

    /// Where queues are served.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request and waits for the whole answer.
    pub async fn send(&self, ask: QueueAsk) -> QueueTold {
        let stream = TokioIo::new(TcpStream::connect(&self.address).await.expect("a listener"));
        let (mut to, connection) = http1::handshake(stream).await.expect("HTTP");
        tokio::spawn(connection);
        let request = ask.request(&self.address);
        let answer = to.send_request(request.map(Full::new)).await.expect("an answer");
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.expect("the whole answer").to_bytes();
        let body = String::from_utf8(body.to_vec()).expect("UTF-8");
        QueueTold { status: parts.status, headers: parts.headers, body }
    }

    /// Sends a request without a body.
    pub async fn ask(&self, method: &str, target: &str) -> QueueTold {
        self.send(QueueAsk::new(method, target)).await
    }

    /// Creates a queue.
    pub async fn queue(&self, name: &str) {
        let told = self.ask("PUT", &format!("/{name}")).await;
        assert_eq!(told.status, StatusCode::CREATED, "{told:?}");
    }

    /// Sends a message to a queue, with a query such as `?messagettl=1`.
    pub async fn message(&self, queue: &str, query: &str, text: &str) -> QueueTold {
        let told =
            self.send(QueueAsk::message("POST", &format!("/{queue}/messages{query}"), text)).await;
        assert_eq!(told.status, StatusCode::CREATED, "{told:?}");
        told
    }
}

impl QueueAsk {
    /// A signed request without a body, to path and query behind the account.
    pub fn new(method: &str, target: &str) -> Self {
        Self::to(method, &format!("/{ACCOUNT}{target}"))
    }

    /// The same to path and query as they are given.
    pub fn to(method: &str, target: &str) -> Self {
        Self {
            method: method.parse().expect("a method"),
            target: target.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            scheme: Some(Scheme::Full),
        }
        .with("x-ms-version", "2021-12-02")
    }

    /// A signed request whose body is a message with a text.
    pub fn message(method: &str, target: &str, text: &str) -> Self {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('\r', "&#xD;");
        Self::new(method, target)
            .body(format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>"))
    }

    /// With a header, in place of one of its name.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("a header");
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// With a further header.
    #[must_use]
    pub fn and(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("a header");
        self.headers.append(HeaderName::from_static(name), value);
        self
    }

    /// Without a header.
    #[must_use]
    pub fn without(mut self, name: &'static str) -> Self {
        self.headers.remove(name);
        self
    }

    /// With a body of XML.
    #[must_use]
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Bytes::copy_from_slice(body.as_ref());
        self.with("content-type", "application/xml")
    }

    /// Signed by this scheme; by none.
    #[must_use]
    pub fn scheme(mut self, scheme: Option<Scheme>) -> Self {
        self.scheme = scheme;
        self
    }

    /// Signed over a text that the test makes of the usual one.
    #[must_use]
    pub fn signed_otherwise(self, host: &str, change: impl Fn(String) -> String) -> Self {
        let mut ask = self;
        ask.complete(host);
        let text = change(ask.signed().string_to_sign(ACCOUNT));
        let signature = STANDARD.encode(AccountKey::development().sign(&text));
        ask.scheme = None;
        ask.with("authorization", &format!("SharedKey {ACCOUNT}:{signature}"))
    }

    /// The headers that are there whatever a test says.
    fn complete(&mut self, host: &str) {
        let (seconds, nanos) = SystemClock.now().to_unix();
        let date = http_date(Some(&Timestamp { seconds, nanos }));
        let date = date.parse().expect("a header");
        let headers = &mut self.headers;
        headers.entry(header::HOST).or_insert(host.parse().expect("a host"));
        headers.entry("x-ms-date").or_insert(date);
        if !self.body.is_empty() || matches!(self.method, Method::PUT | Method::POST) {
            headers.entry(header::CONTENT_LENGTH).or_insert(self.body.len().into());
        }
    }

    fn signed(&self) -> Signed<'_> {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let scheme = self.scheme.unwrap_or(Scheme::Full);
        Signed { scheme, method: self.method.as_str(), headers: &self.headers, path, query }
    }

    /// The request to a host, with its date and its signature.
    fn request(mut self, host: &str) -> Request<Bytes> {
        self.complete(host);
        if let Some(scheme) = self.scheme {
            let signature = self.signed().sign(ACCOUNT, &AccountKey::development());
            let name = if scheme == Scheme::Full { "SharedKey" } else { "SharedKeyLite" };
            let signed = format!("{name} {ACCOUNT}:{}", STANDARD.encode(signature));
            self.headers.insert(header::AUTHORIZATION, signed.parse().expect("a header"));
        }
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target.parse().expect("a target");
        *request.headers_mut() = self.headers;
        request
    }
}

impl QueueTold {
    /// A header; empty where it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// The status, as a number.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The texts of every element of this name, in their order.
    pub fn all(&self, name: &str) -> Vec<String> {
        let (open, close) = (format!("<{name}"), format!("</{name}>"));
        let (mut rest, mut texts) = (self.body.as_str(), Vec::new());
        while let Some((_, after)) = rest.split_once(&open) {
            rest = after;
            if let Some(after) = after.strip_prefix(" />") {
                texts.push(String::new());
                rest = after;
            } else if let Some(after) = after.strip_prefix('>') {
                let (text, later) = after.split_once(&close).expect("the element ends");
                texts.push(unescaped(text));
                rest = later;
            }
        }
        texts
    }

    /// The text of the only element of this name.
    pub fn only(&self, name: &str) -> String {
        let mut texts = self.all(name);
        assert_eq!(texts.len(), 1, "one {name}: {self:?}");
        texts.remove(0)
    }

    /// Status and error code of a failure, which headers and body say alike.
    pub fn failure(&self) -> (u16, &str) {
        let code = self.header("x-ms-error-code");
        let said = format!("<Error><Code>{code}</Code><Message>");
        assert!(!code.is_empty() && self.body.contains(&said), "{self:?}");
        (self.status(), code)
    }
}

fn unescaped(text: &str) -> String {
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#xD;", "\r"), ("&amp;", "&")];
    plain.into_iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
