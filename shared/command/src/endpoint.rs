//! The address of a server, validated before any request: tonic ignores the parts of an address that
//! it does not support, and connects to another address.

use std::net::IpAddr;

use http::{Uri, uri::Authority};

use crate::{errors::CliError, trust::TlsArgs};

/// The port of gRPC where an address without a scheme has none.
const DEFAULT_PORT: u16 = 50051;
/// The rule for a port.
const PORT: &str = "port must be 1 to 65535";
/// The source of an address.
const FROM: &str = "--endpoint (TRESTLE_ENDPOINT)";

/// Whether calls to an address are encrypted.
pub(crate) fn is_encrypted(endpoint: &str) -> Result<bool, CliError> {
    is_encrypted_from(FROM, endpoint)
}

fn is_encrypted_from(from: &str, endpoint: &str) -> Result<bool, CliError> {
    check(endpoint)
        .map_err(|rule| CliError::Usage(format!("{from}: {rule}: value=`{}`", shown(endpoint))))
}

/// Whether calls to a complete address are in plain text, and leave this machine.
pub(crate) fn is_exposed(endpoint: &str) -> bool {
    let Ok(uri) = endpoint.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_local = match address {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    };
    uri.scheme_str() == Some("http") && !is_local
}

/// Rejects files for TLS with an address that is not encrypted: the call would go in plain text.
pub(crate) fn reject_plain(endpoint: &str, has_tls: bool) -> Result<(), CliError> {
    if !has_tls || is_encrypted(endpoint)? {
        return Ok(());
    }
    let rule = "must begin with https:// where files for TLS or --server-name are given";
    Err(CliError::Usage(format!("{FROM}: {rule}: value=`{}`", shown(endpoint))))
}

/// Rejects the complete address of a source that cannot be called, or that is not encrypted where a file for TLS is
/// given.
pub(crate) fn check_source(endpoint: &str, has_tls: bool) -> Result<(), CliError> {
    const FROM: &str = "the address of the source";
    if is_encrypted_from(FROM, endpoint)? || !has_tls {
        return Ok(());
    }
    let rule = "must begin with https:// where --source-ca-file is given";
    Err(CliError::Usage(format!("{FROM}: {rule}: value=`{}`", shown(endpoint))))
}

/// An address with its scheme: HOST:PORT is one without TLS, unless files for TLS are given.
pub(crate) fn complete(endpoint: &str, has_tls: bool) -> String {
    // A path or a text that is not an address is rejected as it was written.
    let is_authority = !endpoint.contains("://")
        && endpoint.parse::<Authority>().is_ok_and(|found| !found.as_str().contains('@'));
    let scheme = if has_tls { "https" } else { "http" };
    match endpoint.parse::<Authority>().ok().filter(|_| is_authority) {
        // A malformed port is rejected as it was written too.
        Some(authority) if has_malformed_port(&authority) => endpoint.to_owned(),
        Some(authority) if authority.port().is_none() => {
            format!("{scheme}://{authority}:{DEFAULT_PORT}")
        }
        Some(authority) => format!("{scheme}://{authority}"),
        None => endpoint.to_owned(),
    }
}

/// The address that is called, as errors show it: with its scheme and its port.
#[must_use]
pub fn called_address(endpoint: &str, tls: &TlsArgs) -> String {
    with_port(&complete(endpoint, tls.is_given()))
}

/// An address as errors show it: with the port that is called, also where none is written.
pub(crate) fn with_port(endpoint: &str) -> String {
    let Ok(uri) = endpoint.parse::<Uri>() else { return endpoint.to_owned() };
    let port = match uri.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        _ => return endpoint.to_owned(),
    };
    match (uri.scheme_str(), uri.authority()) {
        (Some(scheme), Some(authority)) if authority.port().is_none() => {
            format!("{scheme}://{authority}:{port}")
        }
        _ => endpoint.to_owned(),
    }
}

/// Whether an invalid port is written, such as 99999.
fn has_malformed_port(authority: &Authority) -> bool {
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    !port.is_empty() && authority.port_u16().is_none_or(|port| port == 0)
}

/// An address without possible secrets.
pub(crate) fn shown(endpoint: &str) -> String {
    let (kept, cut) = endpoint.split_at(endpoint.find(['?', '#']).unwrap_or(endpoint.len()));
    let mark = if cut.is_empty() { "" } else { "…" };
    if cut.contains('@') {
        // The password may continue there, or a signature may have begun.
        return mark.to_owned();
    }
    match kept.rsplit_once('@') {
        Some((_, place)) => format!("…@{place}{mark}"),
        None => format!("{kept}{mark}"),
    }
}

fn check(endpoint: &str) -> Result<bool, &'static str> {
    const ADDRESS: &str = "must be an address such as 127.0.0.1:50051 or https://tables.example";
    const SCHEME: &str = "must be HOST:PORT, or begin with http:// or https://";
    if !endpoint.contains("://") && endpoint.parse().is_ok_and(|it| has_malformed_port(&it)) {
        return Err(PORT);
    }
    let uri: Uri = endpoint.parse().map_err(|_| ADDRESS)?;
    let is_encrypted = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(SCHEME),
    };
    let authority = uri.authority().ok_or(ADDRESS)?;
    if authority.as_str().contains('@') {
        return Err("must have no user name or password: give --account and a key or a signature");
    }
    if has_malformed_port(authority) {
        return Err(PORT);
    }
    // A fragment is not part of the parsed address.
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() || endpoint.contains('#') {
        return Err("must have no path behind the host and the port");
    }
    Ok(is_encrypted)
}

#[cfg(test)]
mod tests;
