//! Checks whether a running server serves: for containers and scripts.

use std::{net::SocketAddr, time::Duration};

use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use trestle_cli::TlsArgs;

use crate::settings::Settings;

/// The name by which gRPC health reports whether the store accepts writes.
pub const WRITES: &str = "trestle.storage.writes";
/// The status of a process that accepts only reads and deletes, because disk space is short.
pub const READ_ONLY_DISK: &str = "read-only: disk";

/// How long the check may take.
const CHECK_WITHIN: Duration = Duration::from_secs(3);

/// The endpoint of a server with these settings, from the same machine.
#[must_use]
pub fn endpoint(settings: &Settings) -> String {
    let mut address = settings.server.listen;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    let scheme = if settings.tls.grpc().is_some() { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// Whether `service` serves at `endpoint`; all of it where the name is empty. Returns its limitation, if any.
///
/// # Errors
/// Why it does not, as a text.
pub async fn check(
    endpoint: &str,
    tls: &TlsArgs,
    service: String,
) -> Result<Option<&'static str>, String> {
    let check = async {
        let mut client = HealthClient::new(trestle_cli::connect(endpoint, tls).await?);
        let checked = client.check(HealthCheckRequest { service }).await;
        let failed = |status: tonic::Status| format!("{}: endpoint=`{endpoint}`", status.message());
        match checked.map_err(failed)?.get_ref().status() {
            ServingStatus::Serving => {}
            other => return Err(format!("not serving: status=`{}`", other.as_str_name())),
        }
        let writes = HealthCheckRequest { service: WRITES.to_owned() };
        // A process without a store does not register the name.
        let is_limited = client
            .check(writes)
            .await
            .is_ok_and(|writes| writes.get_ref().status() == ServingStatus::NotServing);
        Ok(is_limited.then_some(READ_ONLY_DISK))
    };
    let late = |_| Err(format!("no answer in time: endpoint=`{endpoint}`"));
    tokio::time::timeout(CHECK_WITHIN, check).await.unwrap_or_else(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_a_wildcard_address_on_loopback() {
        for (listen, checked) in [
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::]:1", "http://[::1]:1"),
            ("10.0.0.1:2", "http://10.0.0.1:2"),
        ] {
            let mut settings = Settings::default();
            settings.server.listen = listen.parse().expect("an address");
            assert_eq!(endpoint(&settings), checked);
        }
    }
}
