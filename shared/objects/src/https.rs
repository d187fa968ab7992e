//! Connections to other servers over HTTP: with the CA certificates of the system, without redirects.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Empty;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector as TcpConnector},
    rt::TokioExecutor,
};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore, crypto::ring};

/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A client that opens a connection for each request: one that is used again may be closed by its server at that
/// moment.
pub type OneRequestClient = Client<HttpsConnector<TcpConnector>, Empty<Bytes>>;

/// A client that is made for the first request, since that reads every CA certificate of the system. Clones share it.
#[derive(Clone, Default)]
pub struct LazyClient(Arc<OnceLock<Option<OneRequestClient>>>);

impl LazyClient {
    /// The client; none on a platform without the versions of TLS.
    #[must_use]
    pub fn get(&self) -> Option<&OneRequestClient> {
        let made = || {
            let connector = connector(Schemes::HttpsOrHttp).ok()?;
            let mut client = Client::builder(TokioExecutor::new());
            Some(client.pool_max_idle_per_host(0).build(connector))
        };
        self.0.get_or_init(made).as_ref()
    }
}

/// Which schemes a connector has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schemes {
    /// `https`.
    Https,
    /// `https` and `http`.
    HttpsOrHttp,
}

/// Opens connections of HTTP/1.
///
/// # Errors
/// A platform without the versions of TLS.
pub(crate) fn connector(schemes: Schemes) -> Result<HttpsConnector<TcpConnector>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let mut tcp = TcpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_WITHIN));
    let builder = HttpsConnectorBuilder::new().with_tls_config(config);
    let builder = match schemes {
        Schemes::HttpsOrHttp => builder.https_or_http(),
        Schemes::Https => builder.https_only(),
    };
    Ok(builder.enable_http1().wrap_connector(tcp))
}
