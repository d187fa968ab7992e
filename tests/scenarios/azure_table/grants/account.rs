//! What signatures over an account allow.

use super::*;

/// An operation: target, request, resource types, and permissions, of which it needs one of
/// each group.
type Operation = (&'static str, RestRequest, &'static str, &'static [&'static str]);

/// Every operation, in an order in which each succeeds.
fn operations() -> Vec<Operation> {
    let body = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let properties = RestRequest::table("PUT", "")
        .with("content-type", "application/xml")
        .body("<StorageServiceProperties />");
    let change = |method: &str| RestRequest::json(method, "", "{}").with("if-match", "*");
    vec![
        (PROPERTIES, RestRequest::table("GET", ""), "s", &["r"]),
        (PROPERTIES, properties, "s", &["w"]),
        ("/Tables", RestRequest::json("POST", "", r#"{"TableName":"tab"}"#), "c", &["cw"]),
        ("/Tables", RestRequest::table("GET", ""), "sc", &["l"]),
        ("/tab", RestRequest::json("POST", "", body), "o", &["a"]),
        (AT, RestRequest::table("GET", ""), "o", &["r"]),
        ("/tab()", RestRequest::table("GET", ""), "o", &["r"]),
        (AT, change("PUT"), "o", &["u"]),
        (AT, change("PATCH"), "o", &["u"]),
        (AT, RestRequest::json("PUT", "", "{}"), "o", &["a", "u"]),
        (AT, RestRequest::json("MERGE", "", "{}"), "o", &["a", "u"]),
        (AT, RestRequest::table("DELETE", "").with("if-match", "*"), "o", &["d"]),
        ("/Tables('tab')", RestRequest::table("DELETE", ""), "c", &["d"]),
    ]
}

#[tokio::test]
async fn account_sas_allows_operations_by_resource_type_and_permission() {
    let rest = Rest::start();
    let all = "rwdlacu";
    for (target, request, types, groups) in operations() {
        let without = |letters: &str| -> String {
            all.chars().filter(|letter| !letters.contains(*letter)).collect()
        };
        for group in groups {
            let token = of_account("t", "sco", &without(group));
            let response = with(&rest, &token, target, request.clone()).await;
            assert_eq!(response.failure(), PERMISSION, "{group} {request:?}");
        }
        let others: String = "sco".chars().filter(|kind| !types.contains(*kind)).collect();
        let response = with(&rest, &of_account("t", &others, all), target, request.clone()).await;
        assert_eq!(response.failure(), (403, "AuthorizationResourceTypeMismatch"), "{request:?}");
        let response = with(&rest, &of_account("q", "sco", all), target, request.clone()).await;
        assert_eq!(response.failure(), (403, "AuthorizationServiceMismatch"), "{request:?}");

        // One permission of each group and one type suffice.
        let letters: String = groups.iter().map(|group| &group[..1]).collect();
        let token = of_account("t", &types[..1], &letters);
        let response = with(&rest, &token, target, request.clone()).await;
        assert!(response.status < 300, "{letters} {request:?}: {response:?}");
    }
    rest.table("tab").await;
    for method in ["GET", "PUT"] {
        let token = of_account("t", "sco", all);
        let response = with(&rest, &token, "/tab?comp=acl", RestRequest::table(method, "")).await;
        assert_eq!(response.failure(), (403, "AuthorizationFailure"), "{method}");
    }
}
