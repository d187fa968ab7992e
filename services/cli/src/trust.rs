//! Whom a command trusts, and as whom it shows itself, on an encrypted connection.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, crypto,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::errors::CliError;

/// For an endpoint that begins with `https://`. All files are in PEM.
#[derive(Debug, Clone, Default, Args)]
pub struct TlsArgs {
    /// Authorities that vouch for the server; needed with https, since no others are known
    #[arg(long, global = true, env = "TRESTLE_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Name in the server's certificate, where it is not the one in the endpoint
    #[arg(long, global = true, env = "TRESTLE_SERVER_NAME", value_name = "NAME")]
    pub server_name: Option<String>,
    /// Certificate to show to the server
    #[arg(long, global = true, env = "TRESTLE_CERT_FILE", value_name = "FILE")]
    pub cert_file: Option<PathBuf>,
    /// Private key of that certificate
    #[arg(long, global = true, env = "TRESTLE_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

impl TlsArgs {
    /// The same for a connection that is only to show how it fails; none where that cannot be made.
    pub(crate) fn probe(&self) -> Option<ClientConfig> {
        let parsed = |file: &Path| -> Option<Vec<_>> {
            CertificateDer::pem_slice_iter(&fs::read(file).ok()?).collect::<Result<_, _>>().ok()
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(parsed(self.ca_file.as_deref()?)?);
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().ok()?;
        let config = config.with_root_certificates(roots);
        let mut config = match (&self.cert_file, &self.key_file) {
            (Some(certificate), Some(key)) => {
                let key = PrivateKeyDer::from_pem_slice(&fs::read(key).ok()?).ok()?;
                config.with_client_auth_cert(parsed(certificate)?, key).ok()?
            }
            _ => config.with_no_client_auth(),
        };
        config.alpn_protocols.push(b"h2".to_vec());
        Some(config)
    }

    /// What the arguments say.
    pub(crate) fn config(&self) -> Result<ClientTlsConfig, CliError> {
        let needed = "https needs --ca-file, the authorities that vouch for the server";
        let authorities = self.ca_file.as_deref().ok_or_else(|| CliError::Usage(needed.into()))?;
        let authorities = Certificate::from_pem(certificates(authorities)?);
        let mut config = ClientTlsConfig::new().ca_certificate(authorities);
        if let Some(name) = &self.server_name {
            config = config.domain_name(name);
        }
        match (&self.cert_file, &self.key_file) {
            (None, None) => Ok(config),
            (Some(certificate), Some(key)) => {
                Ok(config.identity(Identity::from_pem(read(certificate)?, read(key)?)))
            }
            _ => Err(CliError::Usage("--cert-file and --key-file need each other".into())),
        }
    }
}

/// A file with one certificate at least: with none every server is refused, for a reason that is none.
fn certificates(file: &Path) -> Result<Vec<u8>, CliError> {
    let pem = read(file)?;
    match CertificateDer::pem_slice_iter(&pem).next() {
        Some(Ok(_)) => Ok(pem),
        _ => {
            let file = file.display();
            Err(CliError::Usage(format!("--ca-file: holds no certificate in PEM: `{file}`")))
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, CliError> {
    fs::read(file).map_err(CliError::input(format!("cannot read `{}`", file.display())))
}
