//! What an operator chooses. Everything here is plain data: live things are passed beside it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use trestle_runtime::{
    config::{self, ConfigError, Sources},
    telemetry::TelemetrySettings,
};
use trestle_service::upstream::Remote;

use crate::roles::{Role, Roles};

/// Variables of the OpenTelemetry standard that set a key of ours.
const FOREIGN: &[(&str, &str)] = &[
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "telemetry.otlp_endpoint"),
    ("OTEL_SERVICE_NAME", "telemetry.service_name"),
];

/// The settings of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Listeners and process.
    pub server: ServerSettings,
    /// The store.
    pub storage: StorageSettings,
    /// Where the gateway finds what is not in this process.
    pub gateway: GatewaySettings,
    /// The bounds of load.
    pub limits: LimitSettings,
    /// Logs, traces and metrics.
    pub telemetry: TelemetrySettings,
}

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
    /// How long calls may go on after a signal to end, in seconds. Default: 25, under the 30 of
    /// orchestrators.
    pub drain_seconds: u64,
    /// Threads that work on calls, at least 1. Default: one for each core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_threads: Option<usize>,
}

/// The section `storage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageSettings {
    /// Where everything is kept; made if it is not there. Default: `./data`.
    pub data_dir: PathBuf,
    /// Keep everything in memory, and nothing after the end. Default: no.
    pub ephemeral: bool,
    /// When a write is answered. Default: `always`.
    pub durability: Durability,
    /// With durability `interval`: time between syncs, in milliseconds, at least 1. Default: 1000.
    pub sync_every_ms: u64,
    /// Memory for what was read from disk, in bytes. Default: 128 MiB.
    pub cache_bytes: u64,
    /// Free disk space under which only deletes are taken, in bytes. Default: 512 MiB.
    pub min_free_bytes: u64,
}

/// When a write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When it is on stable storage.
    Always,
    /// At once; it is on stable storage after the interval.
    Interval,
    /// At once; the operating system decides.
    Os,
}

/// The section `gateway`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewaySettings {
    /// Where the table role is when it is not in this process, such as `http://table:50051`. No
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_endpoint: Option<String>,
    /// Connections to each such role, at least 1; about as many as either side has cores. Default:
    /// 4.
    pub connections: usize,
}

/// The section `limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitSettings {
    /// Most calls at a time; more are refused at once. Default: 1024.
    pub calls_max: usize,
    /// Most connections at a time; more are closed at once. Default: 4096.
    pub connections_max: usize,
    /// Most calls at a time on one connection; more wait at the client. Default: 1024.
    pub calls_per_connection_max: u32,
    /// Longest time until an answer begins, in seconds, 1 to 110. Default: 60.
    pub answer_within_seconds: u64,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            roles: Roles::all(),
            listen: (Ipv4Addr::LOCALHOST, 50051).into(),
            admin: (Ipv4Addr::LOCALHOST, 9464).into(),
            allow_plaintext: false,
            drain_seconds: 25,
            worker_threads: None,
        }
    }
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self {
            data_dir: "./data".into(),
            ephemeral: false,
            durability: Durability::Always,
            sync_every_ms: 1000,
            cache_bytes: 128 * 1024 * 1024,
            min_free_bytes: 512 * 1024 * 1024,
        }
    }
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self { table_endpoint: None, connections: 4 }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            calls_max: 1024,
            connections_max: 4096,
            calls_per_connection_max: 1024,
            answer_within_seconds: 60,
        }
    }
}

/// Longest setting for the time until an answer begins: the removal of deleted tables counts on
/// calls being over within two minutes.
const ANSWER_WITHIN_SECONDS_MAX: u64 = 110;

impl Settings {
    /// Settings out of their defaults and `sources`, checked. The standard variables of
    /// OpenTelemetry count too.
    ///
    /// # Errors
    /// Every kind of [`ConfigError`].
    pub fn load(sources: Sources<'_>) -> Result<Self, ConfigError> {
        let sources = Sources { foreign: FOREIGN, ..sources };
        let settings: Self = config::load(&Self::default(), sources)?;
        settings.check()?;
        Ok(settings)
    }

    /// Checks what the form of the values does not say.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with every problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut problems = self.telemetry.problems();
        self.check_listeners(&mut problems);
        self.check_gateway(&mut problems);
        let server = &self.server;
        let limits = &self.limits;
        for (key, at_least_one) in [
            ("server.worker_threads", server.worker_threads != Some(0)),
            ("storage.sync_every_ms", self.storage.sync_every_ms > 0),
            ("gateway.connections", self.gateway.connections > 0),
            ("limits.calls_max", limits.calls_max > 0),
            ("limits.connections_max", limits.connections_max > 0),
            ("limits.calls_per_connection_max", limits.calls_per_connection_max > 0),
        ] {
            if !at_least_one {
                problems.push(format!("{key}: must be at least 1"));
            }
        }
        let seconds = limits.answer_within_seconds;
        if !(1..=ANSWER_WITHIN_SECONDS_MAX).contains(&seconds) {
            let rule = format!("must be 1 to {ANSWER_WITHIN_SECONDS_MAX}: value=`{seconds}`");
            problems.push(format!("limits.answer_within_seconds: {rule}"));
        }
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid { problems }) }
    }

    fn check_listeners(&self, problems: &mut Vec<String>) {
        let server = &self.server;
        for (key, address) in [("server.listen", server.listen), ("server.admin", server.admin)] {
            if !address.ip().is_loopback() && !server.allow_plaintext {
                problems.push(format!(
                    "{key}: others can reach this address and nothing is encrypted; ask for that \
                     with --allow-plaintext or server.allow_plaintext = true: value=`{address}`"
                ));
            }
        }
    }

    fn check_gateway(&self, problems: &mut Vec<String>) {
        let roles = &self.server.roles;
        let endpoint = self.gateway.table_endpoint.as_deref();
        match endpoint.map(|endpoint| Remote::new(endpoint, 1)) {
            Some(Err(error)) => problems.push(format!("gateway.table_endpoint: {error}")),
            None if roles.has(Role::Gateway) && !roles.has(Role::Table) => {
                let rule = "required, since the role table is not in this process";
                problems.push(format!("gateway.table_endpoint: {rule}: roles=`{roles}`"));
            }
            _ => {}
        }
    }
}
