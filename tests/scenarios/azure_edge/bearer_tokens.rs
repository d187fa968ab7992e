//! Bearer tokens by REST: the account is in the address, and callers without a valid token are challenged.

use trestle_tests::{RestRequest, RestResponse, exchange};

use crate::bearer::{Corp, ISSUER};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_accepts_tokens_and_challenges_callers_without_a_valid_one() {
    let corp = Corp::new();
    let server = corp.server();
    let (blobs, queues, tables) =
        ["azure_blob", "azure_queue", "azure_table"].map(|name| server.address(name)).into();
    let send = async |address: &str, request: RestRequest, role: &str| {
        let token = corp.issuer.token(role, 600);
        let request = request.scheme(None).with("authorization", &format!("Bearer {token}"));
        exchange(address, request).await
    };
    let container = || RestRequest::blob("PUT", "").at("/acme/files?restype=container");
    let queue = || RestRequest::queue("PUT", "").at("/acme/jobs");
    let table = || RestRequest::json("POST", "", r#"{"TableName":"Orders"}"#).at("/acme/Tables");
    for (address, request) in [(&blobs, container()), (&queues, queue()), (&tables, table())] {
        let answer = send(address, request, "reader").await;
        assert_eq!(answer.failure(), (403, "AuthorizationPermissionMismatch"));
    }
    assert_eq!(send(&blobs, container(), "contributor").await.status, 201);
    assert_eq!(send(&queues, queue(), "contributor").await.status, 201);
    assert_eq!(send(&tables, table(), "contributor").await.status, 201);
    let list = || RestRequest::table("GET", "").at("/acme/Tables");
    assert_eq!(send(&tables, list(), "reader").await.status, 200);
    let other = RestRequest::table("GET", "").at("/other/Tables");
    assert_eq!(send(&tables, other, "owner").await.failure(), (403, "AuthorizationFailure"));

    let challenged = |answer: &RestResponse, code: &str| {
        assert_eq!(answer.failure(), (401, code));
        let challenge = format!("Bearer authorization_uri={ISSUER} resource_id=trestle");
        assert_eq!(answer.header("www-authenticate"), challenge);
    };
    let invalid = list().scheme(None).with("authorization", "Bearer a.b.c");
    challenged(&exchange(&tables, invalid).await, "InvalidAuthenticationInfo");
    let without = list().scheme(None);
    challenged(&exchange(&tables, without).await, "NoAuthenticationInformation");
}
