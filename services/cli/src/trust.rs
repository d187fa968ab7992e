//! Whom a command trusts, and as whom it shows itself, on an encrypted connection.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
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
    /// What the arguments say.
    pub(crate) fn config(&self) -> Result<ClientTlsConfig, CliError> {
        let needed = "https needs --ca-file, the authorities that vouch for the server";
        let authorities = self.ca_file.as_deref().ok_or_else(|| CliError::Usage(needed.into()))?;
        let authorities = Certificate::from_pem(read(authorities)?);
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

fn read(file: &Path) -> Result<Vec<u8>, CliError> {
    fs::read(file).map_err(CliError::file(format!("cannot read `{}`", file.display())))
}
