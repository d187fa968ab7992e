//! URLs that a copy reads from: of a blob of this service, or of another host that the settings list.

mod hosts;
#[cfg(test)]
mod tests;

use http::Uri;
use percent_encoding::percent_decode_str;

use self::hosts::SourceServer;
pub use self::hosts::{HostList, ServerList};

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

/// Why a URL is not a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CopyUrlError {
    /// It is malformed.
    #[error("must be http:// or https://, a host, and a path in UTF-8, without a user")]
    Malformed,
    /// The settings do not list its server.
    #[error("the setting storage.copy_source_hosts does not list its host")]
    NotListed,
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
        match self.others.contains(&origin) {
            true => Ok(CopyUrl::Other(uri)),
            false => Err(CopyUrlError::NotListed),
        }
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
