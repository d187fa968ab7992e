//! One entity: its operations, its types, its keys.

use trestle_tests::{Rest, RestRequest};

const BODY: &str = r#"{"PartitionKey":"p","RowKey":"r","Timestamp":null,"age":"39",
    "age@odata.type":"Edm.Int64","ratio":3.0,"none":null}"#;
const AT: &str = "/tab(PartitionKey='p',RowKey='r')";

#[tokio::test]
async fn entity_supports_every_operation() {
    let rest = Rest::start();
    rest.table("tab").await;

    let inserted = rest.send(RestRequest::json("POST", "/Tab", BODY)).await;
    assert_eq!(inserted.status, 201, "{inserted:?}");
    let at = format!("{}/Tab(PartitionKey='p',RowKey='r')", rest.base());
    assert_eq!(inserted.header("location"), at);
    assert_eq!(inserted.header("preference-applied"), "");
    let etag = inserted.header("etag").to_owned();
    let body = inserted.text();
    assert!(body.starts_with(r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"2"#), "{body}");
    assert!(body.ends_with(r#"Z","age":"39","ratio":3.0}"#), "{body}");
    let again = rest.send(RestRequest::json("POST", "/tab()", BODY)).await;
    assert_eq!(again.failure(), (409, "EntityAlreadyExists"));

    let got = rest.send(RestRequest::table("GET", AT)).await;
    assert_eq!((got.status, got.text(), got.header("etag")), (200, body, &*etag));

    let merge = RestRequest::json("PATCH", AT, r#"{"open":true,"age":null}"#);
    let merged = rest.send(merge.with("if-match", &etag)).await;
    assert_eq!((merged.status, merged.text()), (204, ""));
    assert_ne!(merged.header("etag"), etag);
    let got = rest.send(RestRequest::table("GET", AT)).await;
    assert!(got.text().ends_with(r#"Z","age":"39","open":true,"ratio":3.0}"#), "{got:?}");

    let replaced =
        rest.send(RestRequest::json("PUT", AT, r#"{"PartitionKey":"other","x":1}"#)).await;
    assert_eq!(replaced.status, 204, "{replaced:?}");
    let got = rest.send(RestRequest::table("GET", AT)).await;
    assert!(got.text().ends_with(r#"Z","x":1}"#), "{got:?}");

    let deleted = rest.send(RestRequest::table("DELETE", AT).with("if-match", "*")).await;
    assert_eq!((deleted.status, deleted.header("etag")), (204, ""));
    assert_eq!(rest.send(RestRequest::table("GET", AT)).await.failure(), (404, "ResourceNotFound"));
}

#[tokio::test]
async fn insert_honours_the_prefer_header() {
    let rest = Rest::start();
    rest.table("tab").await;
    let insert = |row: &str, prefer: &str| {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}"}}"#);
        RestRequest::json("POST", "/tab", &body).with("prefer", prefer)
    };

    let none = rest.send(insert("1", "return-no-content")).await;
    assert_eq!((none.status, none.text()), (204, ""));
    let at = format!("{}/tab(PartitionKey='p',RowKey='1')", rest.base());
    assert_eq!((none.header("location"), none.header("dataserviceid")), (&*at, &*at));
    assert_eq!(none.header("preference-applied"), "return-no-content");
    assert!(none.header("etag").starts_with("W/\"datetime'"));
    let shown = rest.send(insert("2", "return-content")).await;
    assert_eq!(shown.status, 201);
    assert_eq!(shown.header("preference-applied"), "return-content");
    let failed = rest.send(insert("2", "return-no-content")).await;
    assert_eq!(failed.failure(), (409, "EntityAlreadyExists"));
    assert_eq!(failed.header("preference-applied"), "return-no-content");
    // Operations that create nothing return nothing.
    for (method, tunnelled) in [("PATCH", None), ("POST", Some("MERGE"))] {
        let merge = RestRequest::json(method, "/tab(PartitionKey='p',RowKey='none')", "{}");
        let merge = merge.with("if-match", "*").with("prefer", "return-no-content");
        let merge =
            tunnelled.into_iter().fold(merge, |request, verb| request.with("x-http-method", verb));
        let failed = rest.send(merge).await;
        assert_eq!(failed.failure(), (404, "ResourceNotFound"));
        assert_eq!(failed.header("preference-applied"), "", "{failed:?}");
    }
}

#[tokio::test]
async fn types_round_trip_at_every_metadata_level() {
    let rest = Rest::start();
    rest.table("tab").await;
    let typed = concat!(
        r#""a":"text","b":true,"bin@odata.type":"Edm.Binary","bin":"AAEC","#,
        r#""d":4.0,"e":"","g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833","#,
        r#""i":-7,"l@odata.type":"Edm.Int64","l":"9007199254740993","#,
        r#""n@odata.type":"Edm.Double","n":"NaN","t@odata.type":"Edm.DateTime","#,
        r#""t":"1601-01-01T00:00:00.0000001Z","u@odata.type":"Edm.DateTime","#,
        r#""u":"2026-01-31T08:00:00.2Z","ä":"é😀\n\"""#
    );
    let keys = r#""PartitionKey":"p","RowKey":"r","#;
    let sent = typed.replace("00.2Z", "00.2000000Z").replace("c9da", "C9DA");
    rest.insert("tab", &format!("{{{keys}{sent}}}")).await;
    let at = |level: &str| {
        RestRequest::table("GET", AT).with("accept", &format!("application/json;odata={level}"))
    };

    let none = rest.send(at("nometadata")).await;
    let types = ["Edm.Binary", "Edm.Guid", "Edm.Int64", "Edm.Double", "Edm.DateTime"];
    assert!(!none.text().contains("odata."), "{none:?}");
    let minimal = rest.send(at("minimalmetadata")).await;
    assert!(minimal.text().ends_with(&format!("{typed}}}")), "{minimal:?}");
    let metadata = format!(r#"{{"odata.metadata":"{}/$metadata#tab/@Element""#, rest.base());
    assert!(minimal.text().starts_with(&metadata), "{minimal:?}");
    let full = rest.send(at("fullmetadata")).await;
    let link = r#""odata.editLink":"tab(PartitionKey='p',RowKey='r')""#;
    for part in [link, r#""odata.type":"devstoreaccount1.tab""#, r#""Timestamp@odata.type""#, typed]
    {
        assert!(full.text().contains(part), "{part}: {full:?}");
    }
    for (response, level) in [(&none, "no"), (&minimal, "minimal"), (&full, "full")] {
        let kind = format!("application/json;odata={level}metadata;streaming=true;charset=utf-8");
        assert_eq!(response.header("content-type"), kind);
        assert_eq!(response.header("etag"), none.header("etag"));
        assert_eq!(types.iter().all(|edm| response.text().contains(edm)), level != "no");
    }
    let format =
        RestRequest::table("GET", &format!("{AT}?$format=application/json;odata=fullmetadata"));
    assert_eq!(rest.send(format).await.text(), full.text());
}

#[tokio::test]
async fn accepts_keys_with_quotes_percent_signs_spaces_and_empty() {
    let rest = Rest::start();
    rest.table("tab").await;
    for (key, path) in [
        ("", ""),
        ("it's", "it''s"),
        ("100%", "100%25"),
        ("a b+c", "a%20b+c"),
        ("😀é", "%F0%9F%98%80%C3%A9"),
        ("a,b)('", "a,b)(''"),
    ] {
        let body = serde_json::json!({ "PartitionKey": key, "RowKey": key, "x": 1 });
        let inserted = rest.insert("tab", &body.to_string()).await;
        let location = inserted.header("location").to_owned();
        let own = location.strip_prefix(&rest.base()).expect("of this account");
        for target in [format!("/tab(PartitionKey='{path}',RowKey='{path}')"), own.to_owned()] {
            let got = rest.send(RestRequest::table("GET", &target)).await;
            assert_eq!(got.status, 200, "{target}: {got:?}");
            let got: serde_json::Value = serde_json::from_slice(&got.body).expect("JSON");
            assert_eq!((&got["PartitionKey"], &got["x"]), (&body["PartitionKey"], &body["x"]));
        }
    }
}

#[tokio::test]
async fn data_rule_violations_have_their_codes() {
    let rest = Rest::start();
    rest.table("tab").await;
    let long = format!(r#""s":"{}""#, "x".repeat(32_769));
    let many = (0..253).map(|at| format!(r#""m{at}":1"#)).collect::<Vec<_>>().join(",");
    let name = format!(r#""{}":1"#, "n".repeat(256));
    let large = (0..17)
        .map(|at| format!(r#""s{at}":"{}""#, "x".repeat(32_000)))
        .collect::<Vec<_>>()
        .join(",");
    for (members, code) in [
        (r#""x":1,"x":2"#, "DuplicatePropertiesSpecified"),
        (r#""a-b":1"#, "PropertyNameInvalid"),
        (r#""x":"0001-01-01T00:00:00Z","x@odata.type":"Edm.DateTime""#, "OutOfRangeInput"),
        (r#""x":2147483648"#, "InvalidInput"),
        (r#""x":"z","x@odata.type":"Edm.Guid""#, "InvalidInput"),
        (r#""x":null,"x@odata.type":"Edm.Foo""#, "InvalidInput"),
        (r#""x":"maybe","x@odata.type":"Edm.Boolean""#, "InvalidInput"),
        (r#""RowKey@odata.type":"Edm.Int32""#, "InvalidInput"),
        (r#""PartitionKey@odata.type":"Edm.Guid""#, "InvalidInput"),
        (r#""PartitionKey@odata.type":7"#, "InvalidInput"),
        (&*long, "PropertyValueTooLarge"),
        (&*many, "TooManyProperties"),
        (&*name, "PropertyNameTooLong"),
        (&*large, "EntityTooLarge"),
    ] {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"r",{members}}}"#);
        let response = rest.send(RestRequest::json("POST", "/tab", &body)).await;
        assert_eq!(response.failure(), (400, code), "{response:?}");
    }
    let response = rest.send(RestRequest::json("POST", "/tab", r#"{"RowKey":"r"}"#)).await;
    assert_eq!(response.failure(), (400, "PropertiesNeedValue"));
    assert!(
        response.text().contains("The values are not specified for all properties in the entity.")
    );
    let response = rest
        .send(RestRequest::json("POST", "/tab", r#"{"PartitionKey":"a/b","RowKey":"r"}"#))
        .await;
    assert_eq!(response.failure(), (400, "OutOfRangeInput"));
    let response = rest
        .send(RestRequest::json("POST", "/absent", r#"{"PartitionKey":"p","RowKey":"r"}"#))
        .await;
    assert_eq!(response.failure(), (404, "TableNotFound"));
}

#[tokio::test]
async fn insert_ignores_control_data_and_conditions() {
    let rest = Rest::start();
    rest.table("tab").await;
    let body = concat!(
        r#"{"odata.etag":"W/\"x\"","odata.type":"acct.tab","odata.other":1,"#,
        r#""PartitionKey@odata.type":"Edm.String","PartitionKey":"p","#,
        r#""RowKey":"r","RowKey@odata.type":"Edm.String","#,
        r#""Timestamp@odata.type":"Edm.DateTime","Timestamp":"whenever","#,
        r#""none@odata.type":"Edm.Int64","none":null,"etag":"mine","#,
        r#""four@odata.type":"Edm.Double","four":4,"timestamp":"mine too","when@odata.type":"Edm.DateTime","#,
        r#""when":"2026-01-31T08:00:00"}"#
    );

    let response =
        rest.send(RestRequest::json("POST", "/tab", body).with("if-match", "nonsense")).await;

    assert_eq!(response.status, 201, "{response:?}");
    let kept = concat!(
        r#""etag":"mine","four":4.0,"timestamp":"mine too","#,
        r#""when":"2026-01-31T08:00:00Z"}"#
    );
    assert!(response.text().ends_with(&format!("Z\",{kept}")), "{response:?}");
    let got = rest.send(RestRequest::table("GET", AT)).await;
    assert_eq!(got.text(), response.text());
}

#[tokio::test]
async fn keys_of_a_body_and_their_types_are_ignored_where_the_address_has_them() {
    let rest = Rest::start();
    rest.table("tab").await;
    for member in [
        r#""RowKey":"r","RowKey@odata.type":"Edm.Int64""#,
        r#""PartitionKey@odata.type":"Edm.Binary","PartitionKey":"AA==""#,
        r#""RowKey":"other","RowKey@odata.type":"Edm.String""#,
    ] {
        for verb in ["PUT", "PATCH", "MERGE"] {
            let change = RestRequest::json(verb, AT, &format!("{{{member}}}"));
            let response = rest.send(change).await;
            assert_eq!(response.status, 204, "{verb} {member}: {response:?}");
        }
    }
}

#[tokio::test]
async fn booleans_may_be_text_in_any_case() {
    let rest = Rest::start();
    rest.table("tab").await;
    let texts = ["true", "True", "TRUE", "false", "False", "FALSE"];
    let members =
        texts.map(|text| format!(r#""{text}":"{text}","{text}@odata.type":"Edm.Boolean""#));
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"r",{}}}"#, members.join(","));
    rest.insert("tab", &body).await;

    let read = rest.send(RestRequest::table("GET", AT)).await;

    let read: serde_json::Value = serde_json::from_slice(&read.body).expect("JSON");
    for text in texts {
        assert_eq!(read[text], text.eq_ignore_ascii_case("true"), "{text}: {read}");
    }
}

#[tokio::test]
async fn rejects_an_insert_with_a_missing_or_null_key() {
    let rest = Rest::start();
    rest.table("tab").await;
    for body in [
        "{}",
        r#"{"PartitionKey":"p"}"#,
        r#"{"PartitionKey":null,"RowKey":"r"}"#,
        r#"{"PartitionKey":"p","RowKey":null}"#,
    ] {
        let response = rest.send(RestRequest::json("POST", "/tab", body)).await;
        assert_eq!(response.failure(), (400, "PropertiesNeedValue"), "{body}");
    }
    let response =
        rest.send(RestRequest::json("POST", "/tab", r#"{"PartitionKey":1,"RowKey":"r"}"#)).await;
    assert_eq!(response.failure(), (400, "InvalidInput"));
}

#[tokio::test]
async fn times_are_stored_and_compared_in_ticks_by_one_grammar() {
    let rest = Rest::start();
    rest.table("tab").await;
    for (row, sent, stored) in [
        ("a", "2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.1234567Z"),
        ("b", "2026-01-02T03:04:05.000000000Z", "2026-01-02T03:04:05Z"),
        ("c", "2026-01-02T04:04:05.5+0100", "2026-01-02T03:04:05.5Z"),
        ("d", "2026-01-02T01:34+01:30", "2026-01-02T00:04:00Z"),
    ] {
        let time = format!(r#""t@odata.type":"Edm.DateTime","t":"{sent}""#);
        rest.insert("tab", &format!(r#"{{"PartitionKey":"p","RowKey":"{row}",{time}}}"#)).await;

        let filter = format!("t%20eq%20datetime'{}'", sent.replace('+', "%2B"));
        let found = rest.send(RestRequest::table("GET", &format!("/tab()?$filter={filter}"))).await;

        assert_eq!(found.status, 200, "{sent}: {found:?}");
        let expected = format!(r#""RowKey":"{row}""#);
        assert!(found.text().contains(&expected), "{sent}: {found:?}");
        assert!(found.text().contains(&format!(r#""t":"{stored}""#)), "{sent}: {found:?}");
    }
}
