//! The same writes of blobs over REST, by a client whose connections break.

use bytes::Bytes;
use tonic::Status;
use trestle_tests::{CallError, RestRequest, RestResponse, Server, try_exchange};

use crate::blobs::CONTAINER;

/// The REST edge of a server.
pub(crate) struct RestBlobs {
    address: String,
}

impl RestBlobs {
    pub(crate) fn of(server: &Server) -> Self {
        Self { address: server.address("azure_blob") }
    }

    /// Writes a blob in one request.
    pub(crate) async fn write(&self, blob: &str, data: &Bytes) -> Result<(), CallError> {
        let request = RestRequest::blob("PUT", &target(blob)).with("x-ms-blob-type", "BlockBlob");
        self.send(request.body(data), 201).await.map(drop)
    }

    /// Stages a block of a blob.
    pub(crate) async fn stage(&self, blob: &str, id: &str, data: &[u8]) -> Result<(), CallError> {
        let target = format!("{}?comp=block&blockid={id}", target(blob));
        self.send(RestRequest::blob("PUT", &target).body(data), 201).await.map(drop)
    }

    /// Makes a blob of blocks.
    pub(crate) async fn commit(&self, blob: &str, ids: &[&str]) -> Result<(), CallError> {
        let ids: String = ids.iter().map(|id| format!("<Latest>{id}</Latest>")).collect();
        let target = format!("{}?comp=blocklist", target(blob));
        let list = format!("<BlockList>{ids}</BlockList>");
        self.send(RestRequest::xml("PUT", &target, list), 201).await.map(drop)
    }

    /// Copies a blob of the account.
    pub(crate) async fn copy(&self, from: &str, to: &str) -> Result<(), CallError> {
        let source = format!("http://{}/devstoreaccount1{}", self.address, target(from));
        let request = RestRequest::blob("PUT", &target(to)).with("x-ms-copy-source", &source);
        self.send(request, 202).await.map(drop)
    }

    pub(crate) async fn delete(&self, blob: &str) -> Result<(), CallError> {
        self.send(RestRequest::blob("DELETE", &target(blob)), 202).await.map(drop)
    }

    /// The content of a blob.
    pub(crate) async fn read(&self, blob: &str) -> Result<Bytes, CallError> {
        Ok(self.send(RestRequest::blob("GET", &target(blob)), 200).await?.body)
    }

    /// An error without a reason: the connection broke before the response was whole.
    async fn send(&self, request: RestRequest, expected: u16) -> Result<RestResponse, CallError> {
        let broken = |error| CallError::of(&Status::unavailable(format!("{error}")));
        let response = try_exchange(&self.address, request).await.map_err(broken)?;
        if response.status == expected {
            return Ok(response);
        }
        let reason = response.header("x-ms-error-code").to_owned();
        Err(CallError { reason, ..CallError::of(&Status::unknown(response.text())) })
    }
}

fn target(blob: &str) -> String {
    format!("/{CONTAINER}/{blob}")
}
