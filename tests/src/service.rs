//! A table service without a gateway, which trusts the identity of its callers: the test
//! authenticates them, as a gateway would.

use std::sync::Arc;

use tempfile::TempDir;
use tonic::body::Body;
use tower::{BoxError, ServiceExt, util::BoxCloneSyncService};
use trestle::settings::Settings;
use trestle_identity::caller::{Authority, Caller};
use trestle_model::name::AccountName;
use trestle_rpc::upstream::{Endpoint, Remote, RemoteOptions, Upstream};

use crate::{Server, World, world};

/// The service, on a store of its own.
pub struct Service {
    upstream: Upstream,
    // Dropped in this order: the process before the directory that it uses.
    _server: Option<Server>,
    _data: TempDir,
}

impl Service {
    /// The service in this process.
    pub async fn in_process() -> Self {
        let (engine, data) = world::store();
        let mut settings = Settings::default();
        settings.server.roles = "table".parse().expect("a role");
        let node = world::node(&settings, engine).await;
        Self { upstream: Upstream::Local(node.routes), _server: None, _data: data }
    }

    /// The service in a process of its own, called as a gateway calls it.
    pub fn as_separate_process() -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let path = data.path().to_str().expect("a path in UTF-8").to_owned();
        let server = Server::start(&["--roles", "table", "--data-dir", &path], &[]);
        let endpoint = Endpoint::parse(&server.endpoint()).expect("an endpoint");
        let remote = Remote::new(endpoint, RemoteOptions::default());
        Self { upstream: Upstream::Remote(remote), _server: Some(server), _data: data }
    }

    /// The world of the owner of the development account.
    pub fn owner(&self) -> World {
        self.world_of(AccountName::development(), Authority::Owner)
    }

    /// The world of a caller of the development account.
    pub fn granted(&self, authority: Authority) -> World {
        self.world_of(AccountName::development(), authority)
    }

    /// The world of a caller.
    pub fn world_of(&self, account: AccountName, authority: Authority) -> World {
        let caller = Arc::new(Caller::new(account, authority));
        let authenticate = move |mut request: http::Request<Body>| {
            Arc::clone(&caller).insert(&mut request);
            request
        };
        let authenticated =
            ServiceExt::<http::Request<Body>>::map_request(self.upstream.clone(), authenticate);
        let transport = ServiceExt::<http::Request<Body>>::map_err(authenticated, BoxError::from);
        World::over(BoxCloneSyncService::new(transport))
    }
}
