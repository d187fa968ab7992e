//! The worlds that a scenario runs in.

use std::sync::Arc;

use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
use tempfile::TempDir;
use tonic::{body::Body, transport::Endpoint};
use tower::{BoxError, ServiceExt, util::BoxCloneSyncService};
use trestle::{
    compose::{Node, NodeDeps, compose},
    roles::ROLES,
    settings::Settings,
    storage::keyspaces,
};
use trestle_kv::Engine;
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_model::time::SystemClock;
use trestle_proto::table::v1::{self as proto, table_service_client::TableServiceClient};
use trestle_rpc::{access::AccessLog, layer::CallService, propagation::Traces};
use trestle_runtime::config::Sources;

use crate::{Server, Table};

/// The transport from a client to a server.
pub type Transport = BoxCloneSyncService<http::Request<Body>, http::Response<Body>, BoxError>;

/// A server on a store of its own, and a client of it.
pub struct World {
    transport: Transport,
    client: TableServiceClient<Transport>,
    // Dropped in this order: the processes before the directory that they use.
    servers: Vec<Server>,
    _data: Option<TempDir>,
}

impl World {
    /// The server in this process, called without a socket.
    pub async fn in_process() -> Self {
        Self::in_process_with(&[]).await
    }

    /// The same with settings, as variables.
    pub async fn in_process_with(settings: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment = settings.iter().map(owned).collect();
        let settings = Settings::load(ROLES, Sources { environment, ..Sources::default() });
        let (engine, data) = store();
        let routes = node(&settings.expect("settings that make sense"), engine).await.routes;
        Self { _data: Some(data), ..Self::before(routes) }
    }

    /// The server in this process, on a store of the test's choice: every layer of a node, but no
    /// sockets and no background work.
    pub async fn on_engine(engine: Arc<dyn Engine>) -> Self {
        Self::before(node(&Settings::default(), engine).await.routes)
    }

    fn before(routes: CallService) -> Self {
        let transport = ServiceExt::<http::Request<Body>>::map_err(routes, BoxError::from);
        Self::over(BoxCloneSyncService::new(transport))
    }

    /// The server at the other end of a transport.
    pub(crate) fn over(transport: Transport) -> Self {
        Self::new(transport, Vec::new(), None)
    }

    /// The server in a process of its own, all roles in one.
    pub async fn over_loopback() -> Self {
        Self::over_loopback_with(&[]).await
    }

    /// The same with settings, as variables.
    pub async fn over_loopback_with(settings: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let path = data.path().to_str().expect("a path in UTF-8").to_owned();
        let server = Server::start(&["--data-dir", &path], settings);
        let transport = connect(&server.endpoint()).await;
        Self::new(transport, vec![server], Some(data))
    }

    /// A server that the test started.
    pub async fn of(server: Server) -> Self {
        let transport = connect(&server.endpoint()).await;
        Self::new(transport, vec![server], None)
    }

    /// Gateway and table service, each in a process of its own.
    pub async fn as_separate_processes() -> Self {
        Self::as_separate_processes_with(&[]).await
    }

    /// The same with settings of the gateway, as variables.
    pub async fn as_separate_processes_with(settings: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let path = data.path().to_str().expect("a path in UTF-8").to_owned();
        let table = Server::start(&["--roles", "table", "--data-dir", &path], &[]);
        let endpoint = table.endpoint();
        let found = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str())];
        let gateway = Server::start(&["--roles", "gateway"], &[&found, settings].concat());
        let transport = connect(&gateway.endpoint()).await;
        Self::new(transport, vec![gateway, table], Some(data))
    }

    /// Gateway, tables and queues, each in a process of its own.
    pub async fn with_separate_queues() -> Self {
        Self::with_separate("queue", &[]).await
    }

    /// Gateway, tables and blobs, each in a process of its own.
    pub async fn with_separate_blobs() -> Self {
        Self::with_separate_blobs_with(&[]).await
    }

    /// The same with settings of the gateway, as variables.
    pub async fn with_separate_blobs_with(settings: &[(&str, &str)]) -> Self {
        Self::with_separate("blob", settings).await
    }

    /// Gateway, tables and logs, each in a process of its own.
    pub async fn with_separate_logs() -> Self {
        Self::with_separate_logs_with(&[]).await
    }

    /// The same with settings of the gateway, as variables.
    pub async fn with_separate_logs_with(settings: &[(&str, &str)]) -> Self {
        Self::with_separate("log", settings).await
    }

    /// Gateway, tables, and one process with blobs and logs.
    pub async fn with_separate_objects() -> Self {
        Self::with_separate("blob,log", &[]).await
    }

    /// Gateway, tables, and one process with the roles `others`.
    async fn with_separate(others: &str, settings: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let path = data.path().to_str().expect("a path in UTF-8").to_owned();
        let role = |role: &str| {
            Server::start(&["--roles", role, "--data-dir", &format!("{path}/{role}")], &[])
        };
        let (table, of_others) = (role("table"), role(others));
        let mut found = vec![("TRESTLE__GATEWAY__TABLE_ENDPOINT".to_owned(), table.endpoint())];
        found.extend(others.to_uppercase().split(',').map(|role| {
            let key = format!("TRESTLE__GATEWAY__{role}_ENDPOINT");
            (key, of_others.endpoint())
        }));
        let found = found.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let settings: Vec<_> = found.chain(settings.iter().copied()).collect();
        let gateway = Server::start(&["--roles", "gateway"], &settings);
        let transport = connect(&gateway.endpoint()).await;
        Self::new(transport, vec![gateway, table, of_others], Some(data))
    }

    fn new(transport: Transport, servers: Vec<Server>, data: Option<TempDir>) -> Self {
        Self { client: client(transport.clone()), transport, servers, _data: data }
    }

    /// The transport of the client.
    pub fn transport(&self) -> Transport {
        self.transport.clone()
    }

    /// The address for clients; none without a socket.
    pub fn address(&self) -> Option<String> {
        self.servers.first().map(|server| server.address("grpc"))
    }

    /// Sends SIGHUP to every process of the world.
    pub fn hang_up(&self) {
        self.servers.iter().for_each(Server::hang_up);
    }

    /// A client.
    pub fn client(&self) -> TableServiceClient<Transport> {
        self.client.clone()
    }

    /// A new table.
    pub async fn table(&self, name: &str) -> Table {
        let table = Some(proto::Table { name: name.to_owned(), ..Default::default() });
        let request = proto::CreateTableRequest { table };
        self.client().create_table(request).await.expect("the table is created");
        self.existing_table(name)
    }

    /// A table that may exist or not.
    pub fn existing_table(&self, name: &str) -> Table {
        Table::new(self.client(), name)
    }
}

/// A store in a directory of its own.
pub(crate) fn store() -> (Arc<dyn Engine>, TempDir) {
    let data = tempfile::tempdir().expect("a directory");
    let options = FjallOptions::new(data.path(), keyspaces());
    (Arc::new(FjallEngine::open(options).expect("the store opens")), data)
}

/// A node in this process.
pub(crate) async fn node(settings: &Settings, engine: Arc<dyn Engine>) -> Node {
    let deps = NodeDeps {
        engine: Some(engine),
        objects: Some(trestle_objects::ObjectStorage::in_memory()),
        listen: None,
        clock: Arc::new(SystemClock),
        meter: NoopMeterProvider::new().meter("trestle-tests"),
        traces: Traces::default(),
        access: AccessLog::off(),
        random: rand::random,
        source: None,
    };
    compose(settings, ROLES, deps).await.expect("the settings make a node")
}

fn client(transport: Transport) -> TableServiceClient<Transport> {
    TableServiceClient::new(transport)
        .max_decoding_message_size(16 * 1024 * 1024)
        .max_encoding_message_size(64 * 1024 * 1024)
}

async fn connect(endpoint: &str) -> Transport {
    let endpoint = Endpoint::from_shared(endpoint.to_owned()).expect("an endpoint");
    let channel = endpoint.connect().await.expect("the server accepts connections");
    BoxCloneSyncService::new(ServiceExt::<http::Request<Body>>::map_err(channel, BoxError::from))
}
