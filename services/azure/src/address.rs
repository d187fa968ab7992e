//! The account and the path of a request.
//!
//! Two styles: the account as the first label of the host (`acme.table.core.windows.net`), or as
//! the first segment of the path (`127.0.0.1:10002/acme`), which works with every host. A host has
//! the first style only if its second label is the service, so that a name such as
//! `storage.example.com` can be used with either. Hosts are case-insensitive; accounts in a path
//! are not.
//!
//! The website of an account has a host of its own, as Azure has it: `acme.web.example.com`, or with the zone of an
//! account that moved here, `acme.z1.web.example.com`. A path of the other hosts would give the pages of every account
//! one origin, that of the protocol itself.

use std::borrow::Cow;

/// The suffix of the name of the read-only replica of an account.
const SECONDARY: &str = "-secondary";
/// The service whose accounts have websites.
const WITH_WEBSITES: &str = "blob";
/// The label of the hosts of websites.
const WEBSITE: &str = "web";

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
    /// Whether the request is for the website of the account.
    pub(crate) is_website: bool,
}

impl<'a> Address<'a> {
    /// Parses the address of a request to `service`, such as `table`, with its path as it was sent;
    /// none if it names no account.
    pub(crate) fn of(path: &'a str, host: &str, service: &str) -> Option<Self> {
        if let Some(label) = account_of(host, service) {
            return Some(Self::in_host(label, path, false));
        }
        if let Some(label) = website_of(host).filter(|_| service == WITH_WEBSITES) {
            return Some(Self::in_host(label, path, true));
        }
        Self::in_path(path)
    }

    fn in_host(label: &str, path: &'a str, is_website: bool) -> Self {
        let label = label.to_ascii_lowercase();
        let (account, is_secondary) = primary(&label);
        let account = Cow::Owned(account.to_owned());
        Self { account, is_secondary, path, is_in_path: false, is_website }
    }

    /// The same with the account as a segment of the path, for any host.
    pub(crate) fn in_path(path: &'a str) -> Option<Self> {
        let rest = path.strip_prefix('/')?;
        let end = rest.find('/').unwrap_or(rest.len());
        let (segment, path) = rest.split_at_checked(end)?;
        let (account, is_secondary) = primary(segment);
        let path = if path.is_empty() { "/" } else { path };
        let account = account.into();
        let found = Self { account, is_secondary, path, is_in_path: true, is_website: false };
        (!found.account.is_empty()).then_some(found)
    }
}

/// The first label of a host whose second one is the service.
fn account_of<'a>(host: &'a str, service: &str) -> Option<&'a str> {
    let (account, rest) = host.split_once('.')?;
    let next = rest.split(['.', ':']).next()?;
    next.eq_ignore_ascii_case(service).then_some(account)
}

/// The first label of a host of a website.
fn website_of(host: &str) -> Option<&str> {
    let (account, rest) = host.split_once('.')?;
    let mut labels = rest.split(['.', ':']);
    let next = labels.next()?;
    let next = if is_zone(next) { labels.next()? } else { next };
    next.eq_ignore_ascii_case(WEBSITE).then_some(account)
}

/// Whether a label is the zone of a website in Azure: `z1`, `z22`.
fn is_zone(label: &str) -> bool {
    let digits = label.strip_prefix(['z', 'Z']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn primary(name: &str) -> (&str, bool) {
    match name.strip_suffix(SECONDARY) {
        Some(account) => (account, true),
        None => (name, false),
    }
}

#[cfg(test)]
mod tests;
