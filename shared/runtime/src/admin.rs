//! The listener for operators and orchestrators, on plain HTTP: `/metrics`, `/livez`, `/readyz`.

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use prometheus::{Encoder as _, Registry, TEXT_FORMAT, TextEncoder};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::health::Health;

/// What the listener tells.
#[derive(Clone)]
pub struct Admin {
    /// The health of the process.
    pub health: Health,
    /// Its metrics.
    pub metrics: Registry,
}

impl Admin {
    /// The routes.
    pub fn router(self) -> Router {
        Router::new()
            .route("/metrics", get(metrics))
            .route("/livez", get(async || "ok\n"))
            .route("/readyz", get(readyz))
            .with_state(self)
    }

    /// Serves until `stop`.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let serving = axum::serve(listener, self.router());
        if let Err(error) = serving.with_graceful_shutdown(stop.cancelled_owned()).await {
            warn!(%error, "admin listener ended");
        }
    }
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let mut text = Vec::new();
    match TextEncoder::new().encode(&admin.metrics.gather(), &mut text) {
        Ok(()) => ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn readyz(State(admin): State<Admin>) -> Response {
    let problems = admin.health.problems();
    if problems.is_empty() {
        return "ok\n".into_response();
    }
    let text = problems.join("\n") + "\n";
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}
