//! Where the gateway finds what is not in its process, and how it gets there.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trestle_runtime::config::choice;
use trestle_service::upstream::Endpoint;

use super::{outside, wide};
use crate::roles::{Role, Roles};

/// Longest setting for the time that calls wait for a role.
const WAIT_MS_MAX: u64 = 60_000;
/// Most connections to a role.
const CONNECTIONS_MAX: u64 = 1024;
/// Most calls that wait at a time.
const WAITING_CALLS_MAX: u64 = 1_000_000;

/// The section `gateway`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewaySettings {
    /// Where the table role is when it is not in this process, such as `http://table:50051`. A name
    /// may have several addresses. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_endpoint: Option<String>,
    /// Where the queue role is when it is not in this process, such as `http://queue:50051`.
    /// Default: nowhere; without the role here, the gateway has no queues then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_endpoint: Option<String>,
    /// Where the development account is there, whose key everybody knows: `loopback`, `off` or
    /// `anywhere`. Default: `loopback`, which is `off` where others can reach the listener.
    #[serde(deserialize_with = "choice")]
    pub development_account: DevelopmentAccount,
    /// Connections to each such role, 1 to 1024; about as many as either side has cores, and as
    /// the name has addresses. Up to four times as many are made while all are full. Default: 4.
    pub connections: usize,
    /// How long calls wait for a role that restarts, in milliseconds from the loss of its last
    /// connection, up to 60000; 0: they are refused at once. Default: 5000.
    pub wait_ms: u64,
    /// Most calls that wait at a time, 1 to 1000000; more are refused at once. Default: 512.
    pub waiting_calls_max: usize,
    /// Encryption towards the roles, for endpoints that begin with `https`.
    #[serde(default)]
    pub tls: RoleTlsSettings,
}

/// The section `gateway.tls`. The files are read again when they change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleTlsSettings {
    /// Who vouches for the roles: certificates as PEM. Required with `https`. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The certificate that the gateway shows, its chain after it, as PEM. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// The key of that certificate, as PEM. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The name in the certificates of the roles. Default: the host of the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// The name in the certificate of the queue role, where that is another. Default: `server_name`,
    /// or the host of its endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_server_name: Option<String>,
}

/// Where the development account is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DevelopmentAccount {
    /// On a listener that only this machine reaches.
    Loopback,
    /// Nowhere.
    Off,
    /// On every listener. Calls without credentials are still taken from this machine only.
    Anywhere,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            table_endpoint: None,
            queue_endpoint: None,
            development_account: DevelopmentAccount::Loopback,
            connections: 4,
            wait_ms: 5000,
            waiting_calls_max: 512,
            tls: RoleTlsSettings::default(),
        }
    }
}

impl GatewaySettings {
    /// What is wrong with the section for a process with these roles, each with its key.
    pub(super) fn problems(&self, roles: &Roles) -> Vec<String> {
        let rules = [
            ("connections", wide(self.connections), 1..=CONNECTIONS_MAX),
            ("waiting_calls_max", wide(self.waiting_calls_max), 1..=WAITING_CALLS_MAX),
            ("wait_ms", self.wait_ms, 0..=WAIT_MS_MAX),
        ];
        let mut problems = outside("gateway", rules);
        if self.table_endpoint.is_none() && roles.has(Role::Gateway) && !roles.has(Role::Table) {
            let rule = "required, since the role table is not in this process";
            problems.push(format!("gateway.table_endpoint: {rule}: roles=`{roles}`"));
        }
        let named =
            [("table_endpoint", &self.table_endpoint), ("queue_endpoint", &self.queue_endpoint)];
        let mut endpoints = Vec::new();
        for (key, value) in named {
            match value.as_deref().map(Endpoint::parse) {
                Some(Ok(endpoint)) => endpoints.push(endpoint),
                Some(Err(error)) => problems.push(format!("gateway.{key}: {error}")),
                None => {}
            }
        }
        problems.extend(self.tls.problems(&endpoints));
        problems
    }
}

impl RoleTlsSettings {
    /// For the endpoints that are given; each says itself whether it is encrypted.
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
