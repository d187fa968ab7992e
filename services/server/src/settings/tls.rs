//! The encryption of the listeners.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trestle_runtime::{
    config::choice,
    tls::{ClientCertificates, TlsFiles},
};

/// The section `tls`. The files are in PEM; they are read again every few seconds and on SIGHUP,
/// and what changed holds for new connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSettings {
    /// The certificate of this server, followed by those between it and its authority. With it,
    /// the listener of gRPC is encrypted. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// The private key of the certificate. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The authorities whose client certificates count. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca_file: Option<PathBuf>,
    /// Whether clients of gRPC are asked for a certificate: `off`, `optional`, or `required`.
    /// Default: `off`.
    #[serde(deserialize_with = "choice")]
    pub client_certificates: AskClients,
    /// Also encrypt the admin listener, with the same certificate. It never asks its clients for
    /// one: probes have none. Default: no, since scrapers mostly ask on loopback.
    pub admin: bool,
}

/// Whether clients are asked for a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskClients {
    /// No.
    #[default]
    Off,
    /// Yes, and those that have none are served too.
    Optional,
    /// Yes, and those that have none are turned away.
    Required,
}

impl TlsSettings {
    /// What the listener of gRPC reads; nothing, where it is plain.
    #[must_use]
    pub fn grpc(&self) -> Option<TlsFiles> {
        let authorities = self.client_ca_file.clone();
        let clients = match (self.client_certificates, authorities) {
            (AskClients::Optional, Some(file)) => ClientCertificates::Optional(file),
            (AskClients::Required, Some(file)) => ClientCertificates::Required(file),
            (AskClients::Off, _) | (_, None) => ClientCertificates::Off,
        };
        self.files(clients)
    }

    /// What the admin listener reads; nothing, where it is plain.
    #[must_use]
    pub fn admin(&self) -> Option<TlsFiles> {
        self.admin.then(|| self.files(ClientCertificates::Off)).flatten()
    }

    fn files(&self, clients: ClientCertificates) -> Option<TlsFiles> {
        let (certificate, key) = (self.cert_file.clone()?, self.key_file.clone()?);
        Some(TlsFiles { certificate, key, clients })
    }

    /// What is wrong with the section, each with its key.
    pub(super) fn problems(&self) -> Vec<String> {
        let asks = self.client_certificates != AskClients::Off;
        let (has_cert, has_key) = (self.cert_file.is_some(), self.key_file.is_some());
        let rules = [
            (has_cert && !has_key, "tls.key_file: required, since tls.cert_file is set"),
            (has_key && !has_cert, "tls.cert_file: required, since tls.key_file is set"),
            (
                asks && self.client_ca_file.is_none(),
                "tls.client_ca_file: required, since tls.client_certificates is not off",
            ),
            (
                !asks && self.client_ca_file.is_some(),
                "tls.client_ca_file: of no use while tls.client_certificates is off",
            ),
            (asks && !has_cert, "tls.client_certificates: of no use without tls.cert_file"),
            (self.admin && !has_cert, "tls.admin: of no use without tls.cert_file"),
        ];
        let broken = rules.into_iter().filter(|(is_broken, _)| *is_broken);
        broken.map(|(_, rule)| rule.to_owned()).collect()
    }
}
