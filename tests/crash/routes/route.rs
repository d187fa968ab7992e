//! The routes, from where the product declares them.

use http::{HeaderName, HeaderValue, Request, Version, header};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::body::Body;
use trestle::{
    roles::ROLES,
    settings::{Listen, RoleKey as _},
};
use trestle_gateway::http_paths;
use trestle_tests::{BINARY, Server, over_account, terms, token};

use super::attack::Sender;

/// The methods of HTTP that a listener of Azure Storage may serve.
const METHODS: [&str; 8] = ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "MERGE", "OPTIONS"];
/// Paths below an account, by what they name: itself, a resource, and what is in one.
const DEPTHS: [&str; 3] = ["", "/routes", "/routes/one"];
/// Parameters that select an operation.
const SELECTED: [&str; 2] = ["", "comp=block&blockid=AAAA&"];

/// A route of a listener.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) address: String,
    method: String,
    /// Path and query.
    target: String,
    /// The type of a body; none is sent where it is not known.
    kind: Option<&'static str>,
    /// Whether messages are framed as gRPC frames them.
    pub(super) is_framed: bool,
    pub(super) version: Version,
}

impl Route {
    fn call(server: &Server, path: &str, kind: &'static str) -> Self {
        Self {
            address: server.address("grpc"),
            method: "POST".to_owned(),
            target: path.to_owned(),
            kind: Some(kind),
            is_framed: kind != "application/x-protobuf",
            version: Version::HTTP_2,
        }
    }

    /// Whether anyone may call it.
    pub(super) fn is_open(&self) -> bool {
        self.target.starts_with("/grpc.")
    }

    /// Whether it is a method of one of these services.
    pub(super) fn is_of(&self, services: &[&str]) -> bool {
        let path = self.target.trim_start_matches('/');
        services
            .iter()
            .any(|service| path.strip_prefix(service).is_some_and(|it| it.starts_with('/')))
    }

    /// A request of it with more headers.
    pub(super) fn request<B>(&self, headers: &[(HeaderName, String)], body: B) -> Request<B> {
        let target = match self.version {
            Version::HTTP_2 => format!("http://{}{}", self.address, self.target),
            _ => self.target.clone(),
        };
        let mut request = Request::builder().method(&*self.method).uri(target);
        if self.version != Version::HTTP_2 {
            request = request.header(header::HOST, &self.address);
        }
        if let Some(kind) = self.kind {
            request = request.header(header::CONTENT_TYPE, kind).header(header::TE, "trailers");
        }
        for (name, value) in headers {
            request = request.header(name, HeaderValue::from_str(value).expect("a header"));
        }
        request.body(body).expect("a request")
    }

    /// Calls it once without a message.
    pub(super) async fn warm_up(&self) {
        let mut sender = Sender::connect(self, 64 * 1024).await;
        let answer = sender.send(self.request(&[], Body::empty()));
        // A call that waits for messages is dropped.
        drop(tokio::time::timeout(std::time::Duration::from_millis(50), answer).await);
    }
}

/// Every method that reflection lists, by gRPC and by gRPC-Web, and every path of HTTP beside them.
pub(super) fn grpc_routes(server: &Server) -> Vec<Route> {
    let files = FileDescriptorSet::decode(trestle_proto::REFLECTION_DESCRIPTOR_SET).unwrap().file;
    let mut routes = Vec::new();
    for file in &files {
        for service in &file.service {
            for method in &service.method {
                let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                routes.extend(
                    ["application/grpc", BINARY].map(|kind| Route::call(server, &path, kind)),
                );
            }
        }
    }
    let http = http_paths().map(|(path, _)| Route::call(server, &path, "application/x-protobuf"));
    routes.into_iter().chain(http).collect()
}

/// Every method and depth of path of the listener of each role, for the holder of a signature over the account and for
/// anyone.
pub(super) fn azure_routes(server: &Server) -> Vec<Route> {
    let signature = token(terms(over_account("bqt", "sco"), "rwdlacup"));
    let mut routes = Vec::new();
    for role in ROLES.iter().filter(|role| role.azure.is_some()) {
        let address = server.address(&Listen::key(role.name));
        for method in METHODS {
            for depth in DEPTHS {
                for selected in SELECTED {
                    for query in [signature.as_str(), ""] {
                        routes.push(Route {
                            address: address.clone(),
                            method: method.to_owned(),
                            target: format!("/devstoreaccount1{depth}?{selected}{query}"),
                            kind: None,
                            is_framed: false,
                            version: Version::HTTP_11,
                        });
                    }
                }
            }
        }
    }
    routes
}

/// The pages that the admin listener lists.
pub(super) async fn admin_routes(server: &Server) -> Vec<Route> {
    let index = server.page("/").await;
    let pages = index.lines().filter(|line| line.starts_with('/'));
    let route = |line: &str| Route {
        address: server.address("admin"),
        method: "GET".to_owned(),
        target: line.split_whitespace().next().expect("a path").to_owned(),
        kind: None,
        is_framed: false,
        version: Version::HTTP_11,
    };
    pages.map(route).collect()
}
