//! Access policies, service properties and stats.

use trestle_tests::{Rest, RestRequest, over_account, terms, token};

const POLICIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>\
    <SignedIdentifier><Id>policy1</Id><AccessPolicy><Start>2026-01-01T00:00:00Z</Start>\
    <Expiry>2026-02-01T00:00:00.1Z</Expiry><Permission>raud</Permission></AccessPolicy>\
    </SignedIdentifier></SignedIdentifiers>";

fn xml(method: &str, target: &str, body: &str) -> RestRequest {
    RestRequest::table(method, target)
        .with("accept", "application/xml")
        .with("content-type", "application/xml")
        .body(body)
}

#[tokio::test]
async fn access_policies_are_set_returned_and_cleared() {
    let rest = Rest::start();
    let response = rest.send(xml("GET", "/tab?comp=acl", "")).await;
    assert_eq!(response.failure(), (404, "TableNotFound"));
    assert_eq!(response.header("content-type"), "application/xml");
    rest.table("tab").await;

    assert_eq!(rest.send(xml("PUT", "/tab?comp=acl", POLICIES)).await.status, 204);
    let response = rest.send(xml("GET", "/TAB?comp=acl", "")).await;
    assert_eq!(response.status, 200);
    let terms = "<Start>2026-01-01T00:00:00.0000000Z</Start>\
        <Expiry>2026-02-01T00:00:00.1000000Z</Expiry><Permission>raud</Permission>";
    assert!(response.text().contains(terms), "{response:?}");
    assert_eq!(rest.send(xml("PUT", "/tab?comp=acl", "")).await.status, 204);
    let response = rest.send(xml("GET", "/tab?comp=acl", "")).await;
    assert!(response.text().contains("<SignedIdentifiers />"), "{response:?}");
    let response = rest.send(xml("PUT", "/tab?comp=acl", &POLICIES.replace("raud", "dr"))).await;
    assert_eq!(response.failure(), (400, "InvalidXmlDocument"));
}

#[tokio::test]
async fn access_policies_have_the_limits_of_the_service() {
    let rest = Rest::start();
    rest.table("tab").await;
    let set = |inside: &str| {
        let body = format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
        rest.send(xml("PUT", "/tab?comp=acl", &body))
    };
    let with = |id: &str, terms: &str| {
        format!("<SignedIdentifier><Id>{id}</Id>{terms}</SignedIdentifier>")
    };
    let policy = |terms: &str| with("a", &format!("<AccessPolicy>{terms}</AccessPolicy>"));
    let numbered =
        |count: usize| -> String { (0..count).map(|at| with(&at.to_string(), "")).collect() };
    for inside in [
        numbered(5),
        with(&"x".repeat(64), ""),
        policy(""),
        policy("<Start></Start><Expiry /><Permission></Permission>"),
        policy("<Start>2026-01-31</Start><Expiry>2026-01-31T08:00Z</Expiry>"),
        policy("<Start>2026-01-31T08:00:00Z</Start><Permission>ad</Permission>"),
        policy("<Expiry>2026-01-31T08:00:00.1234567Z</Expiry>"),
        String::new(),
    ] {
        let response = set(&inside).await;
        assert_eq!((response.status, response.text()), (204, ""), "{inside}");
    }
    for inside in [
        numbered(6),
        with(&"x".repeat(65), ""),
        with("", ""),
        [with("a", ""), with("a", "")].concat(),
        policy("<Permission>ar</Permission>"),
        policy("<Permission>rr</Permission>"),
        policy("<Permission>p</Permission>"),
        policy("<Start>today</Start>"),
        policy("<Expiry>2026-02-30</Expiry>"),
        policy("<Other />"),
        "<SignedIdentifier></SignedIdentifier>".to_owned(),
    ] {
        let response = set(&inside).await;
        assert_eq!(response.failure(), (400, "InvalidXmlDocument"), "{inside}");
        let sentence = "XML specified is not syntactically valid.\n";
        assert_eq!(response.text().matches(sentence).count(), 1, "{response:?}");
    }
    let response = rest.send(xml("GET", "/tab?comp=acl", "")).await;
    assert!(response.text().contains("<SignedIdentifiers />"), "nothing was changed: {response:?}");
}

#[tokio::test]
async fn service_properties_are_changed_in_part() {
    let rest = Rest::start();
    let target = "/?restype=service&comp=properties";
    let cors = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
        <AllowedMethods>GET,PATCH</AllowedMethods><AllowedHeaders /><ExposedHeaders />\
        <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

    assert_eq!(rest.send(xml("PUT", target, cors)).await.status, 202);
    let response = rest.send(xml("GET", target, "")).await;
    assert_eq!(response.status, 200);
    for part in
        ["<AllowedMethods>GET,PATCH</AllowedMethods>", "<HourMetrics><Version>1.0</Version>"]
    {
        assert!(response.text().contains(part), "{response:?}");
    }
    let response = rest
        .send(xml(
            "PUT",
            target,
            "<StorageServiceProperties><Cors><CorsRule/></Cors></StorageServiceProperties>",
        ))
        .await;
    assert_eq!(response.failure(), (400, "InvalidXmlDocument"));
    let retention = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete>\
        <Read>true</Read><Write>false</Write><RetentionPolicy><Enabled>True</Enabled>\
        <Days>366</Days></RetentionPolicy></Logging></StorageServiceProperties>";
    let response = rest.send(xml("PUT", target, retention)).await;
    assert_eq!(response.failure(), (400, "InvalidXmlDocument"));
    let one = retention.replace("366", "365").replace("<Read>true", "<Read>TRUE");
    assert_eq!(rest.send(xml("PUT", target, &one)).await.status, 202);
    let response = rest.send(xml("GET", target, "")).await;
    let logging = "<Logging><Version>1.0</Version><Read>true</Read><Write>false</Write>\
        <Delete>false</Delete><RetentionPolicy>";
    assert!(response.text().contains(logging), "in the order of Azure: {response:?}");
}

#[tokio::test]
async fn stats_are_served_by_the_read_only_secondary() {
    let rest = Rest::start();
    rest.table("tab").await;
    let target = "/?restype=service&comp=stats";
    let secondary = |target: &str| format!("/devstoreaccount1-secondary{target}");

    let response = rest.send(xml("GET", target, "")).await;
    assert_eq!(response.failure(), (400, "InvalidQueryParameterValue"));
    // Without the permission that is the error instead.
    let token = token(terms(over_account("t", "o"), "r"));
    let with_token = format!("/devstoreaccount1{target}&{token}");
    let response = rest.send(xml("GET", "", "").at(&with_token).scheme(None)).await;
    assert_eq!(response.failure(), (403, "AuthorizationResourceTypeMismatch"));
    let response = rest.send(xml("GET", "", "").at(&secondary(target))).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert!(response.text().contains("<Status>live</Status><LastSyncTime>"), "{response:?}");
    // A client whose base address has the account twice, as that of `az storage table stats`.
    let nested = secondary("/devstoreaccount1/?restype=service&comp=stats");
    let response = rest.send(xml("GET", "", "").at(&nested)).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert!(response.text().contains("<Status>live</Status><LastSyncTime>"), "{response:?}");
    let below = secondary("/tab?restype=service&comp=stats");
    let response = rest.send(xml("GET", "", "").at(&below)).await;
    assert_eq!(response.failure(), (400, "InvalidQueryParameterValue"), "below a table");
    let response = rest.send(RestRequest::table("GET", "").at(&secondary("/tab()"))).await;
    assert_eq!((response.status, response.text()), (200, r#"{"value":[]}"#));
    let insert = RestRequest::json("POST", "", r#"{"PartitionKey":"p","RowKey":"r"}"#);
    let response = rest.send(insert.at(&secondary("/tab"))).await;
    assert_eq!(response.failure(), (403, "InsufficientAccountPermissions"));
}
