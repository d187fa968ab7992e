//! The servers of URLs: lists of them in the settings, and the server of one URL.

use std::str::FromStr;

use http::{Uri, uri::Scheme};

/// Hosts in URLs of this service, separated by commas: `HOST` or `HOST:PORT`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostList(Vec<(String, Option<u16>)>);

/// Other servers, separated by commas: `https://HOST`, `http://HOST:PORT`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerList(Vec<SourceServer>);

/// A server that a URL names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceServer {
    is_https: bool,
    host: String,
    port: u16,
}

impl FromStr for HostList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let host = |entry: &str| {
            let uri: Uri = format!("http://{entry}").parse().ok()?;
            let is_plain = uri.authority()?.as_str() == entry;
            host_of(&uri).filter(|_| is_plain)
        };
        let hosts = entries(text).map(|entry| {
            let value = || shown(text, entry);
            host(entry).ok_or_else(|| format!("must be HOST or HOST:PORT{}", value()))
        });
        hosts.collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for ServerList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let origin = |entry: &str| {
            let uri: Uri = entry.parse().ok()?;
            let is_plain = uri.path_and_query()?.as_str() == "/" && !entry.ends_with('/');
            SourceServer::of(&uri).filter(|_| is_plain)
        };
        let origins = entries(text).map(|entry| {
            origin(entry).ok_or_else(|| {
                let rule = "must be https://HOST or http://HOST, with or without a port";
                format!("{rule}{}", shown(text, entry))
            })
        });
        origins.collect::<Result<_, _>>().map(Self)
    }
}

/// A rejected entry of a list as part of an error: without a user and a password, which may contain commas, and without
/// a query, which may have a signature.
fn shown(text: &str, entry: &str) -> String {
    let Some((_, host)) = text.rsplit_once('@') else {
        let plain = entry.split(['?', '#']).next().unwrap_or_default();
        return format!(": value=`{plain}`");
    };
    let rule = ", without a user";
    match text.contains(['?', '#']) {
        true => rule.to_owned(),
        false => format!("{rule}: value=`{host}`"),
    }
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// The host of a URI in lower case, and its port if it has one; none with a user or another port than a number.
fn host_of(uri: &Uri) -> Option<(String, Option<u16>)> {
    let host = uri.host().filter(|host| !host.is_empty())?;
    let port = match uri.authority()?.as_str().strip_prefix(host)? {
        "" => None,
        port => Some(port.strip_prefix(':')?.parse().ok()?),
    };
    Some((host.to_ascii_lowercase(), port))
}

impl SourceServer {
    /// The server of an absolute URI; none for another scheme, without a host, or with a user.
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        let is_https = match uri.scheme()? {
            scheme if *scheme == Scheme::HTTPS => true,
            scheme if *scheme == Scheme::HTTP => false,
            _ => return None,
        };
        let (host, port) = host_of(uri)?;
        Some(Self { is_https, host, port: port.unwrap_or(if is_https { 443 } else { 80 }) })
    }
}

impl HostList {
    /// The path with the account, which may be the first part of the host; none for a host of another server.
    pub(super) fn path(&self, origin: &SourceServer, path: &str) -> Option<String> {
        self.0.iter().find_map(|(host, port)| {
            let default_port = if origin.is_https { 443 } else { 80 };
            if origin.port != port.unwrap_or(default_port) {
                return None;
            }
            if origin.host == *host {
                return Some(path.trim_start_matches('/').to_owned());
            }
            let account = origin.host.strip_suffix(host)?.strip_suffix('.')?;
            (!account.contains('.')).then(|| format!("{account}{path}"))
        })
    }
}

impl ServerList {
    /// Whether it lists this server.
    pub(super) fn contains(&self, server: &SourceServer) -> bool {
        self.0.contains(server)
    }
}
