//! Clients of the Azure Storage protocol that only sign requests, so that a test sets every
//! relevant byte.

mod request;
mod response;

use tempfile::TempDir;
use trestle::{
    roles::ROLES,
    running::{Listeners, Running},
    settings::Settings,
};
use trestle_runtime::{config::Sources, openmetrics::Exposition};

pub use self::{request::RestRequest, response::RestResponse};
use crate::{
    Server, wire,
    world::{node, store},
};

/// The development account, which the requests are for.
const ACCOUNT: &str = "devstoreaccount1";

/// Sends a request to an address and waits for the whole answer.
pub async fn exchange(address: &str, request: RestRequest) -> RestResponse {
    try_exchange(address, request).await.expect("an answer")
}

/// The same with a server that may end meanwhile.
///
/// # Errors
/// What breaks the connection.
pub async fn try_exchange(
    address: &str,
    request: RestRequest,
) -> Result<RestResponse, tower::BoxError> {
    let (parts, body) = wire::exchange(address, request.to_http(address)).await?.into_parts();
    Ok(RestResponse { status: parts.status.as_u16(), headers: parts.headers, body })
}

/// A server, and the address of its tables.
pub struct Rest {
    server: Server,
    address: String,
    _data: TempDir,
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

    /// The address of tables.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Address of the account, as in responses.
    pub fn base(&self) -> String {
        format!("http://{}/{ACCOUNT}", self.address)
    }

    /// Sends a request and waits for the whole answer.
    pub async fn send(&self, request: RestRequest) -> RestResponse {
        exchange(&self.address, request).await
    }

    /// Creates a table.
    pub async fn table(&self, name: &str) {
        let body = format!(r#"{{"TableName":"{name}"}}"#);
        let response = self.send(RestRequest::json("POST", "/Tables", &body)).await;
        assert_eq!(response.status, 201, "{response:?}");
    }

    /// Inserts an entity.
    pub async fn insert(&self, table: &str, json: &str) -> RestResponse {
        let response = self.send(RestRequest::json("POST", &format!("/{table}"), json)).await;
        assert_eq!(response.status, 201, "{response:?}");
        response
    }
}

/// A server in this process, behind sockets as any other, and the address of one of its services.
struct LocalEdge {
    address: String,
    // Dropped in this order: the server before its directory.
    _running: Running,
    _data: TempDir,
}

impl LocalEdge {
    /// Starts a server with a store of its own, for a service such as `queue`.
    async fn start(service: &str) -> Self {
        let free = "127.0.0.1:0".to_owned();
        let listeners = ["LISTEN", "ADMIN", "AZURE_TABLE", "AZURE_QUEUE", "AZURE_BLOB"];
        let free = listeners.map(|name| (format!("TRESTLE__SERVER__{name}"), free.clone()));
        let sources = Sources { environment: free.into_iter().collect(), ..Sources::default() };
        let settings = Settings::load(ROLES, sources).expect("settings that make sense");
        let (engine, data) = store();
        let listeners = Listeners::bind(&settings).await.expect("free addresses");
        let address = listeners.azure(service).expect("the service is served").to_string();
        let node = node(&settings, engine).await;
        let running = Running::start(node, listeners, &settings, Exposition::default());
        Self { address, _running: running, _data: data }
    }
}

/// The blobs of a server in this process.
pub struct BlobRest(LocalEdge);

impl BlobRest {
    /// Starts a server with a store of its own.
    pub async fn start() -> Self {
        Self(LocalEdge::start("blob").await)
    }

    /// The address of blobs.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// The URL of a path of the account.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{ACCOUNT}{path}", self.0.address)
    }

    /// Sends a request and waits for the whole answer.
    pub async fn send(&self, request: RestRequest) -> RestResponse {
        exchange(&self.0.address, request).await
    }

    /// Sends a request without a body.
    pub async fn call(&self, method: &str, target: &str) -> RestResponse {
        self.send(RestRequest::blob(method, target)).await
    }

    /// Sends a request without a body, with these headers.
    pub async fn call_with(
        &self,
        method: &str,
        target: &str,
        headers: &[(&'static str, &str)],
    ) -> RestResponse {
        let request = RestRequest::blob(method, target);
        let with =
            |request: RestRequest, (name, value): &(&'static str, &str)| request.with(name, value);
        self.send(headers.iter().fold(request, with)).await
    }

    /// Creates a container.
    pub async fn container(&self, name: &str) {
        let response = self.call("PUT", &format!("/{name}?restype=container")).await;
        assert_eq!(response.status, 201, "{response:?}");
    }

    /// Writes a block blob. Returns its etag.
    pub async fn blob(&self, target: &str, content: impl AsRef<[u8]>) -> String {
        let request = RestRequest::blob("PUT", target).with("x-ms-blob-type", "BlockBlob");
        let response = self.send(request.body(content)).await;
        assert_eq!(response.status, 201, "{response:?}");
        response.header("etag").to_owned()
    }
}

/// The queues of a server in this process.
pub struct QueueRest(LocalEdge);

impl QueueRest {
    /// Starts a server with a store of its own.
    pub async fn start() -> Self {
        Self(LocalEdge::start("queue").await)
    }

    /// The address of queues.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// Sends a request and waits for the whole answer.
    pub async fn send(&self, request: RestRequest) -> RestResponse {
        exchange(&self.0.address, request).await
    }

    /// Sends a request without a body.
    pub async fn call(&self, method: &str, target: &str) -> RestResponse {
        self.send(RestRequest::queue(method, target)).await
    }

    /// Creates a queue.
    pub async fn queue(&self, name: &str) {
        let response = self.call("PUT", &format!("/{name}")).await;
        assert_eq!(response.status, 201, "{response:?}");
    }

    /// Sends a message to a queue, with a query such as `?messagettl=1`.
    pub async fn message(&self, queue: &str, query: &str, text: &str) -> RestResponse {
        let response = self
            .send(RestRequest::message("POST", &format!("/{queue}/messages{query}"), text))
            .await;
        assert_eq!(response.status, 201, "{response:?}");
        response
    }
}
