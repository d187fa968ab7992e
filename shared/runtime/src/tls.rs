//! The encryption of a listener: certificates read from files, checked, and replaced while connections remain open.
//!
//! New connections get the newest certificate that could be read; those that are open keep theirs. No error text here
//! contains the content of a file.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter},
};
use tokio::time::Instant;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, RootCertStore, ServerConfig,
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
        server::{NoClientAuth, WebPkiClientVerifier, danger::ClientCertVerifier},
    },
};
use tracing::{debug, info};
use trestle_service::semconv;

/// The protocols inside the encryption (ALPN), in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificate files of a listener, all in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain of the server, its own certificate first.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// Which certificates clients need.
    pub clients: ClientCertificates,
}

/// Which certificates the clients of a listener need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCertificates {
    /// None.
    Off,
    /// One that a CA certificate in the file signed, or none.
    Optional(PathBuf),
    /// One that a CA certificate in the file signed.
    Required(PathBuf),
}

impl ClientCertificates {
    fn authorities(&self) -> Option<&Path> {
        match self {
            Self::Off => None,
            Self::Optional(file) | Self::Required(file) => Some(file),
        }
    }
}

/// Files that cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
#[error("{what}: file=`{}`, {problem}", file.display())]
pub struct TlsError {
    what: &'static str,
    file: PathBuf,
    problem: String,
}

/// The content of the files of a listener when they were read. Equal if the files were.
#[derive(Clone)]
pub struct Certificates {
    files: Vec<Vec<u8>>,
    config: Arc<ServerConfig>,
}

impl PartialEq for Certificates {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files
    }
}

impl Certificates {
    /// Reads the files, and checks that they fit together: the key is that of the certificate, and a CA certificate
    /// exists where clients need certificates. Blocks.
    ///
    /// # Errors
    /// The first file that cannot be used, and why.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let (certificate_pem, chain) = certificates("certificate", &files.certificate)?;
        let failed =
            |problem: String| TlsError { what: "private key", file: files.key.clone(), problem };
        let key_pem = fs::read(&files.key).map_err(|error| failed(unreadable(&error)))?;
        let key = PrivateKeyDer::from_pem_slice(&key_pem)
            .map_err(|_| failed("holds no private key in PEM".to_owned()))?;
        let mut read = vec![certificate_pem, key_pem];
        let clients: Arc<dyn ClientCertVerifier> = match files.clients.authorities() {
            None => Arc::new(NoClientAuth),
            Some(file) => {
                let (pem, authorities) = certificates("client authorities", file)?;
                read.push(pem);
                verifier(files, file, authorities, &provider)?
            }
        };
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?
            .with_client_cert_verifier(clients);
        let mut config = config
            .with_single_cert(chain, key)
            .map_err(|error| failed(format!("is no key of the certificate: {error}")))?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Self { files: read, config: Arc::new(config) })
    }
}

fn verifier(
    files: &TlsFiles,
    file: &Path,
    authorities: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let failed = |error: &dyn std::error::Error| TlsError {
        what: "client authorities",
        file: file.to_owned(),
        problem: error.to_string(),
    };
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(|error| failed(&error))?;
    }
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let verifier = match files.clients {
        ClientCertificates::Optional(_) => verifier.allow_unauthenticated(),
        ClientCertificates::Off | ClientCertificates::Required(_) => verifier,
    };
    verifier.build().map_err(|error| failed(&error))
}

/// The bytes of a file and the certificates in it, at least one.
fn certificates(
    what: &'static str,
    file: &Path,
) -> Result<(Vec<u8>, Vec<CertificateDer<'static>>), TlsError> {
    let failed = |problem: String| TlsError { what, file: file.to_owned(), problem };
    let pem = fs::read(file).map_err(|error| failed(unreadable(&error)))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let read = read.map_err(|_| failed("is not in PEM".to_owned()))?;
    if read.is_empty() {
        return Err(failed("holds no certificate in PEM".to_owned()));
    }
    Ok((pem, read))
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}

impl HandshakeFailures {
    fn may_log(&self, now: Instant) -> bool {
        let mut logged_at = self.logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        let may = logged_at.is_none_or(|logged_at| now.duration_since(logged_at) >= LOG_EVERY);
        if may {
            *logged_at = Some(now);
        }
        may
    }
}

/// The encryption of a listener. Clones share it.
#[derive(Clone)]
pub struct Tls {
    current: Arc<RwLock<Arc<ServerConfig>>>,
    failures: Arc<HandshakeFailures>,
}

/// The handshakes that failed.
#[derive(Default)]
struct HandshakeFailures {
    counter: OnceLock<Counter<u64>>,
    logged_at: Mutex<Option<Instant>>,
}

/// Time between lines about handshakes that failed. They can be a flood, so the others are lines of
/// level debug.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Why a handshake failed, as the metric labels it.
fn cause(error: &io::Error) -> &'static str {
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (of_tls, error.kind()) {
        (
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented),
            _,
        ) => "certificate",
        (Some(_), _) => "protocol",
        (None, io::ErrorKind::TimedOut) => "timeout",
        (None, _) => "closed",
    }
}

impl Tls {
    /// Uses these certificates until they are replaced.
    #[must_use]
    pub fn new(certificates: &Certificates) -> Self {
        let current = Arc::new(RwLock::new(Arc::clone(&certificates.config)));
        Self { current, failures: Arc::default() }
    }

    /// Counts the handshakes that fail from now on.
    pub fn count_on(&self, meter: &Meter) {
        self.failures.counter.get_or_init(|| semconv::failed_handshakes(meter));
    }

    /// Records a handshake that failed.
    pub(crate) fn failed(&self, peer: SocketAddr, error: &io::Error) {
        let cause = cause(error);
        if let Some(counter) = self.failures.counter.get() {
            counter.add(1, &[KeyValue::new(semconv::ERROR_TYPE, cause)]);
        }
        // Balancers connect and disconnect as a probe.
        if cause != "closed" && self.failures.may_log(Instant::now()) {
            info!(%peer, cause, %error, "handshake failed; further failures within 10 s are not logged");
        } else {
            debug!(%peer, cause, %error, "handshake failed");
        }
    }

    /// Uses other certificates for new connections.
    pub fn replace(&self, certificates: &Certificates) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::clone(&certificates.config);
    }

    /// Performs the handshake of the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_failed_handshakes_at_a_bounded_rate() {
        let (failures, start) = (HandshakeFailures::default(), Instant::now());

        let logged =
            [0, 1, 9, 10, 11, 19, 20].map(|s| failures.may_log(start + Duration::from_secs(s)));

        assert_eq!(logged, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn labels_a_failed_handshake_with_one_of_four_causes() {
        let of = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        for (error, expected) in [
            (of(rustls::Error::NoCertificatesPresented), "certificate"),
            (of(rustls::CertificateError::UnknownIssuer.into()), "certificate"),
            (of(rustls::Error::HandshakeNotComplete), "protocol"),
            (io::ErrorKind::UnexpectedEof.into(), "closed"),
            (io::ErrorKind::TimedOut.into(), "timeout"),
        ] {
            assert_eq!(cause(&error), expected, "{error}");
        }
    }
}
