//! Access policies, service properties and stats.

use trestle_tests::{Ask, Rest, over_account, terms, token};

const POLICIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>\
    <SignedIdentifier><Id>policy1</Id><AccessPolicy><Start>2026-01-01T00:00:00Z</Start>\
    <Expiry>2026-02-01T00:00:00.1Z</Expiry><Permission>raud</Permission></AccessPolicy>\
    </SignedIdentifier></SignedIdentifiers>";

fn xml(method: &str, target: &str, body: &str) -> Ask {
    Ask::table(method, target)
        .with("accept", "application/xml")
        .with("content-type", "application/xml")
        .body(body)
}

#[tokio::test]
async fn access_policies_are_set_returned_and_cleared() {
    let rest = Rest::start();
    let told = rest.send(xml("GET", "/tab?comp=acl", "")).await;
    assert_eq!(told.failure(), (404, "TableNotFound"));
    assert_eq!(told.header("content-type"), "application/xml");
    rest.table("tab").await;

    assert_eq!(rest.send(xml("PUT", "/tab?comp=acl", POLICIES)).await.status, 204);
    let told = rest.send(xml("GET", "/TAB?comp=acl", "")).await;
    assert_eq!(told.status, 200);
    let terms = "<Start>2026-01-01T00:00:00.0000000Z</Start>\
        <Expiry>2026-02-01T00:00:00.1000000Z</Expiry><Permission>raud</Permission>";
    assert!(told.text().contains(terms), "{told:?}");
    assert_eq!(rest.send(xml("PUT", "/tab?comp=acl", "")).await.status, 204);
    let told = rest.send(xml("GET", "/tab?comp=acl", "")).await;
    assert!(told.text().contains("<SignedIdentifiers />"), "{told:?}");
    let told = rest.send(xml("PUT", "/tab?comp=acl", &POLICIES.replace("raud", "dr"))).await;
    assert_eq!(told.failure(), (400, "InvalidXmlDocument"));
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
        let told = set(&inside).await;
        assert_eq!((told.status, told.text()), (204, ""), "{inside}");
    }
    let (document, value) = ("InvalidXmlDocument", "InvalidXmlNodeValue");
    for (inside, code) in [
        (numbered(6), document),
        (with(&"x".repeat(65), ""), document),
        (with("", ""), document),
        ([with("a", ""), with("a", "")].concat(), document),
        (policy("<Permission>ar</Permission>"), document),
        (policy("<Permission>rr</Permission>"), document),
        (policy("<Permission>p</Permission>"), document),
        (policy("<Start>today</Start>"), value),
        (policy("<Expiry>2026-02-30</Expiry>"), value),
        (policy("<Other />"), document),
        ("<SignedIdentifier></SignedIdentifier>".to_owned(), "MissingRequiredXmlNode"),
    ] {
        let told = set(&inside).await;
        assert_eq!(told.failure(), (400, code), "{inside}");
    }
    let told = rest.send(xml("GET", "/tab?comp=acl", "")).await;
    assert!(told.text().contains("<SignedIdentifiers />"), "nothing was changed: {told:?}");
}

#[tokio::test]
async fn service_properties_are_changed_in_part() {
    let rest = Rest::start();
    let target = "/?restype=service&comp=properties";
    let cors = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
        <AllowedMethods>GET,PATCH</AllowedMethods><AllowedHeaders /><ExposedHeaders />\
        <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";

    assert_eq!(rest.send(xml("PUT", target, cors)).await.status, 202);
    let told = rest.send(xml("GET", target, "")).await;
    assert_eq!(told.status, 200);
    for part in
        ["<AllowedMethods>GET,PATCH</AllowedMethods>", "<HourMetrics><Version>1.0</Version>"]
    {
        assert!(told.text().contains(part), "{told:?}");
    }
    let told = rest
        .send(xml(
            "PUT",
            target,
            "<StorageServiceProperties><Cors><CorsRule/></Cors></StorageServiceProperties>",
        ))
        .await;
    assert_eq!(told.failure(), (400, "MissingRequiredXmlNode"));
}

#[tokio::test]
async fn stats_are_served_by_the_read_only_secondary() {
    let rest = Rest::start();
    rest.table("tab").await;
    let target = "/?restype=service&comp=stats";
    let secondary = |target: &str| format!("/devstoreaccount1-secondary{target}");

    let told = rest.send(xml("GET", target, "")).await;
    assert_eq!(told.failure(), (400, "InvalidQueryParameterValue"));
    // Who may not ask for them at all is told that instead.
    let token = token(terms(over_account("t", "o"), "r"));
    let with_token = format!("/devstoreaccount1{target}&{token}");
    let told = rest.send(xml("GET", "", "").at(&with_token).scheme(None)).await;
    assert_eq!(told.failure(), (403, "AuthorizationResourceTypeMismatch"));
    let told = rest.send(xml("GET", "", "").at(&secondary(target))).await;
    assert_eq!(told.status, 200, "{told:?}");
    assert!(told.text().contains("<Status>live</Status><LastSyncTime>"), "{told:?}");
    let told = rest.send(Ask::table("GET", "").at(&secondary("/tab()"))).await;
    assert_eq!((told.status, told.text()), (200, r#"{"value":[]}"#));
    let insert = Ask::json("POST", "", r#"{"PartitionKey":"p","RowKey":"r"}"#);
    let told = rest.send(insert.at(&secondary("/tab"))).await;
    assert_eq!(told.failure(), (403, "InsufficientAccountPermissions"));
}
