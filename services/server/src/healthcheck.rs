//! Checks whether a running server serves: for containers and scripts.

use std::{net::SocketAddr, time::Duration};

use futures::future::LocalBoxFuture;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};
use trestle_cli::status::limitation;
pub use trestle_cli::status::{READ_ONLY, STOPPED, WRITES};
use trestle_command::{
    client::of_health, endpoint::called_address, errors::CliError, trust::TlsArgs,
};
use trestle_runtime::config::{self, ConfigError, Sources};

use crate::{
    roles::ROLES,
    settings::{Settings, parse_address},
};

/// How long the check may take.
const CHECK_WITHIN: Duration = Duration::from_secs(3);

/// The endpoint of the server with these settings, from the same machine. Only what it depends on is read: the settings
/// may be those of a role, or incomplete without the flags of the server.
///
/// # Errors
/// A file that cannot be read, or an address that is malformed.
pub fn endpoint(sources: Sources<'_>) -> Result<String, ConfigError> {
    let [listen, certificate] = config::texts(["server.listen", "tls.cert_file"], sources)?;
    let malformed = |problem| ConfigError::Malformed(format!("server.listen: {problem}"));
    let mut address = match listen {
        Some(text) => parse_address(&text).map_err(malformed)?,
        None => Settings::defaults(ROLES).server.listen,
    };
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    let scheme = if certificate.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{address}"))
}

/// Whether `service` serves at `endpoint`; all of it where the name is empty. Returns its limitation, if any.
///
/// # Errors
/// Why it does not, as a text.
pub fn check<'a>(
    endpoint: &'a str,
    tls: &'a TlsArgs,
    service: String,
) -> LocalBoxFuture<'a, Result<Option<&'static str>, String>> {
    Box::pin(async move {
        let called = called_address(endpoint, tls);
        match tokio::time::timeout(CHECK_WITHIN, call(endpoint, tls, service)).await {
            Err(_) => Err(format!("no answer in time: endpoint=`{called}`")),
            Ok(Ok(checked)) => checked.map_err(|reason| format!("{reason}, endpoint=`{called}`")),
            Ok(Err(error)) => {
                let error = trestle_command::outcome::explained(error, endpoint, tls).await;
                Err(error.described(&called))
            }
        }
    })
}

/// The limitation of a service that serves, if any; else the reason why it does not.
async fn call(
    endpoint: &str,
    tls: &TlsArgs,
    service: String,
) -> Result<Result<Option<&'static str>, String>, CliError> {
    let mut client = trestle_command::client::health(endpoint, tls).await?;
    let request = HealthCheckRequest { service: service.clone() };
    let failed = |status| of_health(status, &called_address(endpoint, tls), &service);
    match client.check(request).await.map_err(failed)?.get_ref().status() {
        ServingStatus::Serving => {}
        other => return Ok(Err(format!("not serving: status=`{}`", other.as_str_name()))),
    }
    let mut reported = [ServingStatus::Unknown; 2];
    for (status, service) in reported.iter_mut().zip([WRITES, ""]) {
        let request = HealthCheckRequest { service: service.to_owned() };
        match client.check(request).await {
            Ok(checked) => *status = checked.get_ref().status(),
            // An earlier version, as a gateway, does not report writes.
            Err(_) => return Ok(Ok(None)),
        }
    }
    let [writes, whole] = reported;
    Ok(Ok(limitation(writes, whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(variables: &[(&str, &str)]) -> Result<String, ConfigError> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment = variables.iter().map(owned).collect();
        endpoint(Sources { environment, ..Sources::default() })
    }

    #[test]
    fn checks_a_wildcard_address_on_loopback() {
        for (listen, expected) in [
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::]:1", "http://[::1]:1"),
            ("10.0.0.1:2", "http://10.0.0.1:2"),
        ] {
            let found = checked(&[("TRESTLE__SERVER__LISTEN", listen)]);
            assert_eq!(found.expect("an endpoint"), expected);
        }
        assert_eq!(checked(&[]).expect("the default"), "http://127.0.0.1:50051");
    }

    #[test]
    fn reads_only_what_the_endpoint_depends_on() {
        let variables = [
            ("TRESTLE__SERVER__ROLES", "gateway"),
            ("TRESTLE__SERVER__TRUST_CALLERS", "true"),
            ("TRESTLE__LIMITS__CALLS_MAX", "none"),
            ("TRESTLE__OF_A_LATER_VERSION", "1"),
            ("TRESTLE__TLS__CERT_FILE", "server.pem"),
        ];
        assert_eq!(checked(&variables).expect("an endpoint"), "https://127.0.0.1:50051");
        let error = checked(&[("TRESTLE__SERVER__LISTEN", "here")]).expect_err("malformed");
        assert!(error.to_string().contains("server.listen: must be an address"), "{error}");
    }
}
