//! A client of the Azure Storage protocol that signs requests and does nothing else for them, so
//! that a test says every byte that matters.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};
use tokio::net::TcpStream;
use trestle_service::{
    account::AccountKey,
    clock::{Clock as _, SystemClock},
    shared_key::{Scheme, table},
};

use crate::Server;

const DATE: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);
/// The account of development, which every request here is for.
const ACCOUNT: &str = "devstoreaccount1";

/// A server, and the address of its tables.
pub struct Rest {
    server: Server,
    address: String,
    _data: TempDir,
}

/// A request to be signed.
#[derive(Debug, Clone)]
pub struct Ask {
    method: Method,
    /// Path and query behind the account.
    target: String,
    headers: HeaderMap,
    body: Bytes,
    scheme: Option<Scheme>,
}

/// What was answered.
#[derive(Debug, Clone)]
pub struct Told {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Rest {
    /// Starts a server with a store of its own.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with settings, as variables.
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let path = data.path().to_str().expect("a path in UTF-8").to_owned();
        let server = Server::start(&["--data-dir", &path], settings);
        let address = server.address("azure_table");
        Self { server, address, _data: data }
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Where tables are served.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Address of the account, as answers spell it.
    pub fn base(&self) -> String {
        format!("http://{}/{ACCOUNT}", self.address)
    }

    /// Sends a request and waits for the whole answer.
    pub async fn send(&self, ask: Ask) -> Told {
        let path = format!("/{ACCOUNT}{}", ask.target);
        self.send_to(&path, ask).await
    }

    /// The same with the whole path given, as to another account.
    pub async fn send_to(&self, path: &str, ask: Ask) -> Told {
        let stream = TokioIo::new(TcpStream::connect(&self.address).await.expect("a listener"));
        let (mut to, connection) = http1::handshake(stream).await.expect("HTTP");
        tokio::spawn(connection);
        let request = ask.signed(path, &self.address);
        let answer = to.send_request(request.map(Full::new)).await.expect("an answer");
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.expect("the whole answer").to_bytes();
        Told { status: parts.status, headers: parts.headers, body }
    }

    /// Creates a table.
    pub async fn table(&self, name: &str) {
        let body = format!(r#"{{"TableName":"{name}"}}"#);
        let told = self.send(Ask::json("POST", "/Tables", &body)).await;
        assert_eq!(told.status, StatusCode::CREATED, "{told:?}");
    }

    /// Inserts an entity.
    pub async fn insert(&self, table: &str, json: &str) -> Told {
        let told = self.send(Ask::json("POST", &format!("/{table}"), json)).await;
        assert_eq!(told.status, StatusCode::CREATED, "{told:?}");
        told
    }
}

impl Ask {
    /// A request without a body.
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.parse().expect("a method"),
            target: target.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            scheme: Some(Scheme::Full),
        }
        .with("accept", "application/json;odata=nometadata")
        .with("x-ms-version", "2019-02-02")
    }

    /// A request whose body is JSON.
    pub fn json(method: &str, target: &str, body: &str) -> Self {
        Self::new(method, target).with("content-type", "application/json").body(body)
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

    /// With a body.
    #[must_use]
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Bytes::copy_from_slice(body.as_ref());
        self
    }

    /// Signed by this scheme; by none.
    #[must_use]
    pub fn scheme(mut self, scheme: Option<Scheme>) -> Self {
        self.scheme = scheme;
        self
    }

    /// The request to a path at a host, with its date and its signature.
    pub fn signed(self, path: &str, host: &str) -> Request<Bytes> {
        let Self { method, mut headers, body, scheme, .. } = self;
        headers.insert("host", host.parse().expect("a host"));
        if body.is_empty() {
            // The client says the length of other bodies, and nothing of one that is not there.
            headers.insert("content-length", HeaderValue::from_static("0"));
        }
        let now = OffsetDateTime::from_unix_timestamp(SystemClock.now().to_unix().0);
        let date = now.expect("a date").format(DATE).expect("a date");
        headers.entry("x-ms-date").or_insert(date.parse().expect("a header"));
        let text = |name: &str| {
            headers.get(name).map_or("", |value| value.to_str().expect("text")).to_owned()
        };
        let (path_only, query) = path.split_once('?').unwrap_or((path, ""));
        if let Some(scheme) = scheme {
            let signed = table::Signed {
                scheme,
                method: method.as_str(),
                content_md5: &text("content-md5"),
                content_type: &text("content-type"),
                date: &text("x-ms-date"),
                path: path_only,
                comp: query.split('&').find_map(|pair| pair.strip_prefix("comp=")),
            };
            let signature = STANDARD.encode(signed.sign(ACCOUNT, &AccountKey::development()));
            let name = if scheme == Scheme::Full { "SharedKey" } else { "SharedKeyLite" };
            let authorization = format!("{name} {ACCOUNT}:{signature}");
            headers.insert("authorization", authorization.parse().expect("a header"));
        }
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().expect("a path");
        *request.headers_mut() = headers;
        request
    }
}

impl Told {
    /// A header; empty where it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("UTF-8")
    }

    /// Status and error code of a failure, which headers and body say alike.
    pub fn failure(&self) -> (u16, &str) {
        let code = self.header("x-ms-error-code");
        let text = self.text();
        let said = text.contains(&format!("\"code\":\"{code}\""))
            || text.contains(&format!("<m:code>{code}</m:code>"));
        assert!(!code.is_empty() && said, "{self:?}");
        (self.status.as_u16(), code)
    }
}
