//! What signatures over an account allow.

use super::*;

/// A token for the account.
fn of_account(services: &str, resource_types: &str, permissions: &str) -> String {
    token(terms(over_account(services, resource_types), permissions))
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
