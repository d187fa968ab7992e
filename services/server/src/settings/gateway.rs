//! Upstream configuration: the endpoints of roles that are not in the process of the gateway, and their TLS.

use std::path::PathBuf;

use http::uri::Authority;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use trestle_identity::public_key::PrivateHosts;
use trestle_rpc::upstream::Endpoint;
use trestle_runtime::config::{choice, shown};

use super::{
    IssuersSettings, NumberRule, outside,
    per_role::{PerRole, RoleKey},
    wide,
};
use crate::roles::{GATEWAY, RoleSpec, Roles};

/// Longest setting for the time that calls wait for a role.
const WAIT_MS_MAX: u64 = 60_000;
/// Most connections to a role.
const CONNECTIONS_MAX: u64 = 1024;
/// Most calls that wait at a time.
const WAITING_CALLS_MAX: u64 = 1_000_000;

/// The section `gateway`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewaySettings {
    /// `table_endpoint`, `queue_endpoint`, `blob_endpoint`, `log_endpoint`: the endpoint of a role in another process,
    /// such as `http://table:50051`. A name may have several addresses. No default: required for tables; without the
    /// others, the gateway does not serve them.
    #[serde(flatten)]
    pub endpoints: PerRole<EndpointText>,
    /// Where the development account exists, whose key is public: `auto`, `loopback`, `off` or `anywhere`. Default:
    /// `auto`, which is `loopback` without a section `accounts.NAME`, and `off` with one. `loopback` is `off` where a
    /// listener for calls is not on loopback.
    #[serde(deserialize_with = "choice")]
    pub development_account: DevelopmentAccount,
    /// Names and addresses of this server for which the key of the development account counts, without ports and
    /// separated by commas, beside `localhost`, names that end with `.localhost`, and loopback addresses; where
    /// `development_account` is `anywhere`, also beside names without a dot, and names that end with `.internal`,
    /// `.local` or `.svc`. Default: none.
    #[serde(deserialize_with = "hosts")]
    pub development_hosts: String,
    /// Accept account keys and bearer tokens in plain text from other machines: for private networks, and behind a
    /// proxy with TLS that is not on this machine. Default: no.
    pub allow_plaintext_keys: bool,
    /// Connections to each such role, 1 to 1024; about as many as either side has cores, and as
    /// the name has addresses. Up to four times as many are opened while all are full. Default: 4.
    pub connections: usize,
    /// How long calls wait for a role that restarts, in milliseconds from the loss of its last
    /// connection, up to 60000; 0: they are rejected at once. Default: 5000.
    pub wait_ms: u64,
    /// Most calls that wait at a time, 1 to 1000000; more are rejected at once. Default: 512.
    pub waiting_calls_max: usize,
    /// The issuers of bearer tokens: see `gateway.issuers.NAME`.
    #[serde(default)]
    pub issuers: IssuersSettings,
    /// TLS to the roles, for endpoints that begin with `https`.
    #[serde(default)]
    pub tls: RoleTlsSettings,
}

/// The section `gateway.tls`. The files are reloaded when they change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleTlsSettings {
    /// The CA certificates of the roles, as PEM. Required with `https`. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The certificate chain of the gateway as a client, as PEM. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// The key of that certificate, as PEM. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The name in the certificates of the roles. Default: the host of the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// `table_server_name`, `queue_server_name`, `blob_server_name`, `log_server_name`: the name in the certificate of
    /// a role, if it differs. Default: `server_name`, or the host of its endpoint.
    #[serde(flatten)]
    pub server_names: PerRole<ServerName>,
}

/// The address of a role, as an operator writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointText(pub String);

impl RoleKey for EndpointText {
    const SECTION: &'static str = "gateway";
    const PREFIX: &'static str = "";
    const SUFFIX: &'static str = "_endpoint";
}

/// A name in a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerName(pub String);

impl RoleKey for ServerName {
    const SECTION: &'static str = "gateway.tls";
    const PREFIX: &'static str = "";
    const SUFFIX: &'static str = "_server_name";
}

macro_rules! text {
    ($name:ident) => {
        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ok(Self(text.to_owned()))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text!(EndpointText);
text!(ServerName);

/// Reads names of hosts, separated by commas.
pub(super) fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_host =
        |host: &str| host.parse::<Authority>().is_ok_and(|authority| authority.host() == host);
    if let Some(host) = host_names(&text).find(|host| !is_host(host)) {
        let rule = "must be names or addresses of hosts without ports, separated by commas";
        return Err(D::Error::custom(format!("{rule}{}", shown("", host))));
    }
    Ok(text)
}

/// The names of hosts in a setting.
pub(super) fn host_names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|host| !host.is_empty())
}

/// Where the development account exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DevelopmentAccount {
    /// Where every listener for calls is on loopback, unless an account is configured.
    Auto,
    /// Where every listener for calls is on loopback, also beside configured accounts.
    Loopback,
    /// Nowhere.
    Off,
    /// On every listener. Calls without credentials are still accepted from this machine only.
    Anywhere,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            endpoints: PerRole::default(),
            development_account: DevelopmentAccount::Auto,
            development_hosts: String::new(),
            allow_plaintext_keys: false,
            connections: 4,
            wait_ms: 5000,
            waiting_calls_max: 512,
            issuers: IssuersSettings::default(),
            tls: RoleTlsSettings::default(),
        }
    }
}

impl GatewaySettings {
    /// The hosts for which the key of the development account counts.
    pub fn private_hosts(&self) -> PrivateHosts {
        let is_for_network = self.development_account == DevelopmentAccount::Anywhere;
        let listed = host_names(&self.development_hosts).map(str::to_owned);
        PrivateHosts::new(listed, is_for_network)
    }

    /// The numbers of the section.
    pub(super) fn numbers(&self) -> [NumberRule; 3] {
        [
            ("connections", wide(self.connections), 1..=CONNECTIONS_MAX),
            ("waiting_calls_max", wide(self.waiting_calls_max), 1..=WAITING_CALLS_MAX),
            ("wait_ms", self.wait_ms, 0..=WAIT_MS_MAX),
        ]
    }

    /// The problems of the section for a process with these roles, each with its key.
    pub(super) fn problems(&self, local: &Roles, roles: &[RoleSpec]) -> Vec<String> {
        let mut problems = outside("gateway", self.numbers());
        if local.has(GATEWAY.name) {
            let is_missing = |role: &&RoleSpec| {
                let has_upstream = local.has(role.name) || self.endpoints.get(role.name).is_some();
                role.is_required && !has_upstream
            };
            let missing = roles.iter().filter(is_missing).map(|role| {
                let (key, name) = (EndpointText::full_key(role.name), role.name);
                format!(
                    "{key}: required, since the role {name} is not in this process: roles=`{local}`"
                )
            });
            problems.extend(missing);
        }
        let mut endpoints = Vec::new();
        for (role, EndpointText(text)) in self.endpoints.iter() {
            let key = EndpointText::full_key(role);
            match Endpoint::parse(text) {
                Ok(endpoint) => endpoints.push(endpoint),
                Err(_) if text.contains('@') => {
                    let rule = "must have no user or password before an `@`: roles authenticate a \
                                gateway by its certificate";
                    problems.push(format!("{key}: {rule}"));
                }
                Err(_) => {
                    let rule = "endpoint must be `http://host:port` or `https://host:port`";
                    problems.push(format!("{key}: {rule}{}", shown(&key, text)));
                }
            }
        }
        problems.extend(self.tls.problems(&endpoints));
        problems
    }
}

impl RoleTlsSettings {
    /// For the set endpoints, each with TLS or not.
    fn problems(&self, endpoints: &[Endpoint]) -> Vec<String> {
        let mut problems = Vec::new();
        let any_encrypted = endpoints.iter().any(Endpoint::is_encrypted);
        if any_encrypted && self.ca_file.is_none() {
            let rule = "required, since an endpoint begins with https";
            problems.push(format!("gateway.tls.ca_file: {rule}"));
        }
        if !any_encrypted && !endpoints.is_empty() && *self != Self::default() {
            let rule = "of no use, since no endpoint begins with https";
            problems.push(format!("gateway.tls: {rule}"));
        }
        if self.cert_file.is_some() != self.key_file.is_some() {
            let rule = "need each other";
            problems.push(format!("gateway.tls.cert_file and gateway.tls.key_file: {rule}"));
        }
        problems
    }
}
