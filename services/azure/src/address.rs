//! The account and the path of a request.
//!
//! Two styles: the account as the first label of the host (`acme.table.core.windows.net`), or as
//! the first segment of the path (`127.0.0.1:10002/acme`), which works with every host. A host has
//! the first style only if its second label is the service, so that a name such as
//! `storage.example.com` can be used with either. Hosts are case-insensitive; accounts in a path
//! are not.

use std::borrow::Cow;

/// The suffix of the name of the read-only replica of an account.
const SECONDARY: &str = "-secondary";

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    /// The account, without `-secondary`.
    pub(crate) account: Cow<'a, str>,
    /// Whether the request addresses the read-only replica.
    pub(crate) is_secondary: bool,
    /// What follows the account, as it was sent; begins with `/`.
    pub(crate) path: &'a str,
    /// Whether the account is a segment of the path.
    pub(crate) is_in_path: bool,
}

impl<'a> Address<'a> {
    /// Parses the address of a request to `service`, such as `table`, with its path as it was sent;
    /// none if it names no account.
    pub(crate) fn of(path: &'a str, host: &str, service: &str) -> Option<Self> {
        if let Some(label) = account_of(host, service) {
            let label = label.to_ascii_lowercase();
            let (account, is_secondary) = primary(&label);
            let account = Cow::Owned(account.to_owned());
            return Some(Self { account, is_secondary, path, is_in_path: false });
        }
        Self::in_path(path)
    }

    /// The same with the account as a segment of the path, for any host.
    pub(crate) fn in_path(path: &'a str) -> Option<Self> {
        let rest = path.strip_prefix('/')?;
        let end = rest.find('/').unwrap_or(rest.len());
        let (segment, path) = rest.split_at_checked(end)?;
        let (account, is_secondary) = primary(segment);
        let path = if path.is_empty() { "/" } else { path };
        let found = Self { account: account.into(), is_secondary, path, is_in_path: true };
        (!account.is_empty()).then_some(found)
    }
}

/// The first label of a host whose second one is the service.
fn account_of<'a>(host: &'a str, service: &str) -> Option<&'a str> {
    let (account, rest) = host.split_once('.')?;
    let next = rest.split(['.', ':']).next()?;
    next.eq_ignore_ascii_case(service).then_some(account)
}

fn primary(name: &str) -> (&str, bool) {
    match name.strip_suffix(SECONDARY) {
        Some(account) => (account, true),
        None => (name, false),
    }
}

#[cfg(test)]
mod tests;
