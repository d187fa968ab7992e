//! Where the key of the development account counts. It is public: every web page has it, and can send requests with
//! it, and without any key, to the machine of the person who opens the page. So a caller by that key must call as a
//! program of this machine or of a private network does, or as a page that a rule of the account allows. Pages of this
//! machine may read without a rule: they show images, and follow links.

#[cfg(test)]
mod tests;

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use http::{
    HeaderMap, HeaderName, Method, Uri,
    header::{AUTHORIZATION, FORWARDED, HOST, ORIGIN, REFERER, VIA},
};
use trestle_model::fault::{Reason, quoted};
use trestle_model::name::AccountName;

use crate::sas::{Check, Denied};

/// The headers of proxies: behind one, a request of any client has the address of this machine.
const PROXY_HEADERS: [HeaderName; 3] = [FORWARDED, HeaderName::from_static("x-forwarded-for"), VIA];
/// The relation of the page to the server, as a browser states it.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The ends of names that no public name server resolves, so that no page can have one of its own: those reserved for
/// private use, and the services of a Kubernetes cluster.
const PRIVATE_SUFFIXES: [&str; 3] = [".internal", ".local", ".svc"];

/// In the extensions of a request: the CORS rules of the development account allow the page that sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedPage;

/// In the extensions of a request from a page: the account of its credentials, once they are verified. Only the rules
/// of this account let the page read the response, an error too.
#[derive(Debug, Clone, Default)]
pub struct PageAccount(pub Arc<OnceLock<AccountName>>);

/// The hosts that count as private.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateHosts {
    /// Beside those that are by their names: lower case, without port.
    listed: Arc<[String]>,
    /// Whether names of private networks count, beside those of this machine.
    has_networks: bool,
}

/// The parts of a request that distinguish a program from a page, and a private address from a public one.
#[derive(Debug, Clone, Copy)]
pub struct RequestSource<'a> {
    /// The method.
    pub method: &'a Method,
    /// Whether it is a read, by a method that is safe.
    pub is_read: bool,
    /// The target; its authority is that of HTTP/2.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// Whether the request has [`AllowedPage`].
    pub is_allowed_page: bool,
}

impl PrivateHosts {
    /// The names of this machine, and these names and addresses without ports. The operator of a private network
    /// decides what its names mean, so they count only where the server is for a network.
    #[must_use]
    pub fn new(hosts: impl IntoIterator<Item = String>, is_for_network: bool) -> Self {
        let listed = hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect();
        Self { listed, has_networks: is_for_network }
    }

    /// Checks that the public key counts for a request.
    ///
    /// # Errors
    /// The header that rules it out, its value and the rule.
    pub fn check(&self, source: &RequestSource<'_>) -> Result<(), Denied> {
        let RequestSource { is_read, headers, .. } = *source;
        if let Some(name) = PROXY_HEADERS.iter().find(|name| headers.contains_key(*name)) {
            let rule = "a request that passed a proxy needs the key of a configured account";
            return Err(denied(name.as_str(), &text(headers, name), rule));
        }
        if let Some(host) = source.host()
            && !self.has(host)
        {
            let rule = match self.has_networks {
                true => {
                    "address the server as localhost or by another private name, list the host in \
                     gateway.development_hosts, or configure an account"
                }
                false => {
                    "address the server as localhost, list the host in gateway.development_hosts, \
                     or configure an account"
                }
            };
            return Err(denied("host", host, rule));
        }
        if source.is_allowed_page {
            return Ok(());
        }
        if !is_read && headers.contains_key(ORIGIN) {
            let rule = "no CORS rule of the account allows pages of this origin";
            return Err(denied("origin", &text(headers, &ORIGIN), rule));
        }
        if !is_read && source.method.is_safe() && !source.is_of_program() {
            let rule = "a link must not receive messages: send Authorization or x-ms-version";
            return Err(denied("method", source.method.as_str(), rule));
        }
        let site = text(headers, &FETCH_SITE);
        let may_be_page = match site.as_str() {
            "cross-site" | "same-site" => true,
            "" => source.may_be_unstated_page(),
            _ => false,
        };
        // What a page reads is kept from its scripts, but may be a script itself.
        if !may_be_page || is_read && self.is_of_private_page(headers) {
            return Ok(());
        }
        let rule = match (site.is_empty(), is_read) {
            (false, false) => "pages of other sites must not write",
            (false, true) => {
                "a page of another site reads by a CORS rule of the account, or from a private \
                 host that it sends in Referer"
            }
            (true, _) => {
                let rule = "a browser does not state at this host which page sends a request: \
                            address the server as localhost, or send Authorization or x-ms-version";
                return Err(denied("host", source.host().unwrap_or_default(), rule));
            }
        };
        Err(denied(FETCH_SITE.as_str(), &site, rule))
    }

    /// Whether the page that sent a request is of a private host. A page may hide its address, but not send another.
    fn is_of_private_page(&self, headers: &HeaderMap) -> bool {
        let page = text(headers, &REFERER).parse::<Uri>().ok();
        let host = page.as_ref().filter(|page| page.scheme().is_some()).and_then(Uri::authority);
        host.is_some_and(|host| self.has(host.as_str()))
    }

    /// Whether a host with or without a port is private: one that no page of another machine can have.
    #[must_use]
    pub fn has(&self, host: &str) -> bool {
        let Some(host) = name_of(host) else { return false };
        if let Ok(address) = host.parse::<IpAddr>() {
            // As it is written: browsers take an IPv4 address within one of IPv6 for one of another machine.
            return address.is_loopback() || self.lists(&host);
        }
        let is_label = !host.is_empty() && !host.contains(['.', ':']);
        let is_of_network =
            is_label || PRIVATE_SUFFIXES.iter().any(|suffix| host.ends_with(suffix));
        is_of_this_machine(&host) || self.has_networks && is_of_network || self.lists(&host)
    }

    fn lists(&self, host: &str) -> bool {
        self.listed.iter().any(|listed| listed == host)
    }
}

impl<'a> RequestSource<'a> {
    /// The host that the client addressed; none within a process.
    fn host(&self) -> Option<&'a str> {
        let header = || {
            let host = self.headers.get(HOST).filter(|host| !host.is_empty())?;
            Some(host.to_str().unwrap_or_default())
        };
        self.uri.authority().map(http::uri::Authority::as_str).or_else(header)
    }

    /// Whether it may be of a page although it states none. Browsers state the site of a page to this machine only, by
    /// the names that mean it everywhere (Fetch Metadata, of "potentially trustworthy" addresses), and an origin with
    /// every method that is not safe. What a page cannot send without a preflight is of a program.
    fn may_be_unstated_page(&self) -> bool {
        let is_stated = |host: &str| {
            name_of(host).is_some_and(|host| match host.parse::<IpAddr>() {
                Ok(address) => address.is_loopback(),
                Err(_) => is_of_this_machine(&host),
            })
        };
        self.method.is_safe()
            && self.host().is_some_and(|host| !is_stated(host))
            && !self.is_of_program()
    }

    /// Whether it has a header that no page, and no link, can send without a preflight.
    fn is_of_program(&self) -> bool {
        let is_of_program =
            |name: &HeaderName| *name == AUTHORIZATION || name.as_str().starts_with("x-ms-");
        self.headers.keys().any(is_of_program)
    }
}

/// Whether a name means this machine wherever it is resolved.
fn is_of_this_machine(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

/// A host without its port, in lower case.
fn name_of(host: &str) -> Option<String> {
    let authority = host.parse::<http::uri::Authority>().ok()?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    Some(host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase())
}

fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    headers
        .get(name)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default()
}

fn denied(field: &str, value: &str, rule: &str) -> Denied {
    let message = format!(
        "the key of the development account is public and does not count for this request: {rule}: \
         {field}=`{}`",
        quoted(value)
    );
    Denied::new(Check::Account, Reason::AuthenticationFailed, message)
}
