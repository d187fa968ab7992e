//! The website of an account: its container `$web` for visitors without credentials.

use trestle_tests::{BlobRest, RestRequest, RestResponse};

const HOST: &str = "devstoreaccount1.web.localhost";

/// Sets the website, as an element of the settings.
async fn set_website(rest: &BlobRest, website: &str) {
    let body = format!(
        "<StorageServiceProperties><StaticWebsite>{website}</StaticWebsite></StorageServiceProperties>"
    );
    let request = RestRequest::blob("PUT", "/?restype=service&comp=properties").body(body);
    let set = rest.send(request).await;
    assert_eq!(set.status, 202, "{set:?}");
}

/// A server with a website: an index document in each folder, and a page for what does not exist.
async fn served() -> BlobRest {
    let rest = BlobRest::start().await;
    let website = "<Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>\
                   <ErrorDocument404Path>errors/404.html</ErrorDocument404Path>";
    set_website(&rest, website).await;
    rest.container("$web").await;
    for (path, content) in [
        ("index.html", "home"),
        ("docs/index.html", "docs"),
        ("errors/404.html", "nothing here"),
        ("a%20b.html", "spaced"),
    ] {
        let request = RestRequest::blob("PUT", &format!("/$web/{path}"));
        let request = request.with("x-ms-blob-type", "BlockBlob").with("x-ms-meta-secret", "1");
        let request = request.with("x-ms-blob-content-type", "text/html").body(content);
        assert_eq!(rest.send(request).await.status, 201);
    }
    rest
}

fn visit(method: &str, path: &str) -> RestRequest {
    RestRequest::blob(method, "").at(path).scheme(None).with("host", HOST)
}

async fn get(rest: &BlobRest, path: &str) -> RestResponse {
    rest.send(visit("GET", path)).await
}

#[tokio::test]
async fn a_website_serves_its_pages_and_index_documents_to_every_visitor() {
    let rest = served().await;
    for (path, content) in [
        ("/", "home"),
        ("/index.html", "home"),
        ("/docs/", "docs"),
        ("/a%20b.html", "spaced"),
        ("/?comp=list&restype=container&snapshot=x&timeout=y", "home"),
    ] {
        let page = get(&rest, path).await;
        assert_eq!((page.status, page.text()), (200, content), "{path}: {page:?}");
        assert_eq!(page.header("content-type"), "text/html");
    }
    let page = get(&rest, "/").await;
    let own = page.headers.keys().filter(|name| name.as_str().starts_with("x-ms-"));
    let own: Vec<_> = own.map(http::HeaderName::as_str).collect();
    assert!(own.iter().all(|name| ["x-ms-version", "x-ms-request-id"].contains(name)), "{own:?}");
    assert_eq!(page.header("cache-control"), "", "it is for the owner to decide");
    let zone = visit("GET", "/docs/").with("host", "devstoreaccount1.z6.web.example.com");
    assert_eq!(rest.send(zone).await.text(), "docs");
    // Credentials change nothing: a page is the same for all.
    let signed = visit("GET", "/").with("authorization", "SharedKey devstoreaccount1:AAAA");
    assert_eq!(rest.send(signed).await.text(), "home");
}

#[tokio::test]
async fn what_does_not_exist_is_the_page_for_it_with_its_status() {
    let rest = served().await;
    for path in ["/none", "/docs", "/none/", "/docs/index.html/"] {
        let page = get(&rest, path).await;
        assert_eq!((page.status, page.text()), (404, "nothing here"), "{path}");
        assert_eq!(page.header("content-type"), "text/html");
        assert_eq!((page.header("etag"), page.header("last-modified")), ("", ""));
    }
    let conditional = visit("GET", "/none").with("if-none-match", "*").with("range", "bytes=0-1");
    let page = rest.send(conditional).await;
    assert_eq!((page.status, page.text()), (404, "nothing here"));
    set_website(&rest, "<Enabled>true</Enabled>").await;
    for path in ["/none", "/", "/docs/"] {
        let page = get(&rest, path).await;
        assert_eq!((page.status, page.header("x-ms-error-code")), (404, "ResourceNotFound"));
        assert!(page.header("content-type").starts_with("text/html"), "{page:?}");
        assert!(page.text().contains("Not Found"), "{page:?}");
    }
    assert_eq!(get(&rest, "/index.html").await.text(), "home");
}

#[tokio::test]
async fn pages_have_versions_ranges_and_heads() {
    let rest = served().await;
    let etag = get(&rest, "/").await.header("etag").to_owned();
    let fresh = rest.send(visit("GET", "/").with("if-none-match", &etag)).await;
    assert_eq!((fresh.status, fresh.text(), fresh.header("etag")), (304, "", etag.as_str()));
    let range = rest.send(visit("GET", "/").with("range", "bytes=1-2")).await;
    assert_eq!((range.status, range.text()), (206, "om"));
    assert_eq!(range.header("content-range"), "bytes 1-2/4");
    let past = rest.send(visit("GET", "/").with("range", "bytes=9-")).await;
    assert_eq!((past.status, past.header("content-range")), (416, "bytes */4"));
    let head = rest.send(visit("HEAD", "/")).await;
    assert_eq!((head.status, head.text(), head.header("content-length")), (200, "", "4"));
    let head = rest.send(visit("HEAD", "/none")).await;
    assert_eq!((head.status, head.text()), (404, ""));
    // Headers of the protocol have no effect here.
    for (name, value) in
        [("x-ms-if-tags", "a"), ("x-ms-lease-id", "x"), ("x-ms-range", "bytes=0-0")]
    {
        assert_eq!(rest.send(visit("GET", "/").with(name, value)).await.text(), "home", "{name}");
    }
}

#[tokio::test]
async fn a_website_is_only_read_and_opens_nothing_else() {
    let rest = served().await;
    for name in ["photos", "public"] {
        let access = if name == "public" { "blob" } else { "" };
        let target = format!("/{name}?restype=container");
        let created = RestRequest::blob("PUT", &target).with("x-ms-blob-public-access", access);
        let created =
            if access.is_empty() { created.without("x-ms-blob-public-access") } else { created };
        assert_eq!(rest.send(created).await.status, 201);
        rest.blob(&format!("/{name}/x"), "other").await;
        for path in [format!("/{name}/x"), format!("/../{name}/x"), format!("/$web/../{name}/x")] {
            assert_eq!(get(&rest, &path).await.status, 404, "{path}");
        }
    }
    for method in ["PUT", "POST", "DELETE", "PATCH"] {
        let failed = rest.send(visit(method, "/index.html").body("x")).await;
        assert_eq!(
            (failed.status, failed.header("allow")),
            (405, "GET, HEAD, OPTIONS"),
            "{method}"
        );
    }
    assert_eq!(get(&rest, "/").await.text(), "home");
    // The container is not open at the address of the protocol.
    let direct = RestRequest::blob("GET", "/$web/index.html").scheme(None);
    assert_eq!(rest.send(direct).await.failure(), (401, "NoAuthenticationInformation"));
}

#[tokio::test]
async fn a_website_that_is_off_looks_like_none() {
    let rest = served().await;
    set_website(&rest, "<Enabled>false</Enabled><IndexDocument>index.html</IndexDocument>").await;
    for method in ["GET", "POST", "PUT"] {
        let off = rest.send(visit(method, "/")).await;
        let none = rest.send(visit(method, "/").with("host", "absent.web.localhost")).await;
        for page in [&off, &none] {
            let found = (page.status, page.header("x-ms-error-code"));
            assert_eq!(found, (404, "ResourceNotFound"), "{method}");
        }
        let without_id =
            |page: &RestResponse| page.text().split(", request").next().map(str::to_owned);
        assert_eq!(without_id(&off), without_id(&none), "{method}");
    }
    set_website(&rest, "<Enabled>true</Enabled><DefaultIndexDocumentPath>docs/index.html</DefaultIndexDocumentPath>")
        .await;
    for path in ["/", "/any/"] {
        assert_eq!(get(&rest, path).await.text(), "docs", "{path}");
    }
}
