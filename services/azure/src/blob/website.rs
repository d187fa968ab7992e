//! The website of an account: what is in its container `$web`, for visitors without credentials.
//!
//! A visitor reads nothing but that, whatever the request states: it is read with a grant of its own.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use tonic::body::Body;
use trestle_identity::{
    caller::{AccountGrant, Authority, Caller, Letters, ResourceGrant},
    spec::BLOB,
};
use trestle_model::fault::{Fault, Reason};
use trestle_proto::blob::v1 as proto;

use super::{
    operation::{BlobPath, OnBlobAccount},
    read,
};
use crate::{
    error::{ErrorResponse, RestError},
    grpc_call::GrpcCall,
    head::RequestHead,
    reply,
    unrouted::unknown_method,
};

/// The container of the website.
const CONTAINER: &str = "$web";
/// The headers of a visitor that have an effect.
const READ_HEADERS: [HeaderName; 6] = [
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
    header::RANGE,
];

/// Serves the page at a path, which has no `/` at first.
///
/// # Errors
/// No website, a method that does not read, no page at the path, malformed conditions, or a failed call.
pub(super) async fn serve(
    path: &str,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let site = settings(head, &call).await?;
    let site = site.filter(|site| site.enabled).ok_or_else(|| {
        Fault::new(Reason::ResourceNotFound, "there is no website at this address")
    })?;
    // After it: an account without a website looks like none.
    if !matches!(head.method, Method::GET | Method::HEAD) {
        let methods = HeaderValue::from_static("GET, HEAD, OPTIONS");
        return Err(unknown_method(head).with_header(header::ALLOW, methods));
    }
    let again = call.again();
    let found = match document(path, &site) {
        Some(name) => read_page(name, &of_visitor(head, true), call).await,
        None => Err(no_page().into()),
    };
    match found {
        Err(error) if is_absent(&error) && !site.error_document_404_path.is_empty() => {
            error_document(site.error_document_404_path, head, again).await
        }
        Err(error) if is_absent(&error) => Err(no_page().into()),
        other => other,
    }
}

/// The name of the blob at a path; none for a folder without an index document.
fn document(path: &str, site: &proto::StaticWebsite) -> Option<String> {
    if !(path.is_empty() || path.ends_with('/')) {
        return Some(path.to_owned());
    }
    if !site.index_document.is_empty() {
        return Some(format!("{path}{}", site.index_document));
    }
    let of_all = &site.default_index_document_path;
    (!of_all.is_empty()).then(|| of_all.clone())
}

/// The settings of the website.
async fn settings(
    head: &RequestHead,
    call: &GrpcCall,
) -> Result<Option<proto::StaticWebsite>, RestError> {
    let grant = AccountGrant {
        services: letters(&BLOB.letter.to_string()),
        resource_types: letters("s"),
        permissions: letters("r"),
    };
    let call = acting(call.again(), head, Authority::Account(grant));
    let request = proto::GetServicePropertiesRequest {};
    let path = OnBlobAccount::GetProperties.path();
    let found: proto::GetServicePropertiesResponse = call.unary(path, &request).await?;
    Ok(found.static_website)
}

/// Reads a blob of the website.
async fn read_page(
    blob: String,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    let grant = ResourceGrant {
        permissions: Some(letters("r")),
        ..ResourceGrant::new(&BLOB, "c", CONTAINER)
    };
    let call = acting(call, head, Authority::Resource(grant));
    let path = BlobPath { container: CONTAINER.to_owned(), blob };
    let mut answer = match head.method {
        Method::HEAD => read::properties(path, head, call).await?,
        _ => read::get(path, head, call).await?,
    };
    // What describes a blob for the clients of the protocol, its metadata among it, is not for visitors.
    let headers = answer.headers_mut();
    let own: Vec<_> =
        headers.keys().filter(|name| name.as_str().starts_with("x-ms-")).cloned().collect();
    for name in own {
        headers.remove(name);
    }
    Ok(answer)
}

/// The page for what does not exist. It has no version: a visitor who kept that could take it for one of the page that
/// is there later.
async fn error_document(
    blob: String,
    head: &RequestHead,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    match read_page(blob, &of_visitor(head, false), call).await {
        Err(error) if is_absent(&error) => Err(no_page().into()),
        Err(error) => Err(error),
        Ok(mut answer) => {
            *answer.status_mut() = StatusCode::NOT_FOUND;
            let headers = answer.headers_mut();
            for name in [header::ETAG, header::LAST_MODIFIED, header::ACCEPT_RANGES] {
                headers.remove(name);
            }
            Ok(answer)
        }
    }
}

/// The head of a request with the headers that have an effect for a visitor; with none of them, for a whole page
/// without a condition.
fn of_visitor(head: &RequestHead, has_effect: bool) -> RequestHead {
    let mut visitor = head.clone();
    visitor.headers.clear();
    for name in READ_HEADERS.into_iter().filter(|_| has_effect) {
        if let Some(value) = head.headers.get(&name) {
            visitor.headers.insert(name, value.clone());
        }
    }
    visitor
}

/// A call with a grant of this module, for a caller that has none.
fn acting(mut call: GrpcCall, head: &RequestHead, authority: Authority) -> GrpcCall {
    Arc::new(Caller::new(head.account.clone(), authority)).replace(&mut call.extensions);
    call
}

fn letters(text: &str) -> Letters {
    Letters::parse(text).unwrap_or_default()
}

fn is_absent(error: &RestError) -> bool {
    let reasons = [Reason::ResourceNotFound, Reason::BlobNotFound, Reason::ContainerNotFound];
    reasons.into_iter().any(|reason| error.is(reason))
}

fn no_page() -> Fault {
    Fault::new(Reason::ResourceNotFound, "the website has no page at this path")
}

/// An error as a page. It repeats nothing of the request.
pub(super) fn error_page(response: &ErrorResponse) -> Response<Body> {
    let reason = response.status.canonical_reason().unwrap_or_default();
    let (code, id) = (&response.code, &response.request_id);
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{reason}</title>\
         </head>\n<body><h1>{reason}</h1><p>{code}, request {id}</p></body></html>\n",
    );
    reply::whole(StatusCode::OK, "text/html; charset=utf-8", page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(index: &str, of_all: &str) -> proto::StaticWebsite {
        proto::StaticWebsite {
            enabled: true,
            index_document: index.to_owned(),
            default_index_document_path: of_all.to_owned(),
            ..proto::StaticWebsite::default()
        }
    }

    #[test]
    fn a_folder_is_served_by_its_index_document_and_a_page_by_its_name() {
        for (path, index, of_all, expected) in [
            ("", "index.html", "", Some("index.html")),
            ("a/", "index.html", "", Some("a/index.html")),
            ("a", "index.html", "", Some("a")),
            ("a/b.css", "index.html", "", Some("a/b.css")),
            ("", "", "app/main.html", Some("app/main.html")),
            ("a/", "", "app/main.html", Some("app/main.html")),
            ("a", "", "app/main.html", Some("a")),
            ("a/", "", "", None),
        ] {
            let found = document(path, &site(index, of_all));
            assert_eq!(found.as_deref(), expected, "{path}: {index}, {of_all}");
        }
    }

    #[test]
    fn only_headers_of_reads_have_an_effect() {
        let sent = crate::blob::fixture::head(
            "/x",
            &[("if-match", "\"a\""), ("x-ms-if-tags", "a"), ("x-ms-range", "bytes=0-1")],
        );
        let kept = |has_effect| of_visitor(&sent, has_effect).headers;
        assert_eq!(kept(true).keys().collect::<Vec<_>>(), [header::IF_MATCH]);
        assert!(kept(false).is_empty());
    }
}
