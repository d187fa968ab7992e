//! URLs that a copy reads from: of a blob of this service, or of another host that the settings list.

#[cfg(test)]
mod tests;

use std::str::FromStr;

use http::{Uri, uri::Scheme};
use percent_encoding::percent_decode_str;

/// The container of a blob whose URL names none.
const ROOT_CONTAINER: &str = "$root";

/// The hosts that a copy may read from by URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyHosts {
    /// The hosts of this service.
    pub own: HostList,
    /// The others.
    pub others: ServerList,
}

/// Hosts in URLs of this service, separated by commas: `HOST` or `HOST:PORT`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostList(Vec<(String, Option<u16>)>);

/// Other servers, separated by commas: `https://HOST`, `http://HOST:PORT`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerList(Vec<SourceServer>);

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SourceServer {
    is_https: bool,
    host: String,
    port: u16,
}

/// What a URL names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CopyUrl {
    /// A blob of this service.
    Own(OwnUrl),
    /// Content of a server that the settings list.
    Other(Uri),
}

/// The parts of a URL of this service, decoded; empty ones are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnUrl {
    pub(crate) account: String,
    pub(crate) container: String,
    pub(crate) blob: String,
    pub(crate) snapshot: String,
    pub(crate) version_id: String,
}

/// Why a URL is no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CopyUrlError {
    /// It is malformed.
    #[error("must be http:// or https://, a host, and a path in UTF-8, without a user")]
    Malformed,
    /// The settings do not list its server.
    #[error("the setting storage.copy_source_hosts does not list its host")]
    NotListed,
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
            host(entry).ok_or_else(|| format!("must be HOST or HOST:PORT: value=`{entry}`"))
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
                format!(
                    "must be https://HOST or http://HOST, with or without a port: value=`{entry}`"
                )
            })
        });
        origins.collect::<Result<_, _>>().map(Self)
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
    fn of(uri: &Uri) -> Option<Self> {
        let is_https = match uri.scheme()? {
            scheme if *scheme == Scheme::HTTPS => true,
            scheme if *scheme == Scheme::HTTP => false,
            _ => return None,
        };
        let (host, port) = host_of(uri)?;
        Some(Self { is_https, host, port: port.unwrap_or(if is_https { 443 } else { 80 }) })
    }
}

impl CopyHosts {
    /// What a URL names.
    ///
    /// # Errors
    /// [`CopyUrlError`].
    pub(crate) fn resolve(&self, url: &str) -> Result<CopyUrl, CopyUrlError> {
        let uri: Uri = url.parse().map_err(|_| CopyUrlError::Malformed)?;
        let origin = SourceServer::of(&uri).ok_or(CopyUrlError::Malformed)?;
        if let Some(path) = self.own.path(&origin, uri.path()) {
            let own = own_url(&path, uri.query().unwrap_or_default());
            return own.map(CopyUrl::Own).ok_or(CopyUrlError::Malformed);
        }
        match self.others.0.contains(&origin) {
            true => Ok(CopyUrl::Other(uri)),
            false => Err(CopyUrlError::NotListed),
        }
    }
}

impl HostList {
    /// The path with the account, which may be the first part of the host; none for a host of another server.
    fn path(&self, origin: &SourceServer, path: &str) -> Option<String> {
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

/// The parts of a path `ACCOUNT/CONTAINER/BLOB` or `ACCOUNT/BLOB`, and of a query.
fn own_url(path: &str, query: &str) -> Option<OwnUrl> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8().ok().map(String::from);
    let (account, rest) = path.split_once('/')?;
    let (container, blob) = rest.split_once('/').unwrap_or((ROOT_CONTAINER, rest));
    let parameter = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut value =
            pairs.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        decode(value.next_back().unwrap_or_default())
    };
    Some(OwnUrl {
        account: decode(account)?,
        container: decode(container)?,
        blob: decode(blob)?,
        snapshot: parameter("snapshot")?,
        version_id: parameter("versionid")?,
    })
}
