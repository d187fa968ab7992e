//! Requests signed with a key of the account, in every way in which clients sign them.

use trestle_identity::shared_key::Scheme;
use trestle_tests::{QueueRest, RestRequest};

#[tokio::test]
async fn accepts_shared_key_and_lite_in_either_header_order() {
    let rest = QueueRest::start().await;
    let tagged = |name: &str| {
        RestRequest::queue("PUT", &format!("/{name}"))
            .with("x-ms-meta-tag_x", "1")
            .with("x-ms-meta-tag1", "2")
            .with("x-ms-meta", "{'tag_x': '1'}")
    };

    assert_eq!(rest.send(tagged("by-bytes")).await.status, 201);
    // In byte order digits sort before `_`; in word order after it.
    let swapped = |text: String| {
        text.replace(
            "x-ms-meta-tag1:2\nx-ms-meta-tag_x:1\n",
            "x-ms-meta-tag_x:1\nx-ms-meta-tag1:2\n",
        )
    };
    let request = tagged("as-people").signed_otherwise(rest.address(), swapped);
    assert_eq!(rest.send(request).await.status, 201);
    let lite = RestRequest::queue("PUT", "/lite?timeout=30").scheme(Some(Scheme::Lite));
    assert_eq!(rest.send(lite).await.status, 201);
    let dated = RestRequest::queue("GET", "/?comp=list").with("accept", "application/xml");
    assert_eq!(rest.send(dated).await.all("Name"), ["as-people", "by-bytes", "lite"]);
}

#[tokio::test]
async fn content_length_of_zero_is_signed_by_version() {
    let rest = QueueRest::start().await;
    let old = || RestRequest::queue("PUT", "/orders").with("x-ms-version", "2014-02-14");

    assert_eq!(rest.send(old()).await.status, 201);
    let without = |text: String| text.replacen("PUT\n\n\n0\n", "PUT\n\n\n\n", 1);
    let response = rest.send(old().signed_otherwise(rest.address(), without)).await;
    assert_eq!(response.failure(), (403, "AuthenticationFailed"));
}

#[tokio::test]
async fn secondary_is_signed_with_or_without_its_suffix() {
    let rest = QueueRest::start().await;
    let request = || RestRequest::queue("GET", "").at("/devstoreaccount1-secondary/?comp=list");
    let resource = "\n/devstoreaccount1/devstoreaccount1-secondary/\n";

    assert_eq!(rest.send(request()).await.status, 200);
    for other in [
        "\n/devstoreaccount1/devstoreaccount1/\n",
        "\n/devstoreaccount1-secondary/devstoreaccount1-secondary/\n",
    ] {
        let request =
            request().signed_otherwise(rest.address(), |text| text.replace(resource, other));
        assert_eq!(rest.send(request).await.status, 200, "{other}");
    }
}

#[tokio::test]
async fn account_is_parsed_from_the_host() {
    let rest = QueueRest::start().await;
    let hosted = |method: &str, target: &str| {
        RestRequest::queue(method, "")
            .at(target)
            .with("host", "devstoreaccount1.queue.localhost:10001")
    };

    assert_eq!(rest.send(hosted("PUT", "/orders")).await.status, 201);
    let listed = rest.send(hosted("GET", "/?comp=list")).await;
    assert_eq!(listed.all("Name"), ["orders"]);
    let endpoint = "ServiceEndpoint=\"http://devstoreaccount1.queue.localhost:10001";
    assert!(listed.text().contains(endpoint), "{listed:?}");
}

#[tokio::test]
async fn rejects_invalid_shared_key_signatures() {
    let rest = QueueRest::start().await;
    let request = || RestRequest::queue("GET", "/?comp=list");
    let rejected = |request: RestRequest| rest.send(request);

    let none = rejected(request().scheme(None)).await;
    assert_eq!(none.failure(), (401, "NoAuthenticationInformation"));
    assert_eq!(none.header("www-authenticate"), "SharedKey");
    let old = rejected(request().with("x-ms-date", "Fri, 21 Nov 2025 12:00:00 GMT")).await;
    assert_eq!(old.failure(), (403, "AuthenticationFailed"));
    for change in [
        (|text: String| text.replace("comp:list", "comp:acl")) as fn(String) -> String,
        |text| text.replace("x-ms-version", "x-ms-versions"),
        |text| text.replace("GET", "PUT"),
        |text| text.to_uppercase(),
    ] {
        let response = rejected(request().signed_otherwise(rest.address(), change)).await;
        assert_eq!(response.failure(), (403, "AuthenticationFailed"));
    }
    for value in ["SharedKey", "SharedKey devstoreaccount1", "Basic abc", "Bearer abc", ""] {
        let response = rejected(request().scheme(None).with("authorization", value)).await;
        assert_eq!(response.failure(), (400, "InvalidAuthenticationInfo"), "{value}");
    }
    for value in ["SharedKey devstoreaccount1:abc", "SharedKey absent:QUJD"] {
        let response = rejected(request().scheme(None).with("authorization", value)).await;
        assert_eq!(response.failure(), (403, "AuthenticationFailed"), "{value}");
    }
}
