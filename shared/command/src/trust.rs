//! The certificates that a command trusts and presents on encrypted connections.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use serde::{Deserialize, Serialize};
use tokio_rustls::rustls::{
    ClientConfig, ConfigBuilder, Error as TlsError, RootCertStore, WantsVerifier,
    client::WantsClientCert,
    crypto,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};
use trestle_rpc::small_file;

use crate::{
    errors::CliError,
    files::{self, BYTE_ORDER_MARK},
};

/// The name of HTTP/2 in a TLS handshake.
pub(crate) const HTTP2: &[u8] = b"h2";

/// For an endpoint that begins with `https://`. All files are in PEM.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct TlsArgs {
    /// CA certificates that the server's certificate is checked against [default: those of the system]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, global = true, env = "TRESTLE_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Name in the server's certificate, where it is not the one in the endpoint
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, global = true, env = "TRESTLE_SERVER_NAME", value_name = "NAME")]
    pub server_name: Option<String>,
    /// Client certificate, with its chain
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, global = true, env = "TRESTLE_CERT_FILE", value_name = "FILE")]
    pub cert_file: Option<PathBuf>,
    /// Private key of that certificate
    #[serde(skip_serializing_if = "Option::is_none")]
    #[arg(long, global = true, env = "TRESTLE_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

impl TlsArgs {
    /// Whether any is given.
    pub(crate) fn is_given(&self) -> bool {
        let files = [&self.ca_file, &self.cert_file, &self.key_file];
        files.into_iter().any(Option::is_some) || self.server_name.is_some()
    }

    /// These, and `other` where they are not given.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            ca_file: self.ca_file.or(other.ca_file),
            server_name: self.server_name.or(other.server_name),
            cert_file: self.cert_file.or(other.cert_file),
            key_file: self.key_file.or(other.key_file),
        }
    }

    /// The same in every working directory.
    pub(crate) fn absolute(mut self) -> Result<Self, CliError> {
        for file in [&mut self.ca_file, &mut self.cert_file, &mut self.key_file] {
            files::make_absolute(file)?;
        }
        Ok(self)
    }

    /// Rejects files that cannot be used. A certificate and its key may be given in different places, and are then
    /// checked for themselves.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        if self.cert_file.is_some() == self.key_file.is_some() {
            return self.config().map(drop);
        }
        let one = self.cert_file.iter().chain(&self.key_file);
        one.map(|file| read(file)).try_for_each(|read| read.map(drop))?;
        Self { cert_file: None, key_file: None, ..self.clone() }.config().map(drop)
    }

    /// The same for a connection that only diagnoses an error; none if the settings are invalid.
    pub(crate) fn probe(&self) -> Option<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(match self.ca_file.as_deref() {
            Some(file) => certificates(file).ok()?,
            None => rustls_native_certs::load_native_certs().certs,
        });
        let config = builder(roots)?;
        let mut config = match (&self.cert_file, &self.key_file) {
            (Some(certificate), Some(key)) => {
                let key = PrivateKeyDer::from_pem_slice(&read(key).ok()?).ok()?;
                config.with_client_auth_cert(certificates(certificate).ok()?, key).ok()?
            }
            _ => config.with_no_client_auth(),
        };
        config.alpn_protocols.push(HTTP2.to_vec());
        Some(config)
    }

    /// The TLS of calls.
    pub(crate) fn config(&self) -> Result<ClientTlsConfig, CliError> {
        let mut config = ClientTlsConfig::new();
        config = match self.ca_file.as_deref() {
            Some(file) => {
                // Without one every server would be rejected, with a misleading error.
                certificates(file)?;
                config.ca_certificate(Certificate::from_pem(read(file)?))
            }
            None => config.with_native_roots(),
        };
        if let Some(name) = &self.server_name {
            let rule = "--server-name: must be a name such as store.example, or an IP address";
            ServerName::try_from(name.as_str())
                .map_err(|_| CliError::Usage(format!("{rule}: value=`{name}`")))?;
            config = config.domain_name(name);
        }
        match (&self.cert_file, &self.key_file) {
            (None, None) => Ok(config),
            (Some(certificate), Some(key)) => {
                check_identity(certificate, key)?;
                Ok(config.identity(Identity::from_pem(read(certificate)?, read(key)?)))
            }
            _ => Err(CliError::Usage("--cert-file and --key-file need each other".into())),
        }
    }
}

/// TLS to a public service, with the CA certificates of a file or of the system; without any if TLS is not used.
///
/// # Errors
/// A file without certificates, or no certificates of the system.
pub fn public_tls_config(file: Option<&Path>, is_used: bool) -> Result<ClientConfig, CliError> {
    let mut roots = RootCertStore::empty();
    match file.filter(|_| is_used) {
        Some(file) => drop(roots.add_parsable_certificates(certificates(file)?)),
        None if is_used => {
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
        None => {}
    }
    if is_used && roots.is_empty() {
        let rule = "no CA certificates were found for the source: give --source-ca-file";
        return Err(CliError::Usage(rule.to_owned()));
    }
    let config = builder(roots);
    let config = config.ok_or_else(|| CliError::Usage("encryption cannot be used".to_owned()))?;
    Ok(config.with_no_client_auth())
}

fn builder(roots: RootCertStore) -> Option<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let provider = Arc::new(crypto::ring::default_provider());
    let config: ConfigBuilder<_, WantsVerifier> =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    Some(config.with_root_certificates(roots))
}

/// Rejects a client certificate with the key of another one, before any connection.
fn check_identity(certificate: &Path, key: &Path) -> Result<(), CliError> {
    let usage = |rule: &str| Err(CliError::Usage(format!("{rule}: `{}`", key.display())));
    let chain = certificates(certificate)?;
    let Ok(found) = PrivateKeyDer::from_pem_slice(&read(key)?) else {
        return usage("--key-file: the file has no private key in PEM");
    };
    let Some(builder) = builder(RootCertStore::empty()) else { return Ok(()) };
    match builder.with_client_auth_cert(chain, found) {
        Ok(_) => Ok(()),
        Err(TlsError::InconsistentKeys(_)) => {
            usage("--key-file: is not the key of the certificate in --cert-file")
        }
        Err(_) => usage("--key-file: must be a key of RSA, ECDSA or Ed25519, with its certificate"),
    }
}

/// The certificates of a file, at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, CliError> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(file)?).collect();
    parsed.ok().filter(|certificates| !certificates.is_empty()).ok_or_else(|| {
        CliError::Usage(format!("the file has no certificates in PEM: `{}`", file.display()))
    })
}

fn read(file: &Path) -> Result<Vec<u8>, CliError> {
    let mut bytes = small_file::read(file).map_err(CliError::input(files::cannot("read", file)))?;
    // A label of PEM is recognized at the beginning of a line only.
    if bytes.starts_with(BYTE_ORDER_MARK.as_bytes()) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
