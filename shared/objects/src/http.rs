//! Requests to an object store, over the HTTP and TLS that the rest of the process has.

use std::{error::Error, fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector as TcpConnector},
    rt::TokioExecutor,
};
use object_store::{
    ClientConfigKey, ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
        HttpResponse, HttpService,
    },
};

use crate::https::{Schemes, connector};

/// Longest wait for a whole response.
const RESPONSE_WITHIN: Duration = Duration::from_secs(30);
/// Largest response: objects are little more than 4 MiB, pages of a listing are smaller.
const RESPONSE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Makes clients that trust the CA certificates of the system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectsConnector;

/// A client of one store.
struct ObjectsHttp {
    client: Client<HttpsConnector<TcpConnector>, HttpRequestBody>,
}

impl fmt::Debug for ObjectsHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectsHttp")
    }
}

impl HttpConnector for ObjectsConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let failed = |source| object_store::Error::Generic { store: "http", source };
        let schemes = match allows_http(options) {
            true => Schemes::HttpsOrHttp,
            false => Schemes::Https,
        };
        let connector = connector(schemes).map_err(|error| failed(error.into()))?;
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(HttpClient::new(ObjectsHttp { client }))
    }
}

/// Whether the environment allows requests without TLS.
fn allows_http(options: &ClientOptions) -> bool {
    let value = options.get_config_value(&ClientConfigKey::AllowHttp).unwrap_or_default();
    ["1", "true", "on", "yes", "y"].contains(&value.to_ascii_lowercase().as_str())
}

#[async_trait]
impl HttpService for ObjectsHttp {
    /// The whole response, so that one that breaks off is retried as a whole.
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = async {
            let response = self.client.request(request).await.map_err(failed)?;
            let (head, body) = response.into_parts();
            let interrupted = |error| HttpError::new_boxed(HttpErrorKind::Interrupted, error);
            let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
            let body: Bytes = body.map_err(interrupted)?.to_bytes();
            Ok(HttpResponse::from_parts(head, body.into()))
        };
        let response = tokio::time::timeout(RESPONSE_WITHIN, response).await;
        response.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?
    }
}

/// A request that failed after it was sent may have been executed: only idempotent ones are retried then.
fn failed(error: legacy::Error) -> HttpError {
    let kind = match error.is_connect() {
        true => HttpErrorKind::Connect,
        false => HttpErrorKind::Interrupted,
    };
    // The text of the error names no cause.
    match error.source() {
        Some(cause) => HttpError::new_boxed(kind, format!("{error}: {cause}").into()),
        None => HttpError::new(kind, error),
    }
}

#[cfg(test)]
mod tests;
