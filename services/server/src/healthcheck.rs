//! Asks a running server whether it serves: for containers and scripts.

use std::{net::SocketAddr, time::Duration};

use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use trestle_service::upstream::{Remote, Upstream};

/// How long a server may take to say.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// Where a server that listens on `address` is reached from the same machine.
#[must_use]
pub fn endpoint(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

/// Whether `service` serves at `endpoint`; all of it where the name is empty.
///
/// # Errors
/// Why it does not, as a text.
pub async fn check(endpoint: &str, service: String) -> Result<(), String> {
    let remote = Remote::new(endpoint, 1).map_err(|error| error.to_string())?;
    let mut client = HealthClient::new(Upstream::Remote(remote));
    let asked = client.check(HealthCheckRequest { service });
    match tokio::time::timeout(ANSWERS_WITHIN, asked).await {
        Ok(Ok(answer)) => match answer.get_ref().status() {
            ServingStatus::Serving => Ok(()),
            other => Err(format!("not serving: status=`{}`", other.as_str_name())),
        },
        Ok(Err(status)) => Err(format!("{}: endpoint=`{endpoint}`", status.message())),
        Err(_elapsed) => Err(format!("no answer in time: endpoint=`{endpoint}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_everybody_is_asked_on_loopback() {
        for (listen, asked) in [
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::]:1", "http://[::1]:1"),
            ("10.0.0.1:2", "http://10.0.0.1:2"),
        ] {
            assert_eq!(endpoint(listen.parse().expect("an address")), asked);
        }
    }
}
