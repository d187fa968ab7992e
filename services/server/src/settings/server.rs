//! Listeners and process.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::{TlsSettings, at_least_one};
use crate::roles::Roles;

/// The section `server`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerSettings {
    /// The parts of this process: `all`, or of `gateway` and `table`. Default: `all`.
    pub roles: Roles,
    /// Address of gRPC; port 0 takes a free one. Default: `127.0.0.1:50051`.
    pub listen: SocketAddr,
    /// Address of metrics and probes; port 0 takes a free one. Default: `127.0.0.1:9464`.
    pub admin: SocketAddr,
    /// Listen without encryption where others can reach it. Default: no, and such an address is
    /// refused.
    pub allow_plaintext: bool,
    /// Without the role gateway: believe whoever connects about who calls. For networks that only
    /// gateways reach. Default: no; then only peers with a certificate, or on this machine, are.
    pub trust_callers: bool,
    /// How long calls are still taken after a signal to end, once health has turned, in
    /// milliseconds, up to 60000: the time for gateways and balancers to go elsewhere. Default: 250.
    pub drain_notice_ms: u64,
    /// How long calls may go on after a signal to end, in seconds. Default: 25, under the 30 of
    /// orchestrators.
    pub drain_seconds: u64,
    /// Threads that work on calls, at least 1. Default: one for each core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_threads: Option<usize>,
}

/// Longest setting for the notice before the end.
const DRAIN_NOTICE_MS_MAX: u64 = 60_000;

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            roles: Roles::all(),
            listen: (Ipv4Addr::LOCALHOST, 50051).into(),
            admin: (Ipv4Addr::LOCALHOST, 9464).into(),
            allow_plaintext: false,
            trust_callers: false,
            drain_notice_ms: 250,
            drain_seconds: 25,
            worker_threads: None,
        }
    }
}

impl ServerSettings {
    /// The listeners that others can reach and that are not encrypted: key and address.
    #[must_use]
    pub fn exposed(&self, tls: &TlsSettings) -> Vec<(&'static str, SocketAddr)> {
        let listeners = [
            ("server.listen", self.listen, tls.grpc().is_some()),
            ("server.admin", self.admin, tls.admin().is_some()),
        ];
        let exposed = listeners.into_iter().filter(|(_, address, is_encrypted)| {
            !address.ip().to_canonical().is_loopback() && !is_encrypted
        });
        exposed.map(|(key, address, _)| (key, address)).collect()
    }

    /// What is wrong with the section, each with its key.
    pub(super) fn problems(&self, tls: &TlsSettings) -> Vec<String> {
        let threads = at_least_one("server.worker_threads", self.worker_threads != Some(0));
        let mut problems = Vec::from_iter(threads);
        if self.drain_notice_ms > DRAIN_NOTICE_MS_MAX {
            let rule =
                format!("must be up to {DRAIN_NOTICE_MS_MAX}: value=`{}`", self.drain_notice_ms);
            problems.push(format!("server.drain_notice_ms: {rule}"));
        }
        let exposed = self.exposed(tls);
        for (key, address) in exposed.into_iter().filter(|_| !self.allow_plaintext) {
            let encrypt = match key {
                "server.admin" => "tls.cert_file, tls.key_file and tls.admin = true",
                _ => "tls.cert_file and tls.key_file",
            };
            problems.push(format!(
                "{key}: others can reach this address and nothing is encrypted; set {encrypt}, or \
                 ask for plain text with --allow-plaintext or server.allow_plaintext = true: \
                 value=`{address}`"
            ));
        }
        problems
    }
}
