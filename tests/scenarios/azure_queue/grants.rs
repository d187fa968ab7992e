//! What shared access signatures allow by REST.

mod account;
mod policies;

use trestle_identity::sas::{AddressRange, Protocol, Scope, Terms};
use trestle_tests::{
    QueueRest, RestRequest, RestResponse, over_account, terms, terms_by_policy, token,
};

/// A token for the messages of `orders`.
fn of_queue(permissions: &str) -> String {
    token(terms(Scope::of_queue("orders"), permissions))
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
