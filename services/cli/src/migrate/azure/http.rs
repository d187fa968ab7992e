//! Requests to an account over HTTP: signed, repeated where that may help, bounded.
//!
//! No text here holds a query or what a server says in words: both may hold signatures.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use trestle_identity::shared_key::{Scheme, queue, table};
use trestle_service::clock::{Clock as _, SystemClock};

use super::connection::{Authority, Connection};
use crate::{client::Random, errors::CliError};

/// The version of the protocol that is spoken.
const VERSION: &str = "2020-12-06";
/// Longest wait for one answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Largest answer that is taken: pages end at 4 MiB, messages at 32 of 64 KiB in XML.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most tries of one request: about half a minute of waiting in all.
const TRIES_MAX: u32 = 9;
const WAIT_FIRST: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// What is not encoded in a path or a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text as it stands in a path or a query.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// A service of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Tables,
    Queues,
}

/// What is asked.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) service: Service,
    pub(super) method: Method,
    /// Below the base address, beginning with `/`, encoded.
    pub(super) path: String,
    /// Encoded, without `?`.
    pub(super) query: String,
    /// What the answer is to be.
    pub(super) accept: &'static str,
}

impl Ask {
    /// Asks for something, as XML.
    pub(super) fn get(service: Service, path: String, query: String) -> Self {
        Self { service, method: Method::GET, path, query, accept: "application/xml" }
    }

    fn comp(&self) -> Option<&str> {
        self.query.split('&').find_map(|field| field.strip_prefix("comp="))
    }
}

/// An answer of success.
#[derive(Debug)]
pub(super) struct Answer {
    headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    /// A header in text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A request that failed for good.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was answered so.
    Refused { status: StatusCode, code: String },
    /// There was no answer to use.
    Unreachable(String),
}

impl Failure {
    /// As the failure of the command, with what was asked for.
    pub(super) fn of(self, what: &str) -> CliError {
        match self {
            Self::Refused { status, code } => CliError::Source {
                busy: status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS,
                text: format!("the source refuses {what}: {code} ({})", status.as_u16()),
            },
            Self::Unreachable(cause) => CliError::Source {
                busy: true,
                text: format!("the source cannot be reached for {what}: {cause}"),
            },
        }
    }

    /// Whether it may go better the next time.
    fn is_passing(&self) -> bool {
        match self {
            Self::Refused { status, .. } => {
                status.is_server_error()
                    || matches!(
                        *status,
                        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
                    )
            }
            Self::Unreachable(_) => true,
        }
    }
}

/// A client of one account.
#[derive(Clone)]
pub(super) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    connection: Arc<Connection>,
}

impl Http {
    /// A client that trusts the authorities of a file, or those of the system.
    ///
    /// # Errors
    /// Authorities that cannot be read, where they are needed.
    pub(super) fn new(
        connection: Connection,
        authorities: Option<&Path>,
    ) -> Result<Self, CliError> {
        let bases = [&connection.tables, &connection.queues];
        let is_encrypted = bases.into_iter().flatten().any(|base| base.starts_with("https:"));
        let roots = if is_encrypted { roots(authorities)? } else { RootCertStore::empty() };
        let unusable = |error: tokio_rustls::rustls::Error| {
            CliError::Usage(format!("encryption cannot be used: {error}"))
        };
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut plain = HttpConnector::new();
        plain.enforce_http(false);
        plain.set_nodelay(true);
        plain.set_connect_timeout(Some(CONNECT_WITHIN));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, connection: Arc::new(connection) })
    }

    /// Where the account is, and its name.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Asks, again where that may help: only for what can be repeated.
    ///
    /// # Errors
    /// An answer that is no success, or none at all.
    pub(super) async fn ask(&self, ask: &Ask) -> Result<Answer, Failure> {
        let mut random = Random::from_system();
        for attempt in 0..TRIES_MAX {
            let failure = match self.once(ask).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if !failure.is_passing() || attempt.saturating_add(1) == TRIES_MAX {
                return Err(failure);
            }
            let longest = WAIT_FIRST.saturating_mul(1 << attempt.min(10)).min(WAIT_MAX);
            let half = u64::try_from(longest.as_millis() / 2).unwrap_or(1).max(1);
            tokio::time::sleep(Duration::from_millis(half.saturating_add(random.below(half))))
                .await;
        }
        Err(Failure::Unreachable("no try is left".to_owned()))
    }

    async fn once(&self, ask: &Ask) -> Result<Answer, Failure> {
        let request = self.request(ask).ok_or_else(|| {
            Failure::Unreachable("the address is too long or malformed".to_owned())
        })?;
        let answered = tokio::time::timeout(ANSWER_WITHIN, async {
            let answer = self.client.request(request).await.map_err(|error| cause(&error))?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| cause(error.as_ref()))?.to_bytes();
            Ok((parts, body))
        });
        let (parts, body) = match answered.await {
            Ok(answered) => answered.map_err(Failure::Unreachable)?,
            Err(_) => return Err(Failure::Unreachable("no answer in time".to_owned())),
        };
        if parts.status.is_success() {
            return Ok(Answer { headers: parts.headers, body });
        }
        let code = parts.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
        let code = code.map_or_else(|| code_in(&body), str::to_owned);
        Err(Failure::Refused { status: parts.status, code })
    }

    /// The request, signed for now.
    fn request(&self, ask: &Ask) -> Option<Request<Empty<Bytes>>> {
        let connection = &self.connection;
        let base = match ask.service {
            Service::Tables => connection.tables.as_ref()?,
            Service::Queues => connection.queues.as_ref()?,
        };
        let signed = match &connection.authority {
            Authority::Signature(signature) => Some(signature.as_str()),
            Authority::Key(_) => None,
        };
        let fields: Vec<&str> = [ask.query.as_str()]
            .into_iter()
            .chain(signed)
            .filter(|text| !text.is_empty())
            .collect();
        let question = if fields.is_empty() { "" } else { "?" };
        let uri =
            format!("{base}{}{question}{}", ask.path, fields.join("&")).parse::<Uri>().ok()?;
        let mut request = Request::new(Empty::new());
        *request.method_mut() = ask.method.clone();
        let headers = request.headers_mut();
        headers.insert("x-ms-version", HeaderValue::from_static(VERSION));
        headers.insert("x-ms-date", HeaderValue::from_str(&date()).ok()?);
        headers.insert(header::ACCEPT, HeaderValue::from_static(ask.accept));
        if ask.method == Method::PUT {
            // The client says nothing of a body that is not there.
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        if ask.service == Service::Tables {
            headers.insert("DataServiceVersion", HeaderValue::from_static("3.0;NetFx"));
        }
        if let Authority::Key(key) = &connection.authority {
            let account = &connection.account;
            let signature = match ask.service {
                Service::Tables => tables_text(ask, &uri, headers)?.sign(account, key),
                Service::Queues => queues_text(ask, &uri, headers).sign(account, key),
            };
            let value = format!("SharedKey {account}:{}", STANDARD.encode(signature));
            let mut value = HeaderValue::from_str(&value).ok()?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        *request.uri_mut() = uri;
        Some(request)
    }
}

fn tables_text<'a>(
    ask: &'a Ask,
    uri: &'a Uri,
    headers: &'a HeaderMap,
) -> Option<table::Signed<'a>> {
    Some(table::Signed {
        scheme: Scheme::Full,
        method: ask.method.as_str(),
        content_md5: "",
        content_type: "",
        date: headers.get("x-ms-date")?.to_str().ok()?,
        path: uri.path(),
        comp: ask.comp(),
    })
}

fn queues_text<'a>(ask: &'a Ask, uri: &'a Uri, headers: &'a HeaderMap) -> queue::Signed<'a> {
    queue::Signed {
        scheme: Scheme::Full,
        method: ask.method.as_str(),
        headers,
        path: uri.path(),
        query: uri.query().unwrap_or_default(),
    }
}

fn date() -> String {
    let (seconds, _) = SystemClock.now().to_unix();
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    httpdate::fmt_http_date(UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH))
}

fn roots(authorities: Option<&Path>) -> Result<RootCertStore, CliError> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(file) => {
            let shown = file.display();
            let what = format!("cannot read `{shown}`");
            let pem = fs::read(file).map_err(CliError::input(what))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let added = certificate.ok().map(|certificate| roots.add(certificate));
                if !matches!(added, Some(Ok(()))) {
                    return Err(CliError::Usage(format!(
                        "holds no certificates in PEM: `{shown}`"
                    )));
                }
            }
        }
        None => {
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
    }
    if roots.is_empty() {
        let rule = "no authority is known that could vouch for the source: give --source-ca-file";
        return Err(CliError::Usage(rule.to_owned()));
    }
    Ok(roots)
}

/// The code of an error in its body.
fn code_in(body: &[u8]) -> String {
    let json = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let code = json.pointer("/odata.error/code").and_then(serde_json::Value::as_str);
    // Codes are words; anything else is not repeated.
    let code = code.filter(|code| code.bytes().all(|b| b.is_ascii_alphanumeric()));
    code.unwrap_or("no error code").to_owned()
}

/// The innermost cause.
fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
