//! The source of a copy: a URL in a header, of a blob of the account or of another server.

use std::sync::Arc;

use http::{Uri, uri::PathAndQuery};
use trestle_identity::{caller::Caller, credentials::Identity, spec::BLOB};
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::COPY_SOURCE_BYTES_MAX;
use trestle_proto::blob::v1 as proto;

use super::{
    header::{self as names, COPY_SOURCE, SOURCE_CRC64, SOURCE_MD5},
    route,
};
use crate::{
    address::Address, auth, error::RestError, grpc_call::GrpcCall, head::RequestHead,
    params::Params,
};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SourceUrl {
    /// A blob of the account.
    pub(super) blob: Option<proto::BlobSource>,
    /// A URL that is no blob of the account at this address; empty otherwise.
    pub(super) url: String,
    /// How the client names the source, without the signature in it.
    pub(super) text: String,
}

impl SourceUrl {
    /// The source of a request.
    ///
    /// # Errors
    /// No source, or one that is no URL.
    pub(super) fn of(head: &RequestHead) -> Result<Self, Fault> {
        let url = names::text(head, &COPY_SOURCE).ok_or_else(|| names::required(&COPY_SOURCE))?;
        let uri = parsed(url)?;
        let text = without_signature(&uri);
        match of_account(&uri, head) {
            Some(blob) => Ok(Self { blob: Some(blob), url: String::new(), text }),
            None => Ok(Self { blob: None, url: url.to_owned(), text }),
        }
    }

    /// The call on behalf of a request that copies: if the URL of the source has a signature, that decides about the
    /// read of the source.
    ///
    /// # Errors
    /// An invalid signature.
    pub(super) fn authorized(
        call: GrpcCall,
        head: &RequestHead,
        identity: &Identity,
    ) -> Result<GrpcCall, RestError> {
        let Some(uri) = names::text(head, &COPY_SOURCE).and_then(|url| parsed(url).ok()) else {
            return Ok(call);
        };
        let Some(address) = own_address(&uri, head) else { return Ok(call) };
        let url = auth::SignedUrl { path: address.path, query: uri.query().unwrap_or_default() };
        let source = auth::of_source(url, head, &BLOB, identity).map_err(|fault| {
            let message = format!("the signature of the copy source: {}", fault.message);
            Fault::new(Reason::AuthorizationFailure, message)
        })?;
        let caller = Caller::in_process(&call.extensions);
        match caller.zip(source) {
            None => Ok(call),
            Some((caller, source)) => Ok(call.for_caller(Arc::new(caller.with_source(source)))),
        }
    }

    /// The checksums of the source that a request states.
    ///
    /// # Errors
    /// A malformed one.
    pub(super) fn checksums(head: &RequestHead) -> Result<proto::UploadFinish, Fault> {
        Ok(proto::UploadFinish {
            md5: names::md5(head, &SOURCE_MD5)?.into(),
            crc64: names::crc64(head, &SOURCE_CRC64)?,
            size: None,
        })
    }
}

/// The URL of a source, without a fragment.
fn parsed(url: &str) -> Result<Uri, Fault> {
    // The value may have a signature, so the error does not repeat it.
    if url.len() > COPY_SOURCE_BYTES_MAX {
        let rule =
            format!("must have at most {COPY_SOURCE_BYTES_MAX} bytes: bytes=`{}`", url.len());
        return Err(Fault::violation(Reason::InvalidHeaderValue, COPY_SOURCE.as_str(), rule));
    }
    let uri: Option<Uri> = url.parse().ok();
    let uri = uri.filter(|uri| uri.scheme().is_some() && uri.host().is_some());
    let rule = "must be a URL with a scheme and a host";
    uri.ok_or_else(|| Fault::violation(Reason::InvalidHeaderValue, COPY_SOURCE.as_str(), rule))
}

/// The address in a URL, if it is one of the account of the request at the address of the request.
fn own_address<'a>(uri: &'a Uri, head: &RequestHead) -> Option<Address<'a>> {
    let host = uri.authority()?.as_str();
    if !host.eq_ignore_ascii_case(&head.host) {
        return None;
    }
    let address = Address::of(uri.path(), host, "blob")?;
    (address.account == head.account.as_str()).then_some(address)
}

/// The blob of a URL, if it is one of the account of the request at the address of the request.
fn of_account(uri: &Uri, head: &RequestHead) -> Option<proto::BlobSource> {
    let address = own_address(uri, head)?;
    let params = Params::parse(uri.query().unwrap_or_default()).ok()?;
    let resource = route::resource(address.path, &params)?;
    let (container, blob) = resource.split_once('/')?;
    let param = |name| params.get(name).unwrap_or_default().to_owned();
    Some(proto::BlobSource {
        container: container.to_owned(),
        blob: blob.to_owned(),
        snapshot: param("snapshot"),
        version_id: param("versionid"),
    })
}

/// A URL with those parameters only that name a state of a blob.
fn without_signature(uri: &Uri) -> String {
    let query = uri.query().unwrap_or_default();
    let named = query.split('&').filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        name.eq_ignore_ascii_case("snapshot") || name.eq_ignore_ascii_case("versionid")
    });
    let query = named.collect::<Vec<_>>().join("&");
    let path = uri.path();
    let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = path.parse::<PathAndQuery>().ok();
    Uri::from_parts(parts).map(|uri| uri.to_string()).unwrap_or_default()
}
