//! The listener for operators and orchestrators, on HTTP: `/metrics`, `/livez`, `/readyz`, `/version`,
//! and pages of the roles; `/` lists them.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{ACCEPT, CONTENT_TYPE, HOST, SERVER},
    },
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;
use tonic::body::Body;
use tower::{ServiceExt as _, service_fn};
use tracing::warn;
use trestle_model::fault::quoted;
use trestle_rpc::layer::{CallService, Request};

use crate::{
    build,
    health::Health,
    openmetrics::Exposition,
    serve::{Bounds, Connections, Drained, Listener, StopSignals, serve},
    tls::Tls,
};

/// Most connections at a time: ample for a few scrapers and probes.
pub const CONNECTIONS_MAX: usize = 64;
const BOUNDS: Bounds = Bounds {
    streams_max: 16,
    age_max: Duration::from_secs(30 * 60),
    age_grace: Duration::from_secs(30),
    keepalive: Duration::from_secs(20),
    head_within: Duration::from_secs(60),
    headers_max: None,
    keeps_header_case: false,
    reader_within: Duration::from_secs(30),
    drain_within: Duration::from_secs(5),
};

/// The value of the header `server`: clients distinguish this listener from other HTTP servers by it.
const NAME: HeaderValue = HeaderValue::from_static("trestle");
const JSON: &str = "application/json";
/// The pages of every process, with their content.
const PAGES: [(&str, &str); 5] = [
    ("/metrics", "metrics, as text of Prometheus or as OpenMetrics"),
    ("/livez", "200 while the process runs"),
    ("/healthz", "the same as /livez"),
    ("/readyz", "200 while the process serves, else 503 with the reasons"),
    ("/version", "the build, as JSON"),
];

/// The content of the listener.
#[derive(Clone)]
pub struct Admin {
    /// The health of the process.
    pub health: Health,
    /// Its metrics.
    pub metrics: Exposition,
    /// Pages of its roles.
    pub pages: Vec<AdminPage>,
    /// The hosts that clients may address on loopback; none: any.
    pub hosts: Option<AllowsHost>,
}

/// Whether clients may address the listener as this host. A page in a browser of the machine could have a name of its
/// own that resolves to it.
pub type AllowsHost = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A page of JSON that a role renders for each request.
#[derive(Clone)]
pub struct AdminPage {
    /// Its path, beginning with `/`.
    pub path: &'static str,
    /// Its content, for the list of pages.
    pub about: &'static str,
    /// Renders it.
    pub json: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Admin {
    /// The routes.
    pub fn router(self) -> Router {
        let mut router = Router::new()
            .route("/", get(index))
            .route("/metrics", get(metrics))
            .route("/livez", get(async || "ok\n"))
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(readyz))
            .route("/version", get(async || ([(CONTENT_TYPE, JSON)], build::json())));
        for AdminPage { path, json, .. } in self.pages.clone() {
            let answer = async move || ([(CONTENT_TYPE, JSON)], json());
            router = router.route(path, get(answer));
        }
        // Outside the fallback, so that also unknown pages and wrong methods are identified.
        router.fallback(not_found).layer(map_response(identified)).with_state(self)
    }

    /// Serves until `stop`, encrypted with `tls`.
    pub async fn serve(
        self,
        listener: TcpListener,
        tls: Option<Tls>,
        signals: impl Into<StopSignals>,
    ) {
        let is_local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
        let hosts = self.hosts.clone().filter(|_| is_local);
        let router = self.router();
        let service = service_fn(move |request: Request| {
            let other = hosts.as_ref().and_then(|allows| other_host(&request, &**allows));
            let answer = router.clone().oneshot(request);
            async move {
                if let Some(host) = other {
                    return Ok(identified(wrong_host(&host)).await.map(Body::new));
                }
                answer.await.map(|answer| answer.map(Body::new))
            }
        });
        let connections = Connections::at_most(CONNECTIONS_MAX);
        let listener = Listener { socket: listener, tls, connections, bounds: BOUNDS };
        let drained = serve(listener, CallService::new(service), signals).await;
        if drained != Drained::Clean {
            warn!("requests on the admin listener were cut off");
        }
    }
}

/// The host that a request addresses, if it must not.
fn other_host(request: &Request, allows: &dyn Fn(&str) -> bool) -> Option<String> {
    let header = || request.headers().get(HOST).map(HeaderValue::as_bytes).unwrap_or_default();
    let host = match request.uri().authority() {
        Some(authority) => authority.to_string(),
        None => String::from_utf8_lossy(header()).into_owned(),
    };
    (!host.is_empty() && !allows(&host)).then_some(host)
}

fn wrong_host(host: &str) -> Response {
    let host = quoted(host);
    let text = format!(
        "this listener is on loopback: address it as localhost, or list the host in \
         gateway.development_hosts: host=`{host}`\n"
    );
    (StatusCode::FORBIDDEN, text).into_response()
}

async fn identified(mut response: Response) -> Response {
    response.headers_mut().insert(SERVER, NAME);
    response
}

/// The pages, one in a line.
async fn index(State(admin): State<Admin>) -> String {
    let pages = admin.pages.iter().map(|page| (page.path, page.about));
    PAGES.into_iter().chain(pages).map(|(path, about)| format!("{path:<17} {about}\n")).collect()
}

/// The answer to a path of no page: what there is.
async fn not_found(State(admin): State<Admin>) -> Response {
    let text = format!("no such page; the pages are:\n{}", index(State(admin)).await);
    (StatusCode::NOT_FOUND, text).into_response()
}

async fn metrics(State(admin): State<Admin>, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    match admin.metrics.render(accept.unwrap_or_default()) {
        Ok((kind, text)) => ([(CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn readyz(State(admin): State<Admin>) -> Response {
    let problems = admin.health.problems();
    if problems.is_empty() {
        let limitations = admin.health.limitations();
        let text = if limitations.is_empty() { "ok".to_owned() } else { limitations.join("\n") };
        return (text + "\n").into_response();
    }
    let text = problems.join("\n") + "\n";
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}
