//! The TLS of the listeners.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use trestle_runtime::{
    config::choice,
    tls::{ClientCertificates, TlsFiles},
};

use super::gateway::{host_names, hosts};
use crate::roles::GATEWAY;

/// The section `tls`. The files are in PEM; they are reloaded every few seconds and on SIGHUP,
/// and changes apply to new connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSettings {
    /// The certificate chain of this server, its own certificate first. With it, the listeners for
    /// calls use TLS. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// The private key of the certificate. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The CA certificates of clients. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca_file: Option<PathBuf>,
    /// Whether clients need a certificate: `off`, `optional`, or `required`.
    /// Default: `off`.
    #[serde(deserialize_with = "choice")]
    pub client_certificates: ClientAuth,
    /// Names of gateways, separated by commas. Without the role gateway, a client certificate must have one of them for
    /// its holder to state callers: those of roles have not. Default: `gateway`.
    #[serde(deserialize_with = "names")]
    pub gateway_names: String,
    /// TLS for the admin listener too, with the same certificate. Its clients need
    /// none: probes have none. Default: no, since scrapers are mostly on loopback.
    pub admin: bool,
}

/// Reads names of gateways, at least one.
fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = hosts(deserializer)?;
    let has_name = host_names(&text).next().is_some();
    if has_name { Ok(text) } else { Err(D::Error::custom("must have a name, such as `gateway`")) }
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self {
            cert_file: None,
            key_file: None,
            client_ca_file: None,
            client_certificates: ClientAuth::Off,
            gateway_names: GATEWAY.name.to_owned(),
            admin: false,
        }
    }
}

/// Whether clients need a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuth {
    /// No.
    #[default]
    Off,
    /// Requested, and clients without one are served too.
    Optional,
    /// Yes, and clients without one are rejected.
    Required,
}

impl TlsSettings {
    /// The TLS files of the gRPC listener; none without TLS.
    #[must_use]
    pub fn grpc(&self) -> Option<TlsFiles> {
        let authorities = self.client_ca_file.clone();
        let clients = match (self.client_certificates, authorities) {
            (ClientAuth::Optional, Some(file)) => ClientCertificates::Optional(file),
            (ClientAuth::Required, Some(file)) => ClientCertificates::Required(file),
            (ClientAuth::Off, _) | (_, None) => ClientCertificates::Off,
        };
        self.files(clients)
    }

    /// The TLS files of the admin listener; none without TLS.
    #[must_use]
    pub fn admin(&self) -> Option<TlsFiles> {
        self.admin.then(|| self.files(ClientCertificates::Off)).flatten()
    }

    fn files(&self, clients: ClientCertificates) -> Option<TlsFiles> {
        let (certificate, key) = (self.cert_file.clone()?, self.key_file.clone()?);
        let gateways = host_names(&self.gateway_names).map(str::to_owned).collect();
        Some(TlsFiles { certificate, key, clients, gateways })
    }

    /// The problems of the section, each with its key.
    pub(super) fn problems(&self) -> Vec<String> {
        let requests = self.client_certificates != ClientAuth::Off;
        let (has_cert, has_key) = (self.cert_file.is_some(), self.key_file.is_some());
        let rules = [
            (has_cert && !has_key, "tls.key_file: required, since tls.cert_file is set"),
            (has_key && !has_cert, "tls.cert_file: required, since tls.key_file is set"),
            (
                requests && self.client_ca_file.is_none(),
                "tls.client_ca_file: required, since tls.client_certificates is not off",
            ),
            (
                !requests && self.client_ca_file.is_some(),
                "tls.client_ca_file: of no use while tls.client_certificates is off",
            ),
            (requests && !has_cert, "tls.client_certificates: of no use without tls.cert_file"),
            (self.admin && !has_cert, "tls.admin: of no use without tls.cert_file"),
        ];
        let broken = rules.into_iter().filter(|(is_broken, _)| *is_broken);
        broken.map(|(_, rule)| rule.to_owned()).collect()
    }
}
