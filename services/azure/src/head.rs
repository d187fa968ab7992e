//! The head of a request.

use http::{HeaderMap, HeaderName, Method, Uri, Version, header};
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::name::AccountName;
use trestle_rpc::{layer::Request, peer::Peer};

use crate::{
    address::Address,
    params::Params,
    version::{self, VERSION},
};

/// The header with the request id of a client, on requests and responses.
pub(crate) const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
/// Largest head that is accepted: address and headers together, in bytes. Has room for the longest
/// keys, each byte of them escaped, and for the continuation tokens of a query.
const HEAD_BYTES_MAX: usize = 24 * 1024;
/// Headers that have one value.
const SINGLE: [HeaderName; 13] = [
    VERSION,
    HeaderName::from_static("x-ms-date"),
    HeaderName::from_static("content-md5"),
    header::DATE,
    header::HOST,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
    HeaderName::from_static("x-ms-range"),
];

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct RequestHead {
    /// The method.
    pub(crate) method: Method,
    /// The target as it was sent.
    pub(crate) uri: Uri,
    /// The headers as they were sent.
    pub(crate) headers: HeaderMap,
    /// The account in the address; it may not exist.
    pub(crate) account: AccountName,
    /// Whether the address is that of its read-only replica.
    pub(crate) is_secondary: bool,
    /// Whether the address is that of the website of the account.
    pub(crate) is_website: bool,
    /// Whether the account is in the path of the address, and not in its host.
    pub(crate) is_account_in_path: bool,
    /// The path after the account, as it was sent; begins with `/`.
    pub(crate) path: String,
    /// The host of the request, with its port.
    pub(crate) host: String,
    /// The parameters, decoded.
    pub(crate) params: Params,
    /// Address of the account: `http://127.0.0.1:10002/acme`, `https://acme.table.example.com`.
    pub(crate) base: String,
    /// The other end of the connection.
    pub(crate) peer: Peer,
    /// Whether the request arrived over HTTP/2, whose frames mark the end of a body.
    pub(crate) is_http2: bool,
}

impl RequestHead {
    /// A parameter of the request; empty where it has none.
    pub(crate) fn param(&self, name: &str) -> String {
        self.params.get(name).unwrap_or_default().to_owned()
    }

    /// Parses the head of a request to `service`, such as `table`; its headers are moved.
    ///
    /// # Errors
    /// A head that is too large, an invalid address, query or version, or a repeated header; the
    /// request is unchanged.
    pub(crate) fn take(request: &mut Request, service: &str) -> Result<Self, Fault> {
        let (uri, headers) = (request.uri(), request.headers());
        check_size(uri, headers)?;
        let peer = Peer::of(request.extensions());
        let host = host(uri, headers, request.version())?;
        let unnamed = || {
            let rule = "must name an account, as the first segment of the path or of the host";
            let rule = format!("{rule}: value=`{}`", quoted(uri.path()));
            Fault::violation(Reason::InvalidUri, "path", rule)
        };
        let address = Address::of(uri.path(), host, service).ok_or_else(unnamed)?;
        let account = AccountName::parse(&address.account).ok_or_else(unnamed)?;
        check_single(headers)?;
        check_version(headers)?;
        let scheme = if peer.tls.is_some() { "https" } else { "http" };
        let mut base = format!("{scheme}://{host}");
        if address.is_in_path {
            base.push('/');
            base.push_str(account.as_str());
        }
        // The query of a page is for its scripts.
        let query = uri.query().filter(|_| !address.is_website).unwrap_or_default();
        Ok(Self {
            method: request.method().clone(),
            account,
            is_secondary: address.is_secondary,
            is_website: address.is_website,
            is_account_in_path: address.is_in_path,
            path: address.path.to_owned(),
            host: host.to_owned(),
            params: Params::parse(query)?,
            base,
            peer,
            is_http2: request.version() == Version::HTTP_2,
            uri: uri.clone(),
            headers: std::mem::take(request.headers_mut()),
        })
    }

    /// Whether a page calls the development account.
    pub(crate) fn is_development_page(&self) -> bool {
        self.headers.contains_key(header::ORIGIN)
            && self.method != Method::OPTIONS
            && self.account.is_development()
    }

    /// A header as text.
    pub(crate) fn header(&self, name: impl header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The host of a request, with its port. Only before HTTP/1.1 it is optional.
fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap, version: Version) -> Result<&'a str, Fault> {
    let named = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let named = named.filter(|host| !host.is_empty());
    let early = (version < Version::HTTP_11).then_some("localhost");
    let host = uri.authority().map(http::uri::Authority::as_str).or(named).or(early);
    host.ok_or_else(|| Fault::violation(Reason::MissingRequiredHeader, "Host", "required"))
}

/// Rejects a head beyond [`HEAD_BYTES_MAX`], with the error for its largest part.
fn check_size(uri: &Uri, headers: &HeaderMap) -> Result<(), Fault> {
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
    let sizes = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    let headers: usize = sizes.sum();
    if target + headers <= HEAD_BYTES_MAX {
        return Ok(());
    }
    let rule = format!("address and headers must have at most {HEAD_BYTES_MAX} bytes together");
    let rule = format!("{rule}: address=`{target}`, headers=`{headers}`");
    let (reason, field) = match target > headers {
        true => (Reason::InvalidUri, "path"),
        false => (Reason::InvalidHeaderValue, "headers"),
    };
    Err(Fault::violation(reason, field, rule))
}

/// Rejects a header of [`SINGLE`] that is repeated: it would be ambiguous which value applies and
/// which one was signed.
fn check_single(headers: &HeaderMap) -> Result<(), Fault> {
    let is_repeated = |name: &&HeaderName| headers.get_all(*name).iter().nth(1).is_some();
    match SINGLE.iter().find(is_repeated) {
        None => Ok(()),
        Some(name) => {
            let rule = "must not be repeated";
            Err(Fault::violation(Reason::InvalidHeaderValue, name.as_str(), rule))
        }
    }
}

fn check_version(headers: &HeaderMap) -> Result<(), Fault> {
    let Some(value) = headers.get(VERSION) else {
        return Ok(());
    };
    if value.to_str().is_ok_and(version::is_version) {
        return Ok(());
    }
    let value = String::from_utf8_lossy(value.as_bytes());
    let rule = format!("must be a date, as in 2026-10-06: value=`{}`", quoted(&value));
    Err(Fault::violation(Reason::InvalidHeaderValue, "x-ms-version", rule))
}

#[cfg(test)]
mod tests;
