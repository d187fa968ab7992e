//! Listeners and process.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{TlsSettings, outside, wide};
use crate::roles::{Role, Roles};

/// Where to listen, if anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    Off,
    /// There; port 0 takes a free one.
    At(SocketAddr),
}

/// A text that says neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an address, as in 127.0.0.1:10002, or `off`")]
pub struct ListenError;

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        match text {
            "off" => Ok(Self::Off),
            _ => text.parse().map(Self::At).map_err(|_| ListenError),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|rule: ListenError| D::Error::custom(format!("{rule}: value=`{text}`")))
    }
}

/// Reads an address; the error says what one looks like.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    let rule = "must be an address, as in 127.0.0.1:50051";
    text.parse().map_err(|_| D::Error::custom(format!("{rule}: value=`{text}`")))
}

/// The section `server`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerSettings {
    /// The parts of this process: `all`, or of `gateway` and `table`. Default: `all`.
    pub roles: Roles,
    /// Address of gRPC; port 0 takes a free one. Default: `127.0.0.1:50051`.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// Address of tables for clients of Azure Storage; port 0 takes a free one, `off` none.
    /// Default: `127.0.0.1:10002`.
    pub azure_table: Listen,
    /// Address of queues for clients of Azure Storage; port 0 takes a free one, `off` none.
    /// Default: `127.0.0.1:10001`.
    pub azure_queue: Listen,
    /// Compress answers for clients of Azure Storage that take gzip, as most say they do. Default:
    /// no, as Azure: it takes time on both sides, and helps over slow networks only.
    pub azure_gzip: bool,
    /// Address of metrics and probes; port 0 takes a free one. Default: `127.0.0.1:9464`.
    #[serde(deserialize_with = "address")]
    pub admin: SocketAddr,
    /// Listen without encryption where others can reach it. Default: no, and such an address is
    /// refused.
    pub allow_plaintext: bool,
    /// Let another process of the same user listen at the same addresses, if it asks for it too: a
    /// new one starts before the old one ends, and no connection is refused. Default: no; then an
    /// address that is taken is an error.
    pub reuse_port: bool,
    /// Without the role gateway: believe whoever connects about who calls. For networks that only
    /// gateways reach. Default: no; then only peers with a certificate, or on this machine, are.
    pub trust_callers: bool,
    /// How long calls are still taken after a signal to end, once health has turned, in
    /// milliseconds, up to 60000: the time for gateways and balancers to go elsewhere. Default: 250.
    pub drain_notice_ms: u64,
    /// How long calls may go on after a signal to end, in seconds, up to a day. Default: 25, under
    /// the 30 of orchestrators.
    pub drain_seconds: u64,
    /// Threads that work on calls, 1 to 1024. Default: one for each core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_threads: Option<usize>,
}

/// Longest setting for the notice before the end.
const DRAIN_NOTICE_MS_MAX: u64 = 60_000;
/// Longest setting for the time that calls have at the end: a day.
const DRAIN_SECONDS_MAX: u64 = 24 * 3600;
/// Most threads that work on calls.
const WORKER_THREADS_MAX: u64 = 1024;

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            roles: Roles::all(),
            listen: (Ipv4Addr::LOCALHOST, 50051).into(),
            azure_table: Listen::At((Ipv4Addr::LOCALHOST, 10002).into()),
            azure_queue: Listen::At((Ipv4Addr::LOCALHOST, 10001).into()),
            azure_gzip: false,
            admin: (Ipv4Addr::LOCALHOST, 9464).into(),
            allow_plaintext: false,
            reuse_port: false,
            trust_callers: false,
            drain_notice_ms: 250,
            drain_seconds: 25,
            worker_threads: None,
        }
    }
}

impl ServerSettings {
    /// Where a front for clients of Azure Storage listens: only where the gateway is.
    #[must_use]
    pub fn azure(&self, listen: Listen) -> Option<SocketAddr> {
        match listen {
            Listen::At(address) => self.roles.has(Role::Gateway).then_some(address),
            Listen::Off => None,
        }
    }

    /// The listeners for calls: key and address.
    #[must_use]
    pub fn calls(&self) -> Vec<(&'static str, SocketAddr)> {
        let listeners = [
            ("server.listen", Some(self.listen)),
            ("server.azure_table", self.azure(self.azure_table)),
            ("server.azure_queue", self.azure(self.azure_queue)),
        ];
        listeners.into_iter().filter_map(|(key, address)| Some((key, address?))).collect()
    }

    /// The listeners that others can reach and that are not encrypted: key and address.
    #[must_use]
    pub fn exposed(&self, tls: &TlsSettings) -> Vec<(&'static str, SocketAddr)> {
        let of_calls = |(key, address)| (key, address, tls.grpc().is_some());
        let admin = ("server.admin", self.admin, tls.admin().is_some());
        let listeners = self.calls().into_iter().map(of_calls).chain([admin]);
        let exposed = listeners.filter_map(|(key, address, is_encrypted)| {
            let is_exposed = !address.ip().to_canonical().is_loopback() && !is_encrypted;
            is_exposed.then_some((key, address))
        });
        exposed.collect()
    }

    /// What is wrong with the section, each with its key.
    pub(super) fn problems(&self, tls: &TlsSettings) -> Vec<String> {
        let threads = self.worker_threads.map_or(1, wide);
        let rules = [
            ("worker_threads", threads, 1..=WORKER_THREADS_MAX),
            ("drain_notice_ms", self.drain_notice_ms, 0..=DRAIN_NOTICE_MS_MAX),
            ("drain_seconds", self.drain_seconds, 0..=DRAIN_SECONDS_MAX),
        ];
        let mut problems = outside("server", rules);
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
