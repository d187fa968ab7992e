//! The files that the settings name for `serve`: whether it could use them.

use trestle_runtime::{
    telemetry,
    tls::{Certificates, TlsFile},
};

use crate::{identity, settings::Settings, upstreams};

/// Every file that cannot be used, with its key, and the text with which `serve` ends. Blocks.
#[must_use]
pub fn problems(settings: &Settings) -> Vec<String> {
    let of_listeners = settings.tls.grpc().map(|files| Certificates::problems(&files));
    let of_listeners = of_listeners.unwrap_or_default().into_iter().map(|error| {
        let key = match error.of() {
            TlsFile::Certificate => "cert_file",
            TlsFile::Key => "key_file",
            TlsFile::Authorities => "client_ca_file",
        };
        format!("tls.{key}: {error}")
    });
    let of_roles = upstreams::file_problems(settings);
    let of_accounts = identity::key_file_problems(settings).into_iter();
    let of_telemetry = telemetry::salt_problem(&settings.telemetry);
    of_listeners.chain(of_accounts).chain(of_roles).chain(of_telemetry).collect()
}
