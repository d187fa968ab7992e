//! Upstreams: roles in other processes, configured by the settings of the gateway.

use std::{path::Path, sync::Arc, time::Duration};

use opentelemetry::metrics::Meter;
use tracing::error;
use trestle_identity::gateway_secret::GatewaySecret;
use trestle_queue::QUEUE_SERVICE;
use trestle_rpc::small_file;
use trestle_rpc::upstream::{ClientPem, ClientTls, Endpoint, Remote, RemoteOptions};
use trestle_runtime::{config::ConfigError, task::Task};

use crate::{
    gateway_secret, healthcheck,
    reload::{ReloadedKeys, Reloads},
    roles::{GATEWAY, RoleSpec},
    settings::{
        EndpointText, GatewaySettings, RoleKey as _, RoleTlsSettings, ServerName, Settings,
    },
};

/// The name of no role: certificates of processes of a store have the host in their address.
const PEER: &str = "";

/// A role in another process.
pub(crate) struct RemoteRole {
    pub(crate) remote: Remote,
    /// Reloads the certificate; none without TLS.
    pub(crate) task: Option<Task>,
}

/// A role that is not in this process.
///
/// # Errors
/// The problem, with its key.
pub(crate) fn role(
    settings: &Settings,
    role: &RoleSpec,
    meter: &Meter,
) -> Result<RemoteRole, ConfigError> {
    connect(settings, role, meter)
        .map_err(|problem| ConfigError::Invalid { problems: vec![problem] })
}

fn connect(settings: &Settings, role: &RoleSpec, meter: &Meter) -> Result<RemoteRole, String> {
    let gateway = &settings.gateway;
    let key = EndpointText::full_key(role.name);
    let required = || format!("{key}: required, since the role is not in this process");
    let EndpointText(endpoint) = gateway.endpoints.get(role.name).ok_or_else(required)?;
    let endpoint = Endpoint::parse(endpoint).map_err(|error| format!("{key}: {error}"))?;
    let (tls, task) = match endpoint.is_encrypted() {
        false => (None, None),
        true => {
            let (tls, task) = client_tls(gateway, role.name, &endpoint, meter)?;
            (Some(tls), Some(task))
        }
    };
    let options = RemoteOptions {
        // One process has all of them, so the health of one is that of all.
        service: role.services.first().copied(),
        limitation: Some(healthcheck::WRITES),
        connections: gateway.connections,
        wait: Duration::from_millis(gateway.wait_ms),
        waiting_max: gateway.waiting_calls_max,
        answer_within: Duration::from_secs(settings.limits.answer_within_seconds),
        setting: Some(key),
        tls,
        proof: gateway_secret::read(&settings.server)?.map(|secret| secret.header()),
        meter: Some(meter.clone()),
    };
    Ok(RemoteRole { remote: Remote::new(endpoint, options), task })
}

/// Another process of the store, at the address in its row.
///
/// # Errors
/// The problem of its address, or of a setting, with its key.
pub(crate) fn peer(
    settings: &Settings,
    address: &str,
    secret: &GatewaySecret,
) -> Result<Remote, ConfigError> {
    let connect = || {
        let endpoint = Endpoint::parse(address).map_err(|error| error.to_string())?;
        let tls = match endpoint.is_encrypted() {
            // Read anew for each process: it is connected to for a rolling update at the latest.
            true => {
                let files = &settings.gateway.tls;
                Some(Arc::new(with_name(files, &read(files)?, PEER, &endpoint)?))
            }
            false => None,
        };
        let options = RemoteOptions {
            service: Some(QUEUE_SERVICE),
            connections: settings.gateway.connections,
            answer_within: Duration::from_secs(settings.limits.answer_within_seconds),
            tls,
            proof: Some(secret.header()),
            ..RemoteOptions::default()
        };
        Ok(Remote::new(endpoint, options))
    };
    connect().map_err(|problem: String| ConfigError::Invalid { problems: vec![problem] })
}

fn client_tls(
    gateway: &GatewaySettings,
    role: &str,
    endpoint: &Endpoint,
    meter: &Meter,
) -> Result<(Arc<ClientTls>, Task), String> {
    let files = gateway.tls.clone();
    let pem = read(&files)?;
    let tls = Arc::new(with_name(&files, &pem, role, endpoint)?);
    let changed = Arc::clone(&tls);
    let apply = move |_: &ClientPem, pem: &ClientPem| {
        if let Err(error) = changed.replace(pem) {
            error!(%error, "gateway.tls cannot be used; nothing changed");
        }
        ReloadedKeys::default()
    };
    Ok((tls, Reloads::new(meter).task("gateway-tls", pem, move || read(&files), apply)))
}

fn with_name(
    files: &RoleTlsSettings,
    pem: &ClientPem,
    role: &str,
    endpoint: &Endpoint,
) -> Result<ClientTls, String> {
    let own = files.server_names.get(role).map(|ServerName(name)| name.as_str());
    let name = own.or(files.server_name.as_deref()).unwrap_or(endpoint.host());
    ClientTls::new(pem, name).map_err(|error| format!("gateway.tls: {error}"))
}

/// The problems of the files of TLS to roles, as [`role`] reports them, but all of them. Blocks.
pub(crate) fn file_problems(settings: &Settings) -> Vec<String> {
    let (gateway, local) = (&settings.gateway, &settings.server.roles);
    let files = &gateway.tls;
    let remote = gateway.endpoints.iter().filter(|(role, _)| !local.has(role));
    let remote: Vec<_> = remote.collect();
    // Whether they are used does not matter: it is another mistake where they are not.
    if remote.is_empty() || !local.has(GATEWAY.name) {
        return Vec::new();
    }
    let encrypted: Vec<_> = remote
        .into_iter()
        .filter_map(|(role, EndpointText(text))| Some((role, Endpoint::parse(text).ok()?)))
        .filter(|(_, endpoint)| endpoint.is_encrypted())
        .collect();
    let named = [
        ("gateway.tls.ca_file", &files.ca_file),
        ("gateway.tls.cert_file", &files.cert_file),
        ("gateway.tls.key_file", &files.key_file),
    ];
    let unreadable = named.iter().filter_map(|(key, file)| contents(key, file.as_deref()?).err());
    let mut problems: Vec<_> = unreadable.collect();
    // Settings without an authority are reported as such.
    if let Ok(pem) = read(files) {
        let rejected = encrypted
            .iter()
            .filter_map(|(role, endpoint)| with_name(files, &pem, role, endpoint).err());
        problems.extend(rejected);
        problems.dedup();
    }
    problems
}

fn read(files: &RoleTlsSettings) -> Result<ClientPem, String> {
    let ca_file = files.ca_file.as_deref().ok_or("gateway.tls.ca_file: required")?;
    let identity = match (&files.cert_file, &files.key_file) {
        (Some(certificate), Some(key)) => Some((
            contents("gateway.tls.cert_file", certificate)?,
            contents("gateway.tls.key_file", key)?,
        )),
        _ => None,
    };
    Ok(ClientPem { authorities: contents("gateway.tls.ca_file", ca_file)?, identity })
}

fn contents(key: &str, path: &Path) -> Result<Vec<u8>, String> {
    let path_text = path.display();
    small_file::read(path)
        .map_err(|error| format!("{key}: cannot be read: path=`{path_text}`, {error}"))
}
