//! TLS to another role, and the client certificate for it.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore, crypto,
        pki_types::{
            CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName,
            pem::{self, PemObject as _},
        },
    },
};

/// The protocol that both sides agree on in the handshake.
const ALPN: &[u8] = b"h2";

/// Files that cannot be used. Contains nothing of their contents.
#[derive(Debug, thiserror::Error)]
pub enum ClientTlsError {
    /// No certificate or key could be read.
    #[error("{what} cannot be read: {problem}")]
    Pem {
        /// Which of the files.
        what: &'static str,
        /// The problem.
        problem: pem::Error,
    },
    /// A file without a certificate or key.
    #[error("{0} has none")]
    Empty(&'static str),
    /// A certificate and a key that do not match, or cannot be used.
    #[error("certificate or key cannot be used: {0}")]
    Rejected(#[from] tokio_rustls::rustls::Error),
    /// An invalid server name.
    #[error("server name must be a DNS name or an address")]
    Name(#[from] InvalidDnsNameError),
}

/// The files of TLS to a role, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientPem {
    /// The CA certificates of the role.
    pub authorities: Vec<u8>,
    /// The certificate chain of the client, and its key, if it has one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Prints sizes, and no content.
impl fmt::Debug for ClientPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, shows) = (self.authorities.len(), self.identity.is_some());
        write!(f, "ClientPem {{ authorities: {bytes} bytes, shows a certificate: {shows} }}")
    }
}

impl ClientPem {
    fn config(&self) -> Result<ClientConfig, ClientTlsError> {
        let mut roots = RootCertStore::empty();
        for authority in certificates("authority file", &self.authorities)? {
            roots.add(authority)?;
        }
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates("certificate file", certificate)?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|problem| ClientTlsError::Pem { what: "key file", problem })?;
                builder.with_client_auth_cert(chain, key)?
            }
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(config)
    }
}

fn certificates(
    what: &'static str,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, ClientTlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let read = read.map_err(|problem| ClientTlsError::Pem { what, problem })?;
    if read.is_empty() { Err(ClientTlsError::Empty(what)) } else { Ok(read) }
}

/// TLS to a role. Its files can be replaced; open connections remain.
pub struct ClientTls {
    config: Mutex<Arc<ClientConfig>>,
    server_name: ServerName<'static>,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

impl ClientTls {
    /// For a role whose certificate is for `server_name`.
    ///
    /// # Errors
    /// Every kind of [`ClientTlsError`].
    pub fn new(pem: &ClientPem, server_name: &str) -> Result<Self, ClientTlsError> {
        let server_name = ServerName::try_from(server_name.to_owned())?;
        Ok(Self { config: Mutex::new(Arc::new(pem.config()?)), server_name })
    }

    /// Uses other files for new connections.
    ///
    /// # Errors
    /// Every kind of [`ClientTlsError`]; then nothing changed.
    pub fn replace(&self, pem: &ClientPem) -> Result<(), ClientTlsError> {
        let config = Arc::new(pem.config()?);
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(super) fn connector(&self) -> (TlsConnector, ServerName<'static>) {
        let config = Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner));
        (TlsConnector::from(config), self.server_name.clone())
    }
}
