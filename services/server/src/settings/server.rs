//! Listeners and process.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use trestle_identity::gateway_secret::GatewaySecret;
use trestle_rpc::upstream::Endpoint;
use trestle_runtime::config::shown;

use super::{
    ClientAuth, NumberRule, SecretSetting, TlsSettings, misplaced_key, outside,
    per_role::{PerRole, RoleKey},
    wide,
};
use crate::roles::{GATEWAY, RoleSpec, Roles};

/// The address of a listener, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere.
    Off,
    /// At this address; port 0 selects a free one.
    At(SocketAddr),
}

/// A text that is neither.
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

impl RoleKey for Listen {
    const SECTION: &'static str = "server";
    const PREFIX: &'static str = "azure_";
    const SUFFIX: &'static str = "";
}

/// Parses an address; the error has an example.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    parse_address(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Parses an address; the error has an example.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let rule = "must be an address, as in 127.0.0.1:50051";
    text.parse().map_err(|_| format!("{rule}{}", shown("", text)))
}

/// Whether two listeners need the same port of the same address. A wildcard has every address; that of IPv6 has
/// those of IPv4 too.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let covers =
        |wide: IpAddr, ip: IpAddr| wide.is_unspecified() && (wide.is_ipv6() || ip.is_ipv4());
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    let is_same = a == b || covers(a, b) || covers(b, a);
    is_same && one.port() == other.port() && one.port() != 0
}

/// The section `server`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerSettings {
    /// The roles of this process: `all`, or of `gateway`, `table`, `queue`, `blob` and `log`. Default: `all`.
    pub roles: Roles,
    /// Address of gRPC; port 0 selects a free one. Default: `127.0.0.1:50051`.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// `azure_blob`, `azure_queue`, `azure_table`: address of a role for clients of Azure Storage, with the role
    /// `gateway` only; port 0 selects a free one, `off` none. Default: `127.0.0.1` with the port that its [`RoleSpec`]
    /// has.
    #[serde(flatten)]
    pub azure: PerRole<Listen>,
    /// Compress responses for clients of Azure Storage that accept gzip, as most do. Default: no, as
    /// Azure: it takes time on both sides, and helps over slow networks only.
    pub azure_gzip: bool,
    /// Address of metrics and probes; port 0 selects a free one. Default: `127.0.0.1:9464`.
    #[serde(deserialize_with = "address")]
    pub admin: SocketAddr,
    /// Listen without TLS on addresses that are not loopback. Default: no, and such an address is
    /// rejected.
    pub allow_plaintext: bool,
    /// Let another process of the same user listen at the same addresses, if it has this setting too:
    /// a new one starts before the old one ends, and no connection is refused. Default: no; then an
    /// address in use is an error.
    pub reuse_port: bool,
    /// Without the role gateway: trust the caller identity that peers on other machines state with the secret of
    /// gateways. Requires `gateway_secret`, or `tls.client_certificates = "required"`, with which only certificates of
    /// gateways are trusted. Default: no; then only gateways with a certificate, or on this machine, are trusted.
    pub trust_callers: bool,
    /// The secret of gateways, 32 to 512 visible characters. A gateway sends it to roles in other processes; a process
    /// without the role gateway accepts no call without it, from this machine either. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_secret: Option<SecretSetting>,
    /// A file with the secret of gateways. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_secret_file: Option<PathBuf>,
    /// Where the other processes of the same database reach `listen`, as in `http://10.0.0.5:50051`. Default: the
    /// address itself, or the name of the machine where that is every address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_address: Option<String>,
    /// How long calls are still accepted after SIGTERM, once health reports NOT_SERVING, in
    /// milliseconds, up to 60000: the time for gateways and balancers to react. Default: 250.
    pub drain_notice_ms: u64,
    /// How long calls may continue after SIGTERM, in seconds, up to a day. Default: 25, under the 30 of
    /// orchestrators.
    pub drain_seconds: u64,
    /// Worker threads, 1 to 1024. Default: one for each core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_threads: Option<usize>,
}

/// Longest setting for the notice before the drain.
const DRAIN_NOTICE_MS_MAX: u64 = 60_000;
/// Longest setting for the drain: a day.
const DRAIN_SECONDS_MAX: u64 = 24 * 3600;
/// Most worker threads.
const WORKER_THREADS_MAX: u64 = 1024;

impl ServerSettings {
    /// The defaults with these roles.
    pub(super) fn defaults(roles: &[RoleSpec]) -> Self {
        let mut azure = PerRole::default();
        for (role, edge) in roles.iter().filter_map(|role| Some((role, role.azure?))) {
            azure.set(role.name, Listen::At((Ipv4Addr::LOCALHOST, edge.port).into()));
        }
        Self {
            roles: Roles::All,
            listen: (Ipv4Addr::LOCALHOST, 50051).into(),
            azure,
            azure_gzip: false,
            admin: (Ipv4Addr::LOCALHOST, 9464).into(),
            allow_plaintext: false,
            reuse_port: false,
            trust_callers: false,
            gateway_secret: None,
            gateway_secret_file: None,
            peer_address: None,
            drain_notice_ms: 250,
            drain_seconds: 25,
            worker_threads: None,
        }
    }

    /// The addresses for clients of Azure Storage, by role: only with the gateway.
    pub fn azure_listeners(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        let listen = |(role, listen): (_, &Listen)| match *listen {
            Listen::At(address) => self.roles.has(GATEWAY.name).then_some((role, address)),
            Listen::Off => None,
        };
        self.azure.iter().filter_map(listen)
    }

    /// The addresses for clients of Azure Storage that have no effect, by role: those without the gateway.
    fn unserved(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        let address = |(role, listen): (_, &Listen)| match *listen {
            Listen::At(address) => (!self.roles.has(GATEWAY.name)).then_some((role, address)),
            Listen::Off => None,
        };
        self.azure.iter().filter_map(address)
    }

    /// The problems of flags, by their keys, that set an address without effect. A file and variables may be those of
    /// other processes too: for them it is a warning.
    pub(super) fn unserved_flags(&self, flags: &[String]) -> Vec<String> {
        let keys = self.unserved().map(|(role, _)| Listen::full_key(role));
        let problem = |key: String| {
            let rule =
                "must not be set without the role gateway, which serves clients of Azure Storage";
            flags.contains(&key).then(|| format!("{key}: {rule}: roles=`{}`", self.roles))
        };
        keys.filter_map(problem).collect()
    }

    /// The keys of addresses without effect that were set: not those of the defaults, nor of the image, which has the
    /// same ports on every address.
    #[must_use]
    pub fn unserved_keys(&self, roles: &[RoleSpec]) -> Vec<String> {
        let port = |role: &str| {
            let spec = roles.iter().find(|spec| spec.name == role);
            spec.and_then(|spec| spec.azure).map(|edge| edge.port)
        };
        let is_default = |role, address: SocketAddr| {
            let ip = address.ip();
            port(role) == Some(address.port()) && (ip.is_loopback() || ip.is_unspecified())
        };
        let set = self.unserved().filter(|(role, address)| !is_default(role, *address));
        set.map(|(role, _)| Listen::full_key(role)).collect()
    }

    /// The listeners for calls: key and address.
    #[must_use]
    pub fn calls(&self) -> Vec<(String, SocketAddr)> {
        let azure = self.azure_listeners().map(|(role, at)| (Listen::full_key(role), at));
        std::iter::once(("server.listen".to_owned(), self.listen)).chain(azure).collect()
    }

    /// The listeners that have neither loopback nor TLS: key and address.
    #[must_use]
    pub fn exposed(&self, tls: &TlsSettings) -> Vec<(String, SocketAddr)> {
        let of_calls = |(key, address)| (key, address, tls.grpc().is_some());
        let admin = ("server.admin".to_owned(), self.admin, tls.admin().is_some());
        let listeners = self.calls().into_iter().map(of_calls).chain([admin]);
        let exposed = listeners.filter_map(|(key, address, is_encrypted)| {
            let is_exposed = !address.ip().to_canonical().is_loopback() && !is_encrypted;
            is_exposed.then_some((key, address))
        });
        exposed.collect()
    }

    /// The numbers of the section.
    pub(super) fn numbers(&self) -> [NumberRule; 3] {
        let threads = self.worker_threads.map_or(1, wide);
        [
            ("worker_threads", threads, 1..=WORKER_THREADS_MAX),
            ("drain_notice_ms", self.drain_notice_ms, 0..=DRAIN_NOTICE_MS_MAX),
            ("drain_seconds", self.drain_seconds, 0..=DRAIN_SECONDS_MAX),
        ]
    }

    /// The problems of listeners that cannot both be bound. Port 0 is another one each time.
    fn collisions(&self) -> Vec<String> {
        let admin = ("server.admin".to_owned(), self.admin);
        let listeners: Vec<_> = self.calls().into_iter().chain([admin]).collect();
        let mut problems = Vec::new();
        for (at, (key, address)) in listeners.iter().enumerate() {
            let mut before = listeners.iter().take(at);
            if let Some((other, bound)) = before.find(|(_, bound)| collide(*bound, *address)) {
                problems.push(format!(
                    "{key}: must be another address than that of {other}, which is `{bound}`: value=`{address}`"
                ));
            }
        }
        problems
    }

    /// The problems of the secret of gateways, and of trust without a proof.
    fn trust_problems(&self, tls: &TlsSettings) -> Vec<String> {
        let (text, file) = (self.gateway_secret.as_ref(), self.gateway_secret_file.as_ref());
        let malformed = text.and_then(|text| GatewaySecret::parse(&text.0).err());
        let malformed = malformed.map(|error| format!("server.gateway_secret: {error}"));
        let rule =
            "server.gateway_secret: must not be set together with server.gateway_secret_file";
        let both = (text.is_some() && file.is_some()).then(|| rule.to_owned());
        let misplaced = file.and_then(|file| misplaced_key(file));
        let misplaced = misplaced.map(|rule| format!("server.gateway_secret_file: {rule}"));
        let has_proof = text.is_some()
            || file.is_some()
            || tls.client_certificates == ClientAuth::Required
            || self.roles.has(GATEWAY.name);
        let rule = "server.trust_callers: must not be set without a proof that a peer is a gateway: set \
                    server.gateway_secret_file, to the same secret in gateways, or tls.client_certificates = \
                    \"required\" with tls.client_ca_file";
        let unproven = (self.trust_callers && !has_proof).then(|| rule.to_owned());
        malformed.into_iter().chain(both).chain(misplaced).chain(unproven).collect()
    }

    /// The problems of the section but those of its roles, each with its key.
    pub(super) fn problems(&self, tls: &TlsSettings) -> Vec<String> {
        let mut problems = outside("server", self.numbers());
        problems.extend(self.trust_problems(tls));
        let peer_address = self.peer_address.as_deref().map(Endpoint::parse);
        let malformed = peer_address.and_then(Result::err);
        problems.extend(malformed.map(|error| format!("server.peer_address: {error}")));
        problems.extend(self.collisions());
        problems.extend(self.azure.problems());
        let exposed = self.exposed(tls);
        for (key, address) in exposed.into_iter().filter(|_| !self.allow_plaintext) {
            let encrypt = match key.as_str() {
                "server.admin" => "tls.cert_file, tls.key_file and tls.admin = true",
                _ => "tls.cert_file and tls.key_file",
            };
            problems.push(format!(
                "{key}: this address is not loopback and nothing is encrypted; set {encrypt}, or \
                 allow plain text with --allow-plaintext or server.allow_plaintext = true: \
                 value=`{address}`"
            ));
        }
        problems
    }
}
