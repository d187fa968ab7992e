//! What a stored access policy grants.

use super::*;

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
