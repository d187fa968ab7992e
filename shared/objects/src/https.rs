//! Connections to other servers over HTTP: with the CA certificates of the system, without redirects.

use std::{sync::Arc, time::Duration};

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore, crypto::ring};

/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Which schemes a connector has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schemes {
    /// `https`.
    Https,
    /// `https` and `http`.
    HttpsOrHttp,
}

/// Opens connections of HTTP/1.
///
/// # Errors
/// A platform without the versions of TLS.
pub fn connector(schemes: Schemes) -> Result<HttpsConnector<TcpConnector>, Error> {
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
