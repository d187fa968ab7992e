use http::{Request, request::Builder};
use tonic::body::Body;
use tonic_types::StatusExt as _;

use super::*;

fn head(method: &str, target: &str, headers: &[(&str, &str)]) -> RequestHead {
    let request: Builder = Request::builder().method(method).uri(format!("/acme{target}"));
    let request = request.header("host", "127.0.0.1");
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    RequestHead::take(&mut request.body(Body::empty()).expect("a request"), "blob").expect("a head")
}

fn routed(method: &str, target: &str, headers: &[(&str, &str)]) -> BlobOperation {
    route(&head(method, target, headers)).expect(target)
}

fn code_of(method: &str, target: &str, headers: &[(&str, &str)]) -> String {
    let error = route(&head(method, target, headers)).expect_err(target);
    let details = error.status.get_error_details();
    details.error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

fn on(container: &str, blob: &str, operation: OnBlob) -> BlobOperation {
    let path = BlobPath { container: container.to_owned(), blob: blob.to_owned() };
    BlobOperation::Blob(path, operation)
}

#[test]
fn operations_on_the_account_are_determined_by_their_parameters() {
    for (method, target, operation) in [
        ("GET", "/?comp=list", OnBlobAccount::ListContainers),
        ("GET", "?COMP=List&include=metadata", OnBlobAccount::ListContainers),
        ("GET", "/?comp=blobs&where=x", OnBlobAccount::FindBlobs),
        ("POST", "/?comp=batch", OnBlobAccount::Batch),
        ("GET", "/?restype=service&comp=properties", OnBlobAccount::GetProperties),
        ("PUT", "/?restype=service&comp=properties", OnBlobAccount::SetProperties),
        ("GET", "-secondary/?restype=service&comp=stats", OnBlobAccount::GetStats),
        ("GET", "/?restype=account&comp=properties", OnBlobAccount::GetInformation),
        ("HEAD", "/c/b?restype=account&comp=properties", OnBlobAccount::GetInformation),
    ] {
        let expected = BlobOperation::Account(operation);
        assert_eq!(routed(method, target, &[]), expected, "{method} {target}");
    }
}

#[test]
fn operations_on_a_container_need_its_resource_type() {
    for (method, target, operation) in [
        ("PUT", "", OnContainer::Create),
        ("DELETE", "", OnContainer::Delete),
        ("GET", "", OnContainer::Get),
        ("HEAD", "&comp=metadata", OnContainer::Get),
        ("PUT", "&comp=metadata", OnContainer::SetMetadata),
        ("GET", "&comp=acl", OnContainer::GetPolicies),
        ("PUT", "&comp=acl", OnContainer::SetPolicies),
        ("PUT", "&comp=lease", OnContainer::Lease),
        ("PUT", "&comp=undelete", OnContainer::Undelete),
        ("GET", "&comp=list", OnContainer::ListBlobs),
        ("GET", "&comp=blobs", OnContainer::FindBlobs),
        ("POST", "&comp=batch", OnContainer::Batch),
    ] {
        for path in ["/photos", "/photos/"] {
            let target = format!("{path}?restype=container{target}");
            let expected = BlobOperation::Container("photos".to_owned(), operation);
            assert_eq!(routed(method, &target, &[]), expected, "{method} {target}");
        }
    }
}

#[test]
fn the_write_of_a_blob_is_determined_by_its_headers() {
    let kind = |kind| ("x-ms-blob-type", kind);
    let source = ("x-ms-copy-source", "http://h/acme/c/b");
    for (headers, operation) in [
        (&[kind("BlockBlob")][..], OnBlob::Put(PutKind::Block)),
        (&[kind("AppendBlob")], OnBlob::Put(PutKind::Append)),
        (&[kind("PageBlob")], OnBlob::Put(PutKind::Page)),
        (&[kind("BlockBlob"), source], OnBlob::PutFromUrl),
        (&[source], OnBlob::Copy),
        (&[source, ("x-ms-requires-sync", "True")], OnBlob::Copy),
    ] {
        assert_eq!(routed("PUT", "/c/b", headers), on("c", "b", operation), "{headers:?}");
    }
    assert_eq!(code_of("PUT", "/c/b", &[]), "MISSING_REQUIRED_HEADER");
    for headers in [&[kind("Blob")][..], &[kind("PageBlob"), source]] {
        assert_eq!(code_of("PUT", "/c/b", headers), "INVALID_HEADER_VALUE", "{headers:?}");
    }
}

#[test]
fn operations_on_a_blob_are_determined_by_method_component_and_headers() {
    let source = &[("x-ms-copy-source", "http://h/acme/c/b"), ("x-ms-page-write", "update")][..];
    let none: &[(&str, &str)] = &[];
    for (method, comp, headers, operation) in [
        ("GET", "", none, OnBlob::Get),
        ("HEAD", "", none, OnBlob::GetProperties),
        ("DELETE", "", none, OnBlob::Delete),
        ("HEAD", "metadata", none, OnBlob::GetMetadata),
        ("PUT", "metadata", none, OnBlob::SetMetadata),
        ("PUT", "properties", none, OnBlob::SetProperties),
        ("PUT", "properties", &[("x-ms-blob-content-length", "0")], OnBlob::ResizePages),
        ("PUT", "undelete", none, OnBlob::Undelete),
        ("PUT", "snapshot", none, OnBlob::Snapshot),
        ("PUT", "lease", none, OnBlob::Lease),
        ("PUT", "tier", none, OnBlob::SetTier),
        ("GET", "tags", none, OnBlob::GetTags),
        ("PUT", "tags", none, OnBlob::SetTags),
        ("PUT", "block", none, OnBlob::StageBlock(DataFrom::Body)),
        ("PUT", "block", source, OnBlob::StageBlock(DataFrom::Url)),
        ("PUT", "blocklist", none, OnBlob::CommitBlocks),
        ("GET", "blocklist", none, OnBlob::GetBlockList),
        ("PUT", "appendblock", none, OnBlob::AppendBlock(DataFrom::Body)),
        ("PUT", "seal", none, OnBlob::Seal),
        ("PUT", "page", source, OnBlob::WritePages(DataFrom::Url)),
        ("PUT", "page", &[("x-ms-page-write", "clear")], OnBlob::ClearPages),
        ("GET", "pagelist", none, OnBlob::ListPageRanges),
        ("PUT", "copy", none, OnBlob::AbortCopy),
    ] {
        let target = if comp.is_empty() { "/c/b".to_owned() } else { format!("/c/b?comp={comp}") };
        let expected = on("c", "b", operation);
        assert_eq!(routed(method, &target, headers), expected, "{method} {target}");
    }
}

#[test]
fn the_name_of_a_blob_is_everything_after_the_container() {
    for (target, container, blob) in [
        ("/c/a/b//c/", "c", "a/b//c/"),
        ("/c/%61%2Fb%20c+d", "c", "a/b c+d"),
        ("/c/../x", "c", "../x"),
        ("/name", "$root", "name"),
        ("/$root/name", "$root", "name"),
    ] {
        assert_eq!(routed("GET", target, &[]), on(container, blob, OnBlob::Get), "{target}");
    }
    for target in ["/c/", "/c/%FF", "/c/b?restype=container"] {
        assert_eq!(code_of("GET", target, &[]), "INVALID_URI", "{target}");
    }
}

#[test]
fn a_signature_names_the_decoded_resource() {
    let named = |target: &str| {
        let head = head("GET", target, &[]);
        resource(&head.path, &head.params)
    };
    for (target, name) in [
        ("/c/d%2Fx%20y", "c/d/x y"),
        ("/c?restype=container&comp=list", "c"),
        ("/f.txt", "$root/f.txt"),
        ("/?comp=list", ""),
    ] {
        assert_eq!(named(target).as_deref(), Some(name), "{target}");
    }
    assert_eq!(named("/c/%FF"), None);
}

#[test]
fn other_verbs_components_and_what_is_not_implemented_have_errors_of_their_own() {
    let verb = "UNSUPPORTED_HTTP_VERB";
    let parameter = "INVALID_QUERY_PARAMETER_VALUE";
    for (method, target, code) in [
        ("POST", "/c/b", verb),
        ("POST", "/?comp=list", verb),
        ("PUT", "/c?restype=container&comp=list", verb),
        ("DELETE", "/c/b?comp=lease", verb),
        ("GET", "/", "MISSING_REQUIRED_QUERY_PARAMETER"),
        ("GET", "/?comp=properties", "MISSING_REQUIRED_QUERY_PARAMETER"),
        ("GET", "/?restype=service&comp=stats", parameter),
        ("PUT", "/c/b?comp=nothing", parameter),
        ("PUT", "/c/b?comp=metadata&snapshot=x", parameter),
        ("GET", "/?restype=service&comp=userdelegationkey", verb),
        ("POST", "/c/b?comp=query", "NOT_IMPLEMENTED"),
        ("PUT", "/c/b?comp=Expiry", "NOT_IMPLEMENTED"),
    ] {
        assert_eq!(code_of(method, target, &[]), code, "{method} {target}");
    }
    for name in ["x-ms-encryption-key", "x-ms-expiry-time", "x-ms-legal-hold"] {
        assert_eq!(code_of("PUT", "/c/b", &[(name, "x")]), "UNSUPPORTED_HEADER", "{name}");
    }
}
