//! Determines the operation of a request.

use http::{HeaderName, Method};
use percent_encoding::percent_decode_str;
use trestle_model::fault::{Fault, Reason};

use super::{
    header::{
        BLOB_CONTENT_LENGTH, BLOB_SEQUENCE_NUMBER, BLOB_TYPE, CONTENT_PROPERTIES, COPY_SOURCE,
        PAGE_WRITE, REFUSED, SEQUENCE_NUMBER_ACTION, STRUCTURED_BODY, STRUCTURED_LENGTH,
        TAG_CONDITIONS, invalid, required,
    },
    operation::{BlobOperation, BlobPath, DataFrom, OnBlob, OnBlobAccount, OnContainer, PutKind},
};
use crate::{
    error::RestError,
    head::RequestHead,
    params::Params,
    unrouted::{unknown, unknown_method, unreadable},
};

/// The container of a blob whose path has one segment.
pub(crate) const ROOT: &str = "$root";
/// The encryption of a container for the blobs in it, and its only value here.
const DEFAULT_SCOPE: HeaderName = HeaderName::from_static("x-ms-default-encryption-scope");
const ACCOUNT_SCOPE: &str = "$account-encryption-key";
/// Values of `comp` of operations that are not implemented.
const NOT_IMPLEMENTED: [&str; 6] =
    ["incrementalcopy", "query", "expiry", "immutabilitypolicies", "legalhold", "rename"];

/// The operation of a request.
///
/// # Errors
/// An invalid path, method, parameter or header, or an operation that is not implemented.
pub(super) fn route(head: &RequestHead) -> Result<BlobOperation, RestError> {
    let path = decoded(&head.path).ok_or_else(|| unreadable(&head.path, "must be UTF-8"))?;
    if head.is_website {
        return Ok(BlobOperation::Website(path));
    }
    check_implemented(head)?;
    let operation = of_path(head, &path)?;
    let has_content =
        matches!(&operation, BlobOperation::Blob(_, operation) if operation.has_content());
    let has_tags = matches!(operation, BlobOperation::Blob(_, OnBlob::GetTags | OnBlob::SetTags));
    let structured = [STRUCTURED_BODY, STRUCTURED_LENGTH].into_iter().filter(|_| !has_content);
    let mut others = structured.chain(TAG_CONDITIONS.into_iter().filter(|_| !has_tags));
    match others.find(|name| head.headers.contains_key(name)) {
        None => Ok(operation),
        Some(name) => {
            let rule = "is not supported on this operation";
            Err(Fault::violation(Reason::UnsupportedHeader, name.as_str(), rule).into())
        }
    }
}

/// The operation on the resource at a path.
fn of_path(head: &RequestHead, path: &str) -> Result<BlobOperation, RestError> {
    let params = &head.params;
    if params.is("restype", "account") && params.is("comp", "properties") {
        return match head.method {
            Method::GET | Method::HEAD => Ok(BlobOperation::Account(OnBlobAccount::GetInformation)),
            _ => Err(unknown_method(head)),
        };
    }
    let is_container = params.is("restype", "container");
    match path.split_once('/') {
        None if path.is_empty() => on_account(head).map(BlobOperation::Account),
        None | Some((_, "")) if is_container => {
            let name = path.strip_suffix('/').unwrap_or(path).to_owned();
            on_container(head).map(|operation| BlobOperation::Container(name, operation))
        }
        _ if is_container => {
            Err(unreadable(&head.path, "must be that of a container, with restype=container"))
        }
        Some(("", _)) => Err(unreadable(&head.path, "must have the name of a container")),
        Some((_, "")) => Err(unreadable(&head.path, "must have the name of a blob")),
        named => {
            let (container, blob) = named.unwrap_or((ROOT, path));
            let path = BlobPath { container: container.to_owned(), blob: blob.to_owned() };
            on_blob(head).map(|operation| BlobOperation::Blob(path, operation))
        }
    }
}

/// The path after the account, decoded, without its first `/`.
fn decoded(path: &str) -> Option<String> {
    let path = path.strip_prefix('/').unwrap_or(path);
    percent_decode_str(path).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// The resource of a request as a signature names it: the container, or the container and the blob. None where the
/// path cannot be decoded.
pub(crate) fn resource(path: &str, params: &Params) -> Option<String> {
    let path = decoded(path)?;
    match path.split_once('/') {
        // The `/` at the end of a blob is a part of its name.
        Some((_, blob)) if !blob.is_empty() => Some(path),
        Some((container, _)) => Some(container.to_owned()),
        None if path.is_empty() || params.is("restype", "container") => Some(path),
        None => Some(format!("{ROOT}/{path}")),
    }
}

/// Rejects an operation or a header that would have an effect that this server has not.
fn check_implemented(head: &RequestHead) -> Result<(), RestError> {
    let comp = head.params.get("comp").unwrap_or_default();
    if let Some(name) = NOT_IMPLEMENTED.iter().find(|name| comp.eq_ignore_ascii_case(name)) {
        let message = format!("the operation is not implemented: comp=`{name}`");
        return Err(Fault::new(Reason::NotImplemented, message).into());
    }
    let scope = head.headers.get(DEFAULT_SCOPE).filter(|scope| *scope != ACCOUNT_SCOPE);
    let refused = REFUSED.into_iter().find(|name| head.headers.contains_key(name));
    match refused.or(scope.map(|_| DEFAULT_SCOPE)) {
        None => check_texts(head),
        Some(name) => {
            let rule = "is not supported by this server";
            Err(Fault::violation(Reason::UnsupportedHeader, name.as_str(), rule).into())
        }
    }
}

/// Rejects a header with bytes beyond ASCII, which would count as absent, so that a condition would not apply; metadata
/// has an error of its own.
fn check_texts(head: &RequestHead) -> Result<(), RestError> {
    let is_own = |name: &str| {
        let is_stored = name.starts_with("content-") || name == "cache-control";
        let is_stored = is_stored || name.starts_with("if-") || name == "range";
        is_stored || (name.starts_with("x-ms-") && !name.starts_with("x-ms-meta"))
    };
    let mut named = head.headers.iter().filter(|(name, _)| is_own(name.as_str()));
    match named.find(|(_, value)| value.to_str().is_err()) {
        None => Ok(()),
        Some((name, value)) => {
            let value = String::from_utf8_lossy(value.as_bytes());
            Err(invalid(name, &value, "must be visible ASCII").into())
        }
    }
}

fn on_account(head: &RequestHead) -> Result<OnBlobAccount, RestError> {
    let params = &head.params;
    let comp = params.get("comp").unwrap_or_default().to_ascii_lowercase();
    match comp.as_str() {
        "list" | "blobs" if head.method != Method::GET => Err(unknown_method(head)),
        "list" => Ok(OnBlobAccount::ListContainers),
        "blobs" => Ok(OnBlobAccount::FindBlobs),
        "batch" if head.method == Method::POST => Ok(OnBlobAccount::Batch),
        "batch" => Err(unknown_method(head)),
        "properties" | "stats" | "userdelegationkey" if !params.is("restype", "service") => {
            Err(unknown(params, "restype"))
        }
        "properties" => match head.method {
            Method::GET => Ok(OnBlobAccount::GetProperties),
            Method::PUT => Ok(OnBlobAccount::SetProperties),
            _ => Err(unknown_method(head)),
        },
        "userdelegationkey" if head.method == Method::POST => Ok(OnBlobAccount::GetDelegationKey),
        "userdelegationkey" => Err(unknown_method(head)),
        "stats" if head.method != Method::GET => Err(unknown_method(head)),
        "stats" if !head.is_secondary => {
            let rule = "stats are those of the secondary name of the account";
            let reason = Reason::InvalidQueryParameterValue;
            Err(RestError::of_parameter(reason, "comp", "stats", rule))
        }
        "stats" => Ok(OnBlobAccount::GetStats),
        _ => Err(unknown(params, "comp")),
    }
}

fn on_container(head: &RequestHead) -> Result<OnContainer, RestError> {
    let params = &head.params;
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    let of_write = |operation| match head.method {
        Method::PUT => Ok(operation),
        _ => Err(unknown_method(head)),
    };
    let of_list = |operation| match head.method {
        Method::GET => Ok(operation),
        _ => Err(unknown_method(head)),
    };
    let Some(comp) = params.get("comp").map(str::to_ascii_lowercase) else {
        return match head.method {
            Method::PUT => Ok(OnContainer::Create),
            Method::DELETE => Ok(OnContainer::Delete),
            _ if is_read => Ok(OnContainer::Get),
            _ => Err(unknown_method(head)),
        };
    };
    match comp.as_str() {
        "metadata" if is_read => Ok(OnContainer::Get),
        "metadata" => of_write(OnContainer::SetMetadata),
        "acl" if is_read => Ok(OnContainer::GetPolicies),
        "acl" => of_write(OnContainer::SetPolicies),
        "lease" => of_write(OnContainer::Lease),
        "undelete" => of_write(OnContainer::Undelete),
        "list" => of_list(OnContainer::ListBlobs),
        "blobs" => of_list(OnContainer::FindBlobs),
        "batch" if head.method == Method::POST => Ok(OnContainer::Batch),
        "batch" => Err(unknown_method(head)),
        _ => Err(unknown(params, "comp")),
    }
}

fn on_blob(head: &RequestHead) -> Result<OnBlob, RestError> {
    let params = &head.params;
    let operation = match params.get("comp").map(str::to_ascii_lowercase) {
        None => match head.method {
            Method::PUT => put(head)?,
            Method::GET => OnBlob::Get,
            Method::HEAD => OnBlob::GetProperties,
            Method::DELETE => OnBlob::Delete,
            _ => return Err(unknown_method(head)),
        },
        Some(comp) => part(head, &comp)?,
    };
    let reads_state = operation.target_reads()
        || matches!(operation, OnBlob::Delete | OnBlob::Lease | OnBlob::SetTier);
    for name in ["snapshot", "versionid"] {
        if params.get(name).is_some_and(str::is_empty) {
            let reason = Reason::InvalidQueryParameterValue;
            return Err(RestError::of_parameter(reason, name, "", "must not be empty"));
        }
        if let Some(value) = params.get(name).filter(|_| !reads_state) {
            let rule = "must not be on an operation that changes the blob";
            let reason = Reason::InvalidQueryParameterValue;
            return Err(RestError::of_parameter(reason, name, value, rule));
        }
    }
    Ok(operation)
}

/// The operation on a part of a blob.
fn part(head: &RequestHead, comp: &str) -> Result<OnBlob, RestError> {
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    let is_put = head.method == Method::PUT;
    let operation = match comp {
        "metadata" if is_read => return Ok(OnBlob::GetMetadata),
        "tags" if head.method == Method::GET => return Ok(OnBlob::GetTags),
        "blocklist" if head.method == Method::GET => return Ok(OnBlob::GetBlockList),
        "pagelist" if head.method == Method::GET => return Ok(OnBlob::ListPageRanges),
        "page" if !is_put => return Err(unknown_method(head)),
        "pagelist" => return Err(unknown_method(head)),
        "metadata" => OnBlob::SetMetadata,
        "properties" => set_properties(head),
        "undelete" => OnBlob::Undelete,
        "snapshot" => OnBlob::Snapshot,
        "lease" => OnBlob::Lease,
        "tier" => OnBlob::SetTier,
        "tags" => OnBlob::SetTags,
        "block" => OnBlob::StageBlock(data_from(head)),
        "blocklist" => OnBlob::CommitBlocks,
        "appendblock" => OnBlob::AppendBlock(data_from(head)),
        "seal" => OnBlob::Seal,
        "page" => page(head)?,
        "copy" => OnBlob::AbortCopy,
        _ => return Err(unknown(&head.params, "comp")),
    };
    if is_put { Ok(operation) } else { Err(unknown_method(head)) }
}

/// Put Blob, Put Blob From URL or Copy Blob.
fn put(head: &RequestHead) -> Result<OnBlob, RestError> {
    let kind = match head.header(BLOB_TYPE) {
        None if head.headers.contains_key(COPY_SOURCE) => return Ok(OnBlob::Copy),
        None => {
            return Err(required(&BLOB_TYPE).into());
        }
        Some(text) => match text {
            "BlockBlob" => PutKind::Block,
            "AppendBlob" => PutKind::Append,
            "PageBlob" => PutKind::Page,
            _ => {
                let rule = "must be BlockBlob, AppendBlob or PageBlob";
                return Err(invalid(&BLOB_TYPE, text, rule).into());
            }
        },
    };
    match (kind, data_from(head)) {
        (kind, DataFrom::Body) => Ok(OnBlob::Put(kind)),
        (PutKind::Block, DataFrom::Url) => Ok(OnBlob::PutFromUrl),
        (_, DataFrom::Url) => {
            let text = head.header(BLOB_TYPE).unwrap_or_default();
            Err(invalid(&BLOB_TYPE, text, "must be BlockBlob, with a source").into())
        }
    }
}

fn data_from(head: &RequestHead) -> DataFrom {
    if head.headers.contains_key(COPY_SOURCE) { DataFrom::Url } else { DataFrom::Body }
}

/// Set Blob Properties is about the pages of a blob where it has no HTTP property.
fn set_properties(head: &RequestHead) -> OnBlob {
    let has = |names: &[HeaderName]| names.iter().any(|name| head.headers.contains_key(name));
    let of_pages = [SEQUENCE_NUMBER_ACTION, BLOB_SEQUENCE_NUMBER, BLOB_CONTENT_LENGTH];
    match has(&of_pages) && !has(&CONTENT_PROPERTIES) {
        true => OnBlob::ResizePages,
        false => OnBlob::SetProperties,
    }
}

fn page(head: &RequestHead) -> Result<OnBlob, RestError> {
    let text = head.header(PAGE_WRITE).unwrap_or_default();
    match text.to_ascii_lowercase().as_str() {
        "update" => Ok(OnBlob::WritePages(data_from(head))),
        "clear" => Ok(OnBlob::ClearPages),
        "" => Err(required(&PAGE_WRITE).into()),
        _ => Err(invalid(&PAGE_WRITE, text, "must be update or clear").into()),
    }
}

#[cfg(test)]
mod tests;
