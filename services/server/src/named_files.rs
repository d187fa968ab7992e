//! The files that the settings name for `serve`: whether it could use them.

use trestle_runtime::{
    telemetry,
    tls::{Certificates, TlsError, TlsFile},
};

use crate::{
    gateway_secret, identity,
    settings::{Settings, TlsSettings},
    upstreams,
};

/// Every file that cannot be used, with its key, and the text with which `serve` ends. Blocks.
#[must_use]
pub fn problems(settings: &Settings) -> Vec<String> {
    let of_listeners = listener_problems(&settings.tls).into_iter().map(|error| {
        let key = match error.of() {
            TlsFile::Certificate => "cert_file",
            TlsFile::Key => "key_file",
            TlsFile::Authorities => "client_ca_file",
        };
        format!("tls.{key}: {error}")
    });
    let of_gateways = gateway_secret::file_problem(&settings.server);
    let of_roles = upstreams::file_problems(settings);
    let of_accounts = identity::key_file_problems(settings).into_iter();
    let of_telemetry = telemetry::salt_problem(&settings.telemetry);
    let of_backups = settings.backup.file_problem();
    let of_roles = of_roles.into_iter().chain(of_telemetry).chain(of_backups);
    of_listeners.chain(of_gateways).chain(of_accounts).chain(of_roles).collect()
}

/// Each file by itself, also where another one is missing; if each can be used, whether they fit together.
fn listener_problems(tls: &TlsSettings) -> Vec<TlsError> {
    let named = [
        (TlsFile::Certificate, &tls.cert_file),
        (TlsFile::Key, &tls.key_file),
        (TlsFile::Authorities, &tls.client_ca_file),
    ];
    let alone = named.into_iter().filter_map(|(what, file)| what.problem(file.as_deref()?));
    let found: Vec<_> = alone.collect();
    if !found.is_empty() {
        return found;
    }
    let together = tls.grpc().and_then(|files| Certificates::read(&files).err());
    together.into_iter().collect()
}
