//! What shared access signatures allow by REST.

use trestle_identity::sas::{AddressRange, Protocol, Scope, Terms};
use trestle_tests::{
    QueueRest, RestRequest, RestResponse, over_account, terms, terms_by_policy, token,
};

/// A token for the messages of `orders`.
fn of_queue(permissions: &str) -> String {
    token(terms(Scope::of_queue("orders"), permissions))
}

/// A token for the account.
fn of_account(services: &str, resource_types: &str, permissions: &str) -> String {
    token(terms(over_account(services, resource_types), permissions))
}

/// Sends a request with a token and no other credentials, with a body if it needs one.
async fn with(rest: &QueueRest, token: &str, method: &str, target: &str) -> RestResponse {
    let separator = if target.contains('?') { '&' } else { '?' };
    let target = format!("{target}{separator}{token}");
    let request = if method == "POST" {
        RestRequest::message(method, &target, "text")
    } else {
        RestRequest::queue(method, &target)
    };
    rest.send(request.scheme(None).without("x-ms-version")).await
}

const PERMISSION: (u16, &str) = (403, "AuthorizationPermissionMismatch");
const NEVER: (u16, &str) = (403, "AuthorizationFailure");

#[tokio::test]
async fn queue_sas_allows_only_its_permissions() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    rest.queue("others").await;
    rest.message("orders", "", "first").await;

    let processing = of_queue("p");
    let received = with(&rest, &processing, "GET", "/orders/messages").await;
    assert_eq!((received.status, received.only("MessageText")), (200, "first".into()));
    let peek = "/orders/messages?peekonly=true";
    assert_eq!(with(&rest, &processing, "GET", peek).await.failure(), PERMISSION);
    assert_eq!(with(&rest, &of_queue("r"), "GET", peek).await.status, 200);
    let count = with(&rest, &of_queue("r"), "GET", "/orders?comp=metadata").await;
    assert_eq!(count.header("x-ms-approximate-messages-count"), "1");
    assert_eq!(with(&rest, &of_queue("a"), "POST", "/orders/messages").await.status, 201);
    assert_eq!(
        with(&rest, &of_queue("rup"), "POST", "/orders/messages").await.failure(),
        PERMISSION
    );

    let (id, receipt) = (received.only("MessageId"), received.only("PopReceipt"));
    let held = format!("/orders/messages/{id}?popreceipt={receipt}&visibilitytimeout=60");
    assert_eq!(with(&rest, &of_queue("rap"), "PUT", &held).await.failure(), PERMISSION);
    let updated = with(&rest, &of_queue("u"), "PUT", &held).await;
    assert_eq!(updated.status, 204, "{updated:?}");
    let held = format!("/orders/messages/{id}?popreceipt={}", updated.header("x-ms-popreceipt"));
    assert_eq!(with(&rest, &of_queue("rau"), "DELETE", &held).await.failure(), PERMISSION);
    assert_eq!(with(&rest, &processing, "DELETE", &held).await.status, 204);

    let all = of_queue("raup");
    for (method, target) in [
        ("PUT", "/orders"),
        ("DELETE", "/orders"),
        ("PUT", "/orders?comp=metadata"),
        ("DELETE", "/orders/messages"),
        ("GET", "/orders?comp=acl"),
        ("PUT", "/orders?comp=acl"),
    ] {
        assert_eq!(with(&rest, &all, method, target).await.failure(), NEVER, "{method} {target}");
    }
    // For another queue the signature is invalid.
    let response = with(&rest, &all, "GET", "/others/messages").await;
    assert_eq!(response.failure(), (403, "AuthenticationFailed"));
}

#[tokio::test]
async fn stored_policy_grants_and_revokes_permissions() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let scope = Scope::of_queue("orders");
    let token = token(terms_by_policy(scope, "readers"));
    let set = |permission: &str| {
        let body = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>\
             <Expiry>2090-01-01</Expiry><Permission>{permission}</Permission></AccessPolicy>\
             </SignedIdentifier></SignedIdentifiers>"
        );
        rest.send(RestRequest::xml("PUT", "/orders?comp=acl", body))
    };
    let peek = "/orders/messages?peekonly=true";

    assert_eq!(with(&rest, &token, "GET", peek).await.failure(), (403, "AuthenticationFailed"));
    assert_eq!(set("r").await.status, 204);
    assert_eq!(with(&rest, &token, "GET", peek).await.status, 200);
    assert_eq!(with(&rest, &token, "POST", "/orders/messages").await.failure(), PERMISSION);
    assert_eq!(set("a").await.status, 204);
    assert_eq!(with(&rest, &token, "GET", peek).await.failure(), PERMISSION);
    assert_eq!(with(&rest, &token, "POST", "/orders/messages").await.status, 201);
}

#[tokio::test]
async fn account_sas_allows_operations_by_resource_type_and_permission() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let properties = "/?restype=service&comp=properties";

    for (method, target, resource_type, letter, status) in [
        ("GET", "/?comp=list", "s", "l", 200),
        ("GET", properties, "s", "r", 200),
        ("PUT", "/created", "c", "c", 201),
        ("PUT", "/written", "c", "w", 201),
        ("GET", "/orders?comp=metadata", "c", "r", 200),
        ("PUT", "/orders?comp=metadata", "c", "w", 204),
        ("POST", "/orders/messages", "o", "a", 201),
        ("GET", "/orders/messages", "o", "p", 200),
        ("GET", "/orders/messages?peekonly=true", "o", "r", 200),
        ("DELETE", "/orders/messages", "o", "d", 204),
        ("DELETE", "/written", "c", "d", 204),
    ] {
        let case = format!("{method} {target}");
        let other_types = "sco".replace(resource_type, "");
        let response = with(&rest, &of_account("q", &other_types, letter), method, target).await;
        assert_eq!(response.failure(), (403, "AuthorizationResourceTypeMismatch"), "{case}");
        let response = with(&rest, &of_account("bt", resource_type, letter), method, target).await;
        assert_eq!(response.failure(), (403, "AuthorizationServiceMismatch"), "{case}");
        let others: String = "rwdlacup"
            .chars()
            .filter(|other| !"cw".contains(*other) && !letter.contains(*other))
            .collect();
        let response = with(&rest, &of_account("q", resource_type, &others), method, target).await;
        assert_eq!(response.failure(), PERMISSION, "{case}");
        let response = with(&rest, &of_account("q", resource_type, letter), method, target).await;
        assert_eq!(response.status, status, "{case}: {response:?}");
    }
    let all = of_account("q", "sco", "rwdlacup");
    assert_eq!(with(&rest, &all, "GET", "/orders?comp=acl").await.failure(), NEVER);
}

#[tokio::test]
async fn rejects_an_invalid_sas_token() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let good = of_queue("r");
    let peek = "/orders/messages?peekonly=true";

    assert_eq!(with(&rest, &good, "GET", peek).await.status, 200);
    for (from, to) in [("sp=r", "sp=rp"), ("se=2090", "se=2021")] {
        assert!(good.contains(from), "{from}");
        let response = with(&rest, &good.replace(from, to), "GET", peek).await;
        let (status, code) = response.failure();
        assert_eq!((status, code), (403, "AuthenticationFailed"), "{from}");
        let signature = good.split("sig=").nth(1).unwrap().split('&').next().unwrap();
        assert!(!response.text().contains(signature), "no signature is ever response");
    }
}

#[tokio::test]
async fn stored_policy_is_checked_before_protocol_and_address_and_then_permissions() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let bare = terms_by_policy(Scope::of_queue("orders"), "readers");
    let addresses = Some(AddressRange::parse("10.9.9.9".to_owned()).unwrap());
    let elsewhere = token(Terms { addresses, ..bare.clone() });
    let encrypted = token(Terms { protocol: Some(Protocol::Https), ..bare });
    let targets = [
        ("GET", "/orders/messages?peekonly=true"),
        ("GET", "/orders/messages"),
        ("GET", "/orders?comp=acl"),
    ];

    for (method, target) in targets {
        for token in [&elsewhere, &encrypted] {
            let response = with(&rest, token, method, target).await;
            assert_eq!(response.failure(), (403, "AuthenticationFailed"), "no policy: {target}");
        }
    }
    let body = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>\
                <Expiry>2090-01-01</Expiry><Permission>r</Permission></AccessPolicy>\
                </SignedIdentifier></SignedIdentifiers>";
    assert_eq!(rest.send(RestRequest::xml("PUT", "/orders?comp=acl", body)).await.status, 204);
    let senseless = [
        ("GET", "/orders/messages?peekonly=true&numofmessages=1000"),
        ("GET", "/orders?comp=nothing"),
    ];
    for (method, target) in targets.into_iter().chain(senseless) {
        let response = with(&rest, &elsewhere, method, target).await;
        assert_eq!(response.failure(), (403, "AuthorizationSourceIPMismatch"), "{target}");
        let response = with(&rest, &encrypted, method, target).await;
        assert_eq!(response.failure(), (403, "AuthorizationProtocolMismatch"), "{target}");
    }
}
