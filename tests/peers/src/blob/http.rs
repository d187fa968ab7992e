//! The peers, over HTTP/1.1: objects at paths, with PUT and GET.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rusty_s3::{
    Bucket, Credentials, S3Action,
    actions::{GetObject, PutObject},
};

use super::{Store, Target};
use crate::wire::Connection;

/// How long a signature is valid: longer than any run.
const SIGNED_FOR: Duration = Duration::from_secs(24 * 3600);

/// How requests of a server look.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    /// The path and query of a blob.
    pub(super) location: Location,
    /// Further headers of a PUT, each with its line end.
    pub(super) put: &'static str,
    /// Further headers of every request, each with its line end.
    pub(super) all: &'static str,
}

/// What follows the method in a request.
#[derive(Debug, Clone)]
pub(super) enum Location {
    /// The same for every call but for the name of the blob.
    Fixed {
        /// The start of every path, up to the name of the blob.
        path: String,
        /// The query, with the question mark, or nothing.
        query: String,
    },
    /// With a signature for each call.
    Signed(Box<(Bucket, Credentials)>),
}

impl Location {
    fn of(&self, method: &str, name: &str) -> String {
        let signed = match self {
            Self::Fixed { path, query } => return format!("{path}/{name}{query}"),
            Self::Signed(signed) => signed,
        };
        let (bucket, credentials) = &**signed;
        let url = match method {
            "PUT" => PutObject::new(bucket, Some(credentials), name).sign(SIGNED_FOR),
            _ => GetObject::new(bucket, Some(credentials), name).sign(SIGNED_FOR),
        };
        format!("{}?{}", url.path(), url.query().unwrap_or_default())
    }
}

/// A connection.
pub(super) struct HttpStore {
    dialect: Dialect,
    connection: Connection,
}

impl HttpStore {
    pub(super) async fn open(port: u16, dialect: Dialect) -> Self {
        Self { dialect, connection: Connection::open(port).await }
    }

    fn head(&self, method: &str, name: &str, headers: &str) -> String {
        let Dialect { location, all, .. } = &self.dialect;
        let location = location.of(method, name);
        format!("{method} {location} HTTP/1.1\r\nhost: 127.0.0.1\r\n{all}{headers}\r\n")
    }

    /// Creates the container.
    pub(super) async fn create(&mut self, path_and_query: &str) -> Result<(), String> {
        let all = self.dialect.all;
        let head = format!(
            "PUT {path_and_query} HTTP/1.1\r\nhost: 127.0.0.1\r\n{all}content-length: 0\r\n\r\n"
        );
        match self.connection.call(head.as_bytes()).await {
            (200 | 201, _) => Ok(()),
            (status, body) => Err(format!("{status}: {}", String::from_utf8_lossy(body))),
        }
    }
}

#[async_trait]
impl Store for HttpStore {
    async fn put(&mut self, target: &Target, data: &Bytes) {
        let headers = format!("{}content-length: {}\r\n", self.dialect.put, data.len());
        let head = self.head("PUT", &target.name, &headers);
        self.connection.send(head.as_bytes()).await;
        self.connection.send(data).await;
        let (status, _) = self.connection.skip().await;
        assert!(matches!(status, 200 | 201), "a put has status {status}");
    }

    async fn get(&mut self, target: &Target) -> usize {
        let range = target
            .range
            .map(|(first, length)| format!("range: bytes={first}-{}\r\n", first + length - 1));
        let head = self.head("GET", &target.name, &range.unwrap_or_default());
        self.connection.send(head.as_bytes()).await;
        let (status, bytes) = self.connection.skip().await;
        assert!(matches!(status, 200 | 206), "a get has status {status}");
        bytes
    }
}
