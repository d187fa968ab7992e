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
use hyper_util::client::legacy;
use trestle_model::fault::quoted;
use trestle_model::limits::{BLOB_BYTES_MAX, UPLOAD_IDLE_MAX};

use trestle_objects::https::LazyClient;

use crate::{blobs::RequestedRange, error::BlobError, record::ContentProperties};

/// Longest wait for the head of a response.
const RESPONSE_WITHIN: Duration = Duration::from_secs(30);
/// How a header with metadata begins.
const METADATA_PREFIX: &str = "x-ms-meta-";

/// Reads from other servers. Clones share the settings of connections.
#[derive(Clone, Default)]
pub(crate) struct RemoteServers {
    client: LazyClient,
}

/// Content of another server whose bytes follow.
pub(crate) struct RemoteContent {
    /// Length, in bytes, where the server states it. Another number of bytes is an error of [`RemoteContent::bytes`].
    pub(crate) size: Option<u64>,
    /// Its HTTP properties; the MD5 is that which the server states.
    pub(crate) properties: ContentProperties,
    /// Its metadata, unchecked.
    pub(crate) metadata: Vec<(String, String)>,
    body: hyper::body::Incoming,
}

impl RemoteServers {
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

    /// As [`RemoteServers::open`], for a range of the content, which its server may cut at the end of the content only.
    ///
    /// # Errors
    /// [`BlobError::CopySource`] for any response but 206 with that range, [`BlobError::SourceCondition`].
    pub(crate) async fn open_range(
        &self,
        uri: Uri,
        mut conditions: HeaderMap,
        range: RequestedRange,
    ) -> Result<RemoteContent, BlobError> {
        let last = last_byte(range).map(|last| last.to_string());
        let header = format!("bytes={}-{}", range.offset, last.unwrap_or_default());
        let value = HeaderValue::from_str(&header).map_err(|_| BlobError::corrupt("range"))?;
        conditions.insert(header::RANGE, value);
        let response = self.request(uri, conditions, StatusCode::PARTIAL_CONTENT).await?;
        let stated = text(response.headers(), &header::CONTENT_RANGE);
        let Some(size) = sent_bytes(&stated, range) else {
            let other =
                format!("its server sent another range: content_range=`{}`", quoted(&stated));
            return Err(BlobError::CopySource(other));
        };
        let (size, properties) = (Some(size), ContentProperties::default());
        Ok(RemoteContent { size, properties, metadata: Vec::new(), body: response.into_body() })
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
        let client = self.client.get().ok_or_else(no_client)?;
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
        let next = async |(mut body, missing): (hyper::body::Incoming, Option<u64>)| loop {
            let failed = |what: &str| BlobError::CopySource(what.to_owned());
            let frame = tokio::time::timeout(UPLOAD_IDLE_MAX, body.frame()).await;
            let frame = frame.map_err(|_| failed("its server stopped to send"))?;
            let ended_early = || failed("its content ended early");
            let Some(frame) = frame.transpose().map_err(|_| ended_early())? else {
                return if missing.unwrap_or(0) == 0 { Ok(None) } else { Err(ended_early()) };
            };
            let Ok(data) = frame.into_data() else { continue };
            let too_many = || failed("its server sent more than the range");
            let rest = |missing: u64| missing.checked_sub(data.len() as u64).ok_or_else(too_many);
            let missing = missing.map(rest).transpose()?;
            return Ok(Some((data, (body, missing))));
        };
        stream::try_unfold((self.body, self.size), next)
    }
}

/// The last byte of a range that has an end.
fn last_byte(RequestedRange { offset, length }: RequestedRange) -> Option<u64> {
    length.map(|length| offset.saturating_add(length.saturating_sub(1)))
}

/// How many bytes a server sends by its `Content-Range`, if that is the range, or what the content has of it.
/// RFC 9110, 14.4.
fn sent_bytes(content_range: &str, range: RequestedRange) -> Option<u64> {
    let (sent, size) = content_range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = sent.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let end = size.parse::<u64>().ok().and_then(|size| size.checked_sub(1));
    let expected = match (last_byte(range), end) {
        (Some(last), Some(end)) => last.min(end),
        (last, end) => last.or(end)?,
    };
    let is_requested = first == range.offset && last == expected;
    last.checked_sub(first).filter(|_| is_requested)?.checked_add(1)
}

/// Without the address: the network of the server is not the caller's.
fn unreachable(error: &legacy::Error) -> BlobError {
    let cause = error.source().map(ToString::to_string);
    tracing::info!(%error, cause, "the source of a copy failed");
    let what = if error.is_connect() { "cannot be reached" } else { "gave no valid response" };
    BlobError::CopySource(format!("its server {what}"))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    headers.get(name).map(text_of).unwrap_or_default()
}

/// The value of a header. What is not ASCII remains visible as such, to be rejected where it is used.
fn text_of(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
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
        Some((name.to_owned(), text_of(value)))
    };
    headers.iter().filter_map(pair).collect()
}
