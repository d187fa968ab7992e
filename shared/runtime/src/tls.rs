//! The encryption of a listener: certificates read from files, checked, and replaced while
//! connections go on.
//!
//! New connections get the newest certificate that could be read; those that are open keep theirs.
//! No text of a failure here shows what is in a file.

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

/// What a listener speaks inside the encryption, best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Where the certificates of a listener are, all in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, followed by those between it and its authority.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// What is asked of clients.
    pub clients: ClientCertificates,
}

/// What a listener asks of its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Nothing.
    Off,
    /// A certificate of one of the authorities in the file, or none at all.
    Optional(PathBuf),
    /// A certificate of one of the authorities in the file.
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

/// Files that make no encryption.
#[derive(Debug, thiserror::Error)]
#[error("{what}: file=`{}`, {problem}", file.display())]
pub struct TlsError {
    what: &'static str,
    file: PathBuf,
    problem: String,
}

/// What the files of a listener held when they were read. Equal where the files were.
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
    /// Reads the files, and checks that they make an encryption: the key is that of the
    /// certificate, and there is an authority where clients are asked for certificates. Blocks.
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

impl Failures {
    fn may_tell(&self, now: Instant) -> bool {
        let mut told_at = self.told_at.lock().unwrap_or_else(PoisonError::into_inner);
        let may = told_at.is_none_or(|told_at| now.duration_since(told_at) >= TELL_EVERY);
        if may {
            *told_at = Some(now);
        }
        may
    }
}

/// The encryption of a listener. Clones share it.
#[derive(Clone)]
pub struct Tls {
    current: Arc<RwLock<Arc<ServerConfig>>>,
    failures: Arc<Failures>,
}

/// The handshakes that failed.
#[derive(Default)]
struct Failures {
    counter: OnceLock<Counter<u64>>,
    told_at: Mutex<Option<Instant>>,
}

/// Time between lines about handshakes that failed. They can be a flood, so the others are lines of
/// level debug.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What a handshake failed of, as the metric has it.
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
    /// With these certificates until they are replaced.
    #[must_use]
    pub fn new(certificates: &Certificates) -> Self {
        let current = Arc::new(RwLock::new(Arc::clone(&certificates.config)));
        Self { current, failures: Arc::default() }
    }

    /// Counts the handshakes that fail from now on.
    pub fn count_on(&self, meter: &Meter) {
        self.failures.counter.get_or_init(|| semconv::failed_handshakes(meter));
    }

    /// Notes a handshake that failed.
    pub(crate) fn failed(&self, peer: SocketAddr, error: &io::Error) {
        let cause = cause(error);
        if let Some(counter) = self.failures.counter.get() {
            counter.add(1, &[KeyValue::new(semconv::ERROR_TYPE, cause)]);
        }
        // Balancers connect and leave to see whether somebody is there.
        if cause != "closed" && self.failures.may_tell(Instant::now()) {
            info!(%peer, cause, %error, "handshake failed; others within 10 s are not told");
        } else {
            debug!(%peer, cause, %error, "handshake failed");
        }
    }

    /// Gives new connections other certificates.
    pub fn replace(&self, certificates: &Certificates) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::clone(&certificates.config);
    }

    /// Takes the next connection into the encryption.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_handshakes_are_few_however_many_fail() {
        let (failures, start) = (Failures::default(), Instant::now());

        let told =
            [0, 1, 9, 10, 11, 19, 20].map(|s| failures.may_tell(start + Duration::from_secs(s)));

        assert_eq!(told, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn handshakes_fail_of_one_of_four_causes() {
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
