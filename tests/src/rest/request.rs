//! Requests of the Azure Storage protocol.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version, header};
use trestle_azure::date::http_date;
use trestle_identity::{
    account::AccountKey,
    shared_key::{Scheme, SignedRequest},
    spec::{BLOB, QUEUE, TABLE},
};
use trestle_model::time::{Clock as _, SystemClock};

use super::ACCOUNT;

/// A request to be signed. Only the account, the date, and the length of the body are added to what a
/// test sets.
#[derive(Debug, Clone)]
pub struct RestRequest {
    method: Method,
    /// Path and query, the account included.
    target: String,
    headers: HeaderMap,
    body: Bytes,
    version: Version,
    service: Service,
    scheme: Option<Scheme>,
}

/// The service whose rules sign the request.
#[derive(Debug, Clone, Copy)]
enum Service {
    Table,
    Queue,
    Blob,
}

impl RestRequest {
    /// A signed request to tables without a body, to path and query behind the account.
    pub fn table(method: &str, target: &str) -> Self {
        Self::to(Service::Table, method, &format!("/{ACCOUNT}{target}"))
            .with("accept", "application/json;odata=nometadata")
            .with("x-ms-version", "2019-02-02")
    }

    /// The same whose body is JSON.
    pub fn json(method: &str, target: &str, body: &str) -> Self {
        Self::table(method, target).with("content-type", "application/json").body(body)
    }

    /// A signed request to queues without a body, to path and query behind the account.
    pub fn queue(method: &str, target: &str) -> Self {
        Self::to(Service::Queue, method, &format!("/{ACCOUNT}{target}"))
            .with("x-ms-version", "2021-12-02")
    }

    /// A signed request to blobs without a body, to path and query behind the account.
    pub fn blob(method: &str, target: &str) -> Self {
        Self::to(Service::Blob, method, &format!("/{ACCOUNT}{target}"))
            .with("x-ms-version", "2021-12-02")
    }

    /// A signed request to queues whose body is a document of XML.
    pub fn xml(method: &str, target: &str, body: impl AsRef<[u8]>) -> Self {
        Self::queue(method, target).with("content-type", "application/xml").body(body)
    }

    /// The same whose body is a message with a text.
    pub fn message(method: &str, target: &str, text: &str) -> Self {
        let escapes = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('\r', "&#xD;")];
        let text = escapes.into_iter().fold(text.to_owned(), |text, (of, to)| text.replace(of, to));
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        Self::xml(method, target, body)
    }

    fn to(service: Service, method: &str, target: &str) -> Self {
        Self {
            method: method.parse().expect("a method"),
            target: target.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            version: Version::HTTP_11,
            service,
            scheme: Some(Scheme::Full),
        }
    }

    /// To an unchanged path and query, the account included.
    #[must_use]
    pub fn at(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    /// With a header, which replaces one of its name.
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

    /// Over this version of HTTP.
    #[must_use]
    pub fn over(mut self, version: Version) -> Self {
        self.version = version;
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

    /// Signed over a changed string to sign.
    #[must_use]
    pub fn signed_otherwise(mut self, host: &str, change: impl Fn(String) -> String) -> Self {
        self.complete(host);
        let text = change(self.string_to_sign(Scheme::Full));
        let signature = STANDARD.encode(AccountKey::development().sign(&text));
        self.scheme = None;
        self.with("authorization", &format!("SharedKey {ACCOUNT}:{signature}"))
    }

    /// The request to a host, with its date and its signature.
    pub fn to_http(mut self, host: &str) -> Request<Bytes> {
        self.complete(host);
        if let Some(scheme) = self.scheme {
            let signature = AccountKey::development().sign(&self.string_to_sign(scheme));
            let name = if scheme == Scheme::Full { "SharedKey" } else { "SharedKeyLite" };
            let signed = format!("{name} {ACCOUNT}:{}", STANDARD.encode(signature));
            self.headers.insert(header::AUTHORIZATION, signed.parse().expect("a header"));
        }
        let mut request = Request::new(self.body);
        *request.version_mut() = self.version;
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target.parse().expect("a target");
        *request.headers_mut() = self.headers;
        request
    }

    /// The headers that every request has.
    fn complete(&mut self, host: &str) {
        let date = http_date(Some(&SystemClock.now().into()));
        let headers = &mut self.headers;
        headers.entry(header::HOST).or_insert(host.parse().expect("a host"));
        if !headers.contains_key(header::DATE) {
            headers.entry("x-ms-date").or_insert(date.parse().expect("a header"));
        }
        if !self.body.is_empty() || matches!(self.method, Method::PUT | Method::POST) {
            headers.entry(header::CONTENT_LENGTH).or_insert(self.body.len().into());
        }
    }

    fn string_to_sign(&self, scheme: Scheme) -> String {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let (method, headers) = (self.method.as_str(), &self.headers);
        let service = match self.service {
            Service::Table => &TABLE,
            Service::Queue => &QUEUE,
            Service::Blob => &BLOB,
        };
        SignedRequest { service, scheme, method, headers, path, query }.string_to_sign(ACCOUNT)
    }
}
