//! The certificate files of a listener: read and checked.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_rustls::rustls::{
    Error as RustlsError, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    server::{NoClientAuth, WebPkiClientVerifier, danger::ClientCertVerifier},
};
use trestle_rpc::small_file;

use super::Validity;

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
    /// The names of gateways: a client whose certificate has one of them is a gateway. Invalid names are in no
    /// certificate.
    pub gateways: Vec<String>,
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

/// One of the files of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFile {
    /// [`TlsFiles::certificate`].
    Certificate,
    /// [`TlsFiles::key`].
    Key,
    /// That of [`TlsFiles::clients`].
    Authorities,
}

/// Files that cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
#[error("{what}: file=`{}`, {problem}", file.display())]
pub struct TlsError {
    what: TlsFile,
    file: PathBuf,
    problem: String,
}

impl TlsError {
    /// Which of the files.
    #[must_use]
    pub fn of(&self) -> TlsFile {
        self.what
    }
}

impl TlsFile {
    /// Why a file cannot be used as this one, by itself. Blocks.
    #[must_use]
    pub fn problem(self, file: &Path) -> Option<TlsError> {
        match self {
            Self::Certificate | Self::Authorities => certificates(self, file).err(),
            Self::Key => private_key(file).err(),
        }
    }
}

impl fmt::Display for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "certificate",
            Self::Key => "private key",
            Self::Authorities => "client authorities",
        })
    }
}

/// The content of the files of a listener when they were read. Equal if the files were.
#[derive(Clone)]
pub struct Certificates {
    files: Vec<Vec<u8>>,
    /// When the certificate of the server is valid.
    validity: Option<Validity>,
    pub(super) config: Arc<ServerConfig>,
    pub(super) gateways: Arc<[ServerName<'static>]>,
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
        let (certificate_pem, chain) = certificates(TlsFile::Certificate, &files.certificate)?;
        let (key_pem, key) = private_key(&files.key)?;
        let validity = chain.first().and_then(Validity::of);
        let mut read = vec![certificate_pem, key_pem];
        let clients: Arc<dyn ClientCertVerifier> = match files.clients.authorities() {
            None => Arc::new(NoClientAuth),
            Some(file) => {
                let (pem, authorities) = certificates(TlsFile::Authorities, file)?;
                read.push(pem);
                verifier(files, file, authorities, &provider)?
            }
        };
        let failed = |problem| TlsError { what: TlsFile::Key, file: files.key.clone(), problem };
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?
            .with_client_cert_verifier(clients);
        let mut config = config
            .with_single_cert(chain, key)
            .map_err(|error| failed(not_of_certificate(&error)))?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        let names = files.gateways.iter().cloned();
        let gateways = names.filter_map(|name| ServerName::try_from(name).ok()).collect();
        Ok(Self { files: read, validity, config: Arc::new(config), gateways })
    }

    /// When the certificate of the server expires, in seconds since 1970.
    #[must_use]
    pub fn expires_at(&self) -> Option<i64> {
        self.validity.as_ref().map(|validity| validity.not_after)
    }

    /// The same, for people.
    #[must_use]
    pub fn expires(&self) -> Option<&str> {
        self.validity.as_ref().map(|validity| validity.expires.as_str())
    }
}

fn verifier(
    files: &TlsFiles,
    file: &Path,
    authorities: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let failed = |error: &dyn std::error::Error| TlsError {
        what: TlsFile::Authorities,
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
    what: TlsFile,
    file: &Path,
) -> Result<(Vec<u8>, Vec<CertificateDer<'static>>), TlsError> {
    let failed = |problem: String| TlsError { what, file: file.to_owned(), problem };
    let pem = small_file::read(file).map_err(|error| failed(unreadable(&error)))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let read = read.map_err(|_| failed("is not in PEM".to_owned()))?;
    if read.is_empty() {
        return Err(failed("holds no certificate in PEM".to_owned()));
    }
    Ok((pem, read))
}

/// The bytes of a file and the private key in it.
fn private_key(file: &Path) -> Result<(Vec<u8>, PrivateKeyDer<'static>), TlsError> {
    let failed = |problem: String| TlsError { what: TlsFile::Key, file: file.to_owned(), problem };
    let pem = small_file::read(file).map_err(|error| failed(unreadable(&error)))?;
    let key = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|_| failed("holds no private key in PEM".to_owned()))?;
    Ok((pem, key))
}

fn not_of_certificate(error: &RustlsError) -> String {
    let rule = "is not the key of the certificate";
    match error {
        RustlsError::InconsistentKeys(_) => rule.to_owned(),
        other => format!("{rule}: {other}"),
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}
