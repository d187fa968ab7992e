//! Content of other servers, read over HTTP to copy it. A redirect is not followed: it may lead to another host.

#[cfg(test)]
mod tests;

use std::{error::Error as _, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::{Stream, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use http_body_util::{BodyExt as _, Empty};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector as TcpConnector},
    rt::TokioExecutor,
};
use trestle_service::{
    fault::quoted,
    limits::{BLOB_BYTES_MAX, UPLOAD_IDLE_MAX},
};

use crate::{
    blobs::RequestedRange,
    error::BlobError,
    https::{Schemes, connector},
    record::ContentProperties,
};

/// Longest wait for the head of a response.
const RESPONSE_WITHIN: Duration = Duration::from_secs(30);
/// How a header with metadata begins.
const METADATA_PREFIX: &str = "x-ms-meta-";

/// Reads from other servers. Clones share the connections.
#[derive(Clone)]
pub(crate) struct RemoteServers {
    /// None on a platform without the versions of TLS.
    client: Option<Client<HttpsConnector<TcpConnector>, Empty<Bytes>>>,
}

/// Content of another server whose bytes follow.
pub(crate) struct RemoteContent {
    /// Length, in bytes, where the server states it.
    pub(crate) size: Option<u64>,
    /// Its HTTP properties; the MD5 is that which the server states.
    pub(crate) properties: ContentProperties,
    /// Its metadata, unchecked.
    pub(crate) metadata: Vec<(String, String)>,
    body: hyper::body::Incoming,
}

impl RemoteServers {
    /// Connects to none yet.
    pub(crate) fn new() -> Self {
        let connector = connector(Schemes::HttpsOrHttp).ok();
        let client = |connector| Client::builder(TokioExecutor::new()).build(connector);
        Self { client: connector.map(client) }
    }

    /// Begins to read content, by conditions as HTTP has them.
    ///
    /// # Errors
    /// [`BlobError::CopySource`] for any response but 200, [`BlobError::SourceCondition`].
    pub(crate) async fn open(
        &self,
        uri: Uri,
        conditions: HeaderMap,
    ) -> Result<RemoteContent, BlobError> {
        let (head, body) = self.request(uri, conditions, StatusCode::OK).await?.into_parts();
        let size = text(&head.headers, &header::CONTENT_LENGTH).parse().ok();
        if size.is_some_and(|size: u64| size > BLOB_BYTES_MAX) {
            return Err(BlobError::CopySource("it is too large".to_owned()));
        }
        let properties = properties(&head.headers);
        Ok(RemoteContent { size, properties, metadata: metadata(&head.headers), body })
    }

    /// As [`RemoteServers::open`], for a range of the content, which its server may cut at the end.
    ///
    /// # Errors
    /// [`BlobError::CopySource`] for any response but 206 with that range, [`BlobError::SourceCondition`].
    pub(crate) async fn open_range(
        &self,
        uri: Uri,
        mut conditions: HeaderMap,
        RequestedRange { offset, length }: RequestedRange,
    ) -> Result<RemoteContent, BlobError> {
        let last = length.map(|length| offset.saturating_add(length - 1).to_string());
        let range = format!("bytes={offset}-{}", last.unwrap_or_default());
        let value = HeaderValue::from_str(&range).map_err(|_| BlobError::corrupt("range"))?;
        conditions.insert(header::RANGE, value);
        let response = self.request(uri, conditions, StatusCode::PARTIAL_CONTENT).await?;
        let stated = text(response.headers(), &header::CONTENT_RANGE);
        if !stated.starts_with(&format!("bytes {offset}-")) {
            let other =
                format!("its server sent another range: content_range=`{}`", quoted(&stated));
            return Err(BlobError::CopySource(other));
        }
        let (head, body) = response.into_parts();
        let size = text(&head.headers, &header::CONTENT_LENGTH).parse().ok();
        if size.zip(length).is_some_and(|(size, length): (u64, u64)| size > length) {
            return Err(BlobError::CopySource("its server sent more than the range".to_owned()));
        }
        let properties = ContentProperties::default();
        Ok(RemoteContent { size, properties, metadata: Vec::new(), body })
    }

    /// Sends a GET; a response with another status is an error.
    async fn request(
        &self,
        uri: Uri,
        conditions: HeaderMap,
        expected: StatusCode,
    ) -> Result<Response<hyper::body::Incoming>, BlobError> {
        let mut request = Request::new(Empty::new());
        (*request.method_mut(), *request.uri_mut()) = (Method::GET, uri);
        *request.headers_mut() = conditions;
        let no_client = || BlobError::CopySource("there is no TLS".to_owned());
        let client = self.client.as_ref().ok_or_else(no_client)?;
        let response = tokio::time::timeout(RESPONSE_WITHIN, client.request(request)).await;
        let late = |_| BlobError::CopySource("its server does not respond".to_owned());
        let response = response.map_err(late)?.map_err(|error| unreachable(&error))?;
        match response.status() {
            status if status == expected => Ok(response),
            StatusCode::PRECONDITION_FAILED | StatusCode::NOT_MODIFIED => {
                Err(BlobError::SourceCondition)
            }
            StatusCode::OK => {
                Err(BlobError::CopySource("its server does not support ranges".to_owned()))
            }
            other => {
                let status = format!("its server responded with status {}", other.as_u16());
                Err(BlobError::CopySource(status))
            }
        }
    }
}

impl RemoteContent {
    /// The bytes.
    pub(crate) fn bytes(self) -> impl Stream<Item = Result<Bytes, BlobError>> + Send {
        let next = async |mut body: hyper::body::Incoming| loop {
            let frame = tokio::time::timeout(UPLOAD_IDLE_MAX, body.frame()).await;
            let late = |_| BlobError::CopySource("its server stopped to send".to_owned());
            let Some(frame) = frame.map_err(late)? else { return Ok(None) };
            let broken = |_| BlobError::CopySource("its content ended early".to_owned());
            if let Ok(data) = frame.map_err(broken)?.into_data() {
                return Ok(Some((data, body)));
            }
        };
        stream::try_unfold(self.body, next)
    }
}

/// Without the address: the network of the server is not the caller's.
fn unreachable(error: &legacy::Error) -> BlobError {
    tracing::info!(%error, cause = ?error.source(), "the source of a copy failed");
    let what = if error.is_connect() { "cannot be reached" } else { "gave no valid response" };
    BlobError::CopySource(format!("its server {what}"))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn properties(headers: &HeaderMap) -> ContentProperties {
    ContentProperties {
        content_type: text(headers, &header::CONTENT_TYPE),
        encoding: text(headers, &header::CONTENT_ENCODING),
        language: text(headers, &header::CONTENT_LANGUAGE),
        disposition: text(headers, &header::CONTENT_DISPOSITION),
        cache_control: text(headers, &header::CACHE_CONTROL),
        md5: base64_md5(&text(headers, &HeaderName::from_static("content-md5"))),
    }
}

fn base64_md5(text: &str) -> Option<[u8; 16]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn metadata(headers: &HeaderMap) -> Vec<(String, String)> {
    let pair = |(name, value): (&HeaderName, &HeaderValue)| {
        let name = name.as_str().strip_prefix(METADATA_PREFIX)?;
        Some((name.to_owned(), value.to_str().ok()?.to_owned()))
    };
    headers.iter().filter_map(pair).collect()
}
