//! The peers, over HTTP/1.1: objects at paths, with PUT and GET.

use async_trait::async_trait;
use bytes::Bytes;

use super::{Store, Target};
use crate::wire::Connection;

/// How requests of a server look.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    /// The start of every path, up to the name of the blob.
    pub(super) path: String,
    /// The query, with the question mark, or nothing.
    pub(super) query: String,
    /// Further headers of a PUT, each with its line end.
    pub(super) put: &'static str,
    /// Further headers of every request, each with its line end.
    pub(super) all: &'static str,
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
        let Dialect { path, query, all, .. } = &self.dialect;
        format!("{method} {path}/{name}{query} HTTP/1.1\r\nhost: 127.0.0.1\r\n{all}{headers}\r\n")
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
