//! Requests to an account over HTTP: signed, retried if they are idempotent, bounded.
//!
//! No error text here contains a query or a message of the server: both may contain signatures.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH},
};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use trestle_command::{
    errors::{CliError, innermost},
    retry::{Temporary, repeated},
    trust::public_tls_config,
};
use trestle_identity::{
    shared_key::{Scheme, SignedRequest},
    spec::{BLOB, QUEUE, TABLE},
};
use trestle_model::time::{Clock as _, SystemClock};

use super::connection::{AzureAuthority, AzureConnection};

/// The version of the protocol.
const VERSION: &str = "2020-12-06";
/// The same for blobs: the first one with the tier Cold.
const BLOB_VERSION: &str = "2021-12-02";
/// Longest wait for one answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Largest answer that is accepted: pages end at 4 MiB, messages at 32 of 64 KiB in XML.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The characters that a path or a query contains unescaped.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text percent-encoded for a path or a query.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// A service of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Tables,
    Queues,
    Blobs,
}

/// A request without a body.
#[derive(Debug, Clone)]
pub(super) struct AzureRequest {
    pub(super) service: Service,
    pub(super) method: Method,
    /// Below the base address, beginning with `/`, encoded.
    pub(super) path: String,
    /// Encoded, without `?`.
    pub(super) query: String,
    /// Media type of the answer.
    pub(super) accept: &'static str,
    /// Further headers.
    pub(super) headers: Vec<(&'static str, String)>,
}

impl AzureRequest {
    /// A GET of XML.
    pub(super) fn get(service: Service, path: String, query: String) -> Self {
        let (method, accept, headers) = (Method::GET, "application/xml", Vec::new());
        Self { service, method, path, query, accept, headers }
    }
}

/// An answer of success.
pub(super) type AzureAnswer = http::Response<Bytes>;

/// A header in text.
pub(super) fn header<'a>(answer: &'a AzureAnswer, name: &str) -> Option<&'a str> {
    answer.headers().get(name)?.to_str().ok()
}

/// A request that failed.
#[derive(Debug)]
pub(super) enum HttpError {
    /// The response is an error.
    Rejected {
        /// Base address of the service.
        address: String,
        status: StatusCode,
        /// Empty where the response has none, which Azure and its emulators never omit.
        code: String,
    },
    /// No valid response arrived.
    Unreachable {
        /// Base address of the service.
        address: String,
        /// The innermost cause.
        cause: String,
        /// Whether a retry may help: a source that never accepted a connection is not retried.
        is_temporary: bool,
    },
    /// The request cannot be built.
    Malformed,
}

impl HttpError {
    /// The error of the command; `what` was requested.
    pub(super) fn of(self, what: &str) -> CliError {
        let busy = self.is_temporary() || matches!(self, Self::Unreachable { .. });
        let text = match self {
            Self::Rejected { address, status, code } if code.is_empty() => {
                let cause = format!("HTTP {}", status.as_u16());
                let problem = format!(
                    "not a service of Azure storage answers for {what}: {cause}: address=`{address}`; \
                     check the address and the port in the connection string"
                );
                match busy {
                    true => problem,
                    false => return CliError::Misdirected { endpoint: address, problem, cause },
                }
            }
            Self::Rejected { address, status, code } => format!(
                "the source rejects {what}: {code} ({}): address=`{address}`",
                status.as_u16()
            ),
            Self::Unreachable { address, cause, .. } => format!(
                "the source cannot be reached for {what}: {cause}: address=`{address}`; does it run \
                 there? check the connection string"
            ),
            Self::Malformed => {
                format!("{what} cannot be requested: the address is too long or malformed")
            }
        };
        CliError::Source { text, busy }
    }
}

impl Temporary for HttpError {
    fn is_temporary(&self) -> bool {
        let (busy, slow) = (StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT);
        match self {
            Self::Rejected { status, .. } => {
                status.is_server_error() || [busy, slow].contains(status)
            }
            Self::Unreachable { is_temporary, .. } => *is_temporary,
            Self::Malformed => false,
        }
    }
}

/// A client of one account.
#[derive(Clone)]
pub(super) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    pub(super) connection: Arc<AzureConnection>,
    /// Whether the source answered once: if not, a failed connection is final.
    has_answered: Arc<AtomicBool>,
}

impl Http {
    /// A client that trusts the CA certificates of a file, or those of the system.
    pub(super) fn new(
        connection: AzureConnection,
        ca_file: Option<&Path>,
    ) -> Result<Self, CliError> {
        let bases = [&connection.tables, &connection.queues, &connection.blobs];
        let is_encrypted = bases.into_iter().flatten().any(|base| base.starts_with("https:"));
        let mut plain = HttpConnector::new();
        plain.enforce_http(false);
        plain.set_nodelay(true);
        plain.set_connect_timeout(Some(CONNECT_WITHIN));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(public_tls_config(ca_file, is_encrypted)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, connection: Arc::new(connection), has_answered: Arc::default() })
    }

    /// Sends a request that can be repeated; `what` names it in errors.
    pub(super) async fn send(
        &self,
        request: &AzureRequest,
        what: &str,
    ) -> Result<AzureAnswer, CliError> {
        self.try_send(request).await.map_err(|failure| failure.of(what))
    }

    /// As [`Self::send`], with the failure itself.
    pub(super) async fn try_send(&self, request: &AzureRequest) -> Result<AzureAnswer, HttpError> {
        repeated(async || self.send_once(request).await).await
    }

    async fn send_once(&self, options: &AzureRequest) -> Result<AzureAnswer, HttpError> {
        let base = self.base(options.service).ok_or(HttpError::Malformed)?;
        let unreachable = |cause: String, is_temporary: bool| HttpError::Unreachable {
            address: base.to_owned(),
            cause,
            is_temporary,
        };
        let request = self.signed(options, base).ok_or(HttpError::Malformed)?;
        let answered = tokio::time::timeout(ANSWER_WITHIN, async {
            let answer = self.client.request(request).await.map_err(|error| {
                let is_retried = !error.is_connect() || self.has_answered.load(Ordering::Relaxed);
                unreachable(innermost(&error), is_retried)
            })?;
            self.has_answered.store(true, Ordering::Relaxed);
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| unreachable(innermost(error.as_ref()), true))?;
            Ok(AzureAnswer::from_parts(parts, body.to_bytes()))
        });
        let answer =
            answered.await.map_err(|_| unreachable("no answer in time".to_owned(), true))??;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let code = header(&answer, "x-ms-error-code").map(str::to_owned);
        let code = code.unwrap_or_else(|| code_in(answer.body()));
        Err(HttpError::Rejected { address: base.to_owned(), status: answer.status(), code })
    }

    /// Base address of a service; none if it is unknown.
    fn base(&self, service: Service) -> Option<&str> {
        match service {
            Service::Tables => self.connection.tables.as_deref(),
            Service::Queues => self.connection.queues.as_deref(),
            Service::Blobs => self.connection.blobs.as_deref(),
        }
    }

    /// The request, signed for now.
    fn signed(&self, options: &AzureRequest, base: &str) -> Option<Request<Empty<Bytes>>> {
        let AzureConnection { account, authority, .. } = &*self.connection;
        let signature = match authority {
            AzureAuthority::Signature(signature) => signature.as_str(),
            AzureAuthority::Key(_) => "",
        };
        let fields =
            [options.query.as_str(), signature].into_iter().filter(|text| !text.is_empty());
        let query = fields.collect::<Vec<_>>().join("&");
        let question = if query.is_empty() { "" } else { "?" };
        let uri: Uri = format!("{base}{}{question}{query}", options.path).parse().ok()?;
        let mut request = Request::new(Empty::new());
        *request.method_mut() = options.method.clone();
        let headers = request.headers_mut();
        let (seconds, _) = SystemClock.now().to_unix();
        let since_epoch = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        let date = httpdate::fmt_http_date(UNIX_EPOCH + since_epoch);
        let version = if options.service == Service::Blobs { BLOB_VERSION } else { VERSION };
        headers.insert("x-ms-version", HeaderValue::from_static(version));
        for (name, value) in &options.headers {
            headers.insert(*name, HeaderValue::from_str(value).ok()?);
        }
        headers.insert("x-ms-date", HeaderValue::from_str(&date).ok()?);
        headers.insert(ACCEPT, HeaderValue::from_static(options.accept));
        if options.method == Method::PUT {
            // The client omits the length of an empty body.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        if options.service == Service::Tables {
            headers.insert("DataServiceVersion", HeaderValue::from_static("3.0;NetFx"));
        }
        if let AzureAuthority::Key(key) = authority {
            let service = match options.service {
                Service::Tables => &TABLE,
                Service::Queues => &QUEUE,
                Service::Blobs => &BLOB,
            };
            let (path, query) = (uri.path(), uri.query().unwrap_or_default());
            let (scheme, method) = (Scheme::Full, options.method.as_str());
            let signed = SignedRequest { service, scheme, method, headers, path, query };
            let signature = signed.sign(account, key);
            let value = format!("SharedKey {account}:{}", STANDARD.encode(signature));
            let mut value = HeaderValue::from_str(&value).ok()?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        *request.uri_mut() = uri;
        Some(request)
    }
}

/// The code of an error in its body; empty if there is none.
fn code_in(body: &[u8]) -> String {
    let json = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let code = json.pointer("/odata.error/code").and_then(serde_json::Value::as_str);
    // Codes are words; other text is not repeated.
    let code = code.filter(|code| code.bytes().all(|b| b.is_ascii_alphanumeric()));
    code.unwrap_or_default().to_owned()
}
