//! Encryption towards another role, and the certificate that is shown there.

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

/// Files that cannot be used. Holds nothing of their contents.
#[derive(Debug, thiserror::Error)]
pub enum ClientTlsError {
    /// No certificate or key could be read.
    #[error("{what} cannot be read: {problem}")]
    Pem {
        /// Which of the files.
        what: &'static str,
        /// What is wrong with it.
        problem: pem::Error,
    },
    /// A file without what it is for.
    #[error("{0} holds none")]
    Empty(&'static str),
    /// A certificate and a key that do not belong together, or cannot be used.
    #[error("certificate or key cannot be used: {0}")]
    Rejected(#[from] tokio_rustls::rustls::Error),
    /// No name that a certificate could have.
    #[error("server name must be a DNS name or an address")]
    Name(#[from] InvalidDnsNameError),
}

/// What encryption towards a role is made of, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientPem {
    /// Who vouches for the role.
    pub authorities: Vec<u8>,
    /// The certificate that is shown to the role, its chain after it, and its key; none shows none.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Says how much there is, and nothing of it.
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

/// Encryption towards a role. What it is made of can be replaced; connections that are there stay.
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
    /// Encrypts towards a role whose certificate is for `server_name`.
    ///
    /// # Errors
    /// Every kind of [`ClientTlsError`].
    pub fn new(pem: &ClientPem, server_name: &str) -> Result<Self, ClientTlsError> {
        let server_name = ServerName::try_from(server_name.to_owned())?;
        Ok(Self { config: Mutex::new(Arc::new(pem.config()?)), server_name })
    }

    /// Uses other files for connections that are made from now on.
    ///
    /// # Errors
    /// Every kind of [`ClientTlsError`]; then nothing has changed.
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
