//! CORS of the Azure ports: preflights, and headers of responses.

use trestle_tests::RestResponse;

use super::endpoint::{Call, EDGES, Edge, Header, ServedEdge};

const RULES: &str = "<StorageServiceProperties><Cors><CorsRule>\
    <AllowedOrigins>http://a,http://b</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>\
    <MaxAgeInSeconds>500</MaxAgeInSeconds><ExposedHeaders>x-ms-*</ExposedHeaders>\
    <AllowedHeaders>x-ms-*,content-type</AllowedHeaders></CorsRule><CorsRule>\
    <AllowedOrigins>http://a</AllowedOrigins><AllowedMethods>PUT</AllowedMethods>\
    <MaxAgeInSeconds>1</MaxAgeInSeconds><ExposedHeaders /><AllowedHeaders>*</AllowedHeaders>\
    </CorsRule></Cors></StorageServiceProperties>";

async fn edge_with_rules(edge: &'static Edge) -> ServedEdge {
    let endpoint = ServedEdge::open(edge, &[]).await;
    let set = Call {
        method: "PUT",
        target: "/?restype=service&comp=properties",
        content_type: "application/xml",
        body: RULES,
    };
    let response = endpoint.call(set, RULES.as_bytes(), &[]).await;
    assert_eq!(response.status, 202, "{response:?}");
    endpoint
}

/// A preflight, without credentials.
async fn preflight(endpoint: &ServedEdge, account: &str, headers: &[Header<'_>]) -> RestResponse {
    let address = endpoint.address();
    let mut head = format!("OPTIONS /{account}/things HTTP/1.1\r\nhost: {address}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    endpoint.connect().await.call(format!("{head}\r\n").as_bytes()).await
}

const ORIGIN: &str = "origin";
const METHOD: &str = "access-control-request-method";
const HEADERS: &str = "access-control-request-headers";

#[tokio::test]
async fn preflight_is_answered_by_the_cors_rules() {
    for edge in EDGES {
        let endpoint = edge_with_rules(edge).await;
        let requested =
            [(ORIGIN, "http://b"), (METHOD, "PUT"), (HEADERS, "x-ms-date,content-type")];
        for account in ["devstoreaccount1", "devstoreaccount1-secondary"] {
            let response = preflight(&endpoint, account, &requested).await;
            assert_eq!((response.status, response.body.len()), (200, 0), "{response:?}");
            assert_eq!(response.header("access-control-allow-origin"), "http://b");
            assert_eq!(response.header("access-control-max-age"), "500");
            assert_eq!(response.header("access-control-allow-credentials"), "true");
            let methods = response.header("access-control-allow-methods");
            assert!(methods.split(',').any(|method| method.trim() == "PUT"), "{response:?}");
            let headers = response.header("access-control-allow-headers");
            assert!(
                headers.contains("x-ms-date") && headers.contains("content-type"),
                "{response:?}"
            );
            assert_eq!(response.header("x-ms-request-id").len(), 36);
        }
    }
}

#[tokio::test]
async fn preflight_without_a_matching_rule_is_rejected() {
    for edge in EDGES {
        let endpoint = edge_with_rules(edge).await;
        for requested in [
            [(ORIGIN, "http://c"), (METHOD, "PUT"), (HEADERS, "x-ms-date")],
            [(ORIGIN, "HTTP://A"), (METHOD, "PUT"), (HEADERS, "x-ms-date")],
            [(ORIGIN, "http://a"), (METHOD, "DELETE"), (HEADERS, "x-ms-date")],
            // A later rule would allow it, and is not tried.
            [(ORIGIN, "http://a"), (METHOD, "PUT"), (HEADERS, "x-ms-date,authorization")],
        ] {
            let response = preflight(&endpoint, "devstoreaccount1", &requested).await;
            assert_eq!(response.failure(), (403, "CorsPreflightFailure"), "{requested:?}");
            assert_eq!(response.header("access-control-allow-origin"), "", "{requested:?}");
        }
        // An unknown account has no rules, and is not revealed as unknown.
        let requested = [(ORIGIN, "http://a"), (METHOD, "PUT")];
        let response = preflight(&endpoint, "absent", &requested).await;
        assert_eq!(response.failure(), (403, "CorsPreflightFailure"));
    }
}

#[tokio::test]
async fn rejects_a_preflight_without_a_requested_method() {
    for edge in EDGES {
        let endpoint = edge_with_rules(edge).await;
        for requested in [&[][..], &[(ORIGIN, "http://a")], &[(METHOD, "PUT")]] {
            let response = preflight(&endpoint, "devstoreaccount1", requested).await;
            assert_eq!(response.failure(), (400, "InvalidHeaderValue"), "{requested:?}");
            let sentence = "A required CORS header is not present.";
            assert!(response.text().contains(sentence), "{}", response.text());
            assert!(!response.text().contains("not in the correct format"), "{}", response.text());
        }
    }
}

#[tokio::test]
async fn responses_and_errors_have_cors_headers_where_a_rule_matches() {
    for edge in EDGES {
        let endpoint = edge_with_rules(edge).await;
        for (target, status) in [(edge.list, 200), (edge.absent.0, 404)] {
            let response = endpoint.get(target, &[(ORIGIN, "http://a")]).await;
            assert_eq!(response.status, status, "{response:?}");
            assert_eq!(response.header("access-control-allow-origin"), "http://a", "{response:?}");
            let exposed = response.header("access-control-expose-headers");
            assert!(exposed.contains("x-ms-request-id"), "{response:?}");
            assert_eq!(response.header("access-control-allow-credentials"), "true", "{response:?}");
            assert!(response.header("vary").eq_ignore_ascii_case("origin"), "{response:?}");
            let response = endpoint.get(target, &[(ORIGIN, "http://c")]).await;
            assert_eq!(
                (response.status, response.header("access-control-allow-origin")),
                (status, "")
            );
            // The response varies by origin, so caches keep it apart.
            assert_eq!(response.header("vary"), "Origin", "{response:?}");
            let response = endpoint.get(target, &[]).await;
            assert_eq!(response.header("vary"), "Origin", "without an origin: {response:?}");
            let response = endpoint.get(target, &[("x-ms-date", "yesterday")]).await;
            assert_eq!((response.status, response.header("vary")), (403, "Origin"));
        }
    }
}

#[tokio::test]
async fn writes_vary_by_origin_where_a_rule_names_it() {
    for edge in EDGES {
        let endpoint = edge_with_rules(edge).await;
        let target = "/?restype=service&comp=properties";
        let set = Call { method: "PUT", target, content_type: "application/xml", body: "" };
        // The key of the account is public, so no other page writes.
        for (headers, status, vary) in [
            (&[][..], 202, ""),
            (&[(ORIGIN, "http://a")], 202, "origin"),
            (&[(ORIGIN, "http://c")], 403, ""),
        ] {
            let response = endpoint.call(set, b"<StorageServiceProperties />", headers).await;
            assert_eq!((response.status, response.header("vary")), (status, vary), "{headers:?}");
        }
    }
}

#[tokio::test]
async fn reads_vary_by_origin_where_no_rule_names_their_method() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        assert_eq!(endpoint.get(edge.list, &[]).await.header("vary"), "", "no rules");
        let rules = document(&rule("*", "PUT", "*", "*", "1"));
        let target = "/?restype=service&comp=properties";
        let set = Call { method: "PUT", target, content_type: "application/xml", body: "" };
        assert_eq!(endpoint.call(set, rules.as_bytes(), &[]).await.status, 202);

        for headers in [&[][..], &[(ORIGIN, "http://a")]] {
            for (target, status) in [(edge.list, 200), (edge.absent.0, 404)] {
                let response = endpoint.get(target, headers).await;
                assert_eq!((response.status, response.header("vary")), (status, "Origin"));
                assert_eq!(response.header("access-control-allow-origin"), "", "{response:?}");
            }
        }
    }
}

#[tokio::test]
async fn wildcard_rule_answers_with_a_wildcard_and_without_credentials() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let rules = document(&rule("*", "GET", "*", "*", "1"));
        let target = "/?restype=service&comp=properties";
        let set = Call { method: "PUT", target, content_type: "application/xml", body: "" };
        assert_eq!(endpoint.call(set, rules.as_bytes(), &[]).await.status, 202);

        let response = endpoint.get(edge.list, &[(ORIGIN, "http://any")]).await;
        assert_eq!((response.status, response.header("access-control-allow-origin")), (200, "*"));
        for absent in ["access-control-allow-credentials", "vary"] {
            assert_eq!(response.header(absent), "", "{response:?}");
        }
        let requested = [(ORIGIN, "http://any"), (METHOD, "GET"), (HEADERS, "x-any")];
        let response = preflight(&endpoint, "devstoreaccount1", &requested).await;
        assert_eq!(response.header("access-control-allow-origin"), "http://any", "{response:?}");
        assert_eq!(response.header("access-control-allow-credentials"), "", "{response:?}");
    }
}

#[tokio::test]
async fn changed_cors_rules_apply_at_once() {
    for edge in EDGES {
        let endpoint = edge_with_rules(edge).await;
        let requested = [(ORIGIN, "http://a"), (METHOD, "PUT")];
        assert_eq!(preflight(&endpoint, "devstoreaccount1", &requested).await.status, 200);
        let target = "/?restype=service&comp=properties";
        for (rules, status) in
            [(document(""), 403), (document(&rule("http://a", "PUT", "*", "*", "1")), 200)]
        {
            let set = Call { method: "PUT", target, content_type: "application/xml", body: "" };
            assert_eq!(endpoint.call(set, rules.as_bytes(), &[]).await.status, 202);

            assert_eq!(preflight(&endpoint, "devstoreaccount1", &requested).await.status, status);
        }
    }
}

/// A document of rules for origins.
fn document(rules: &str) -> String {
    format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>")
}

/// A rule with these elements.
fn rule(origins: &str, methods: &str, allowed: &str, exposed: &str, age: &str) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins>\
         <AllowedMethods>{methods}</AllowedMethods><AllowedHeaders>{allowed}</AllowedHeaders>\
         <ExposedHeaders>{exposed}</ExposedHeaders><MaxAgeInSeconds>{age}</MaxAgeInSeconds>\
         </CorsRule>"
    )
}

#[tokio::test]
async fn cors_rules_have_the_limits_of_the_service() {
    let texts = |text: &str, count: usize| vec![text; count].join(",");
    let (long, longer) = ("x".repeat(256), "x".repeat(257));
    let headers = format!("{},{}", texts("x", 64), texts("x-ms-*", 2));
    let plain = |origins: &str| rule(origins, "GET", "", "", "0");
    // Seven origins of 256 characters, a shorter one to reach the limit, and `GET`.
    let filled = |rest: usize| plain(&format!("{},{}", texts(&long, 7), "x".repeat(rest)));
    let methods = "DELETE,GET,HEAD,MERGE,POST,OPTIONS,PUT,PATCH";
    let document_code = "InvalidXmlDocument";
    for edge in EDGES {
        // The table service has one code for every rejected document.
        let value = if edge.name == "table" { document_code } else { "InvalidXmlNodeValue" };
        let endpoint = ServedEdge::open(edge, &[]).await;
        let set = async |rules: &str| {
            let target = "/?restype=service&comp=properties";
            let set = Call { method: "PUT", target, content_type: "application/xml", body: "" };
            endpoint.call(set, document(rules).as_bytes(), &[]).await
        };
        for rules in [
            plain("*").repeat(5),
            plain(&texts("x", 64)),
            plain(&long),
            rule("*", methods, "", "", "2147483647"),
            rule("*", "GET", &headers, &headers, "0"),
            filled(253),
        ] {
            let response = set(&rules).await;
            assert_eq!(response.status, 202, "{rules}: {response:?}");
        }
        for (rules, code) in [
            (plain("*").repeat(6), document_code),
            (plain(&texts("x", 65)), document_code),
            (plain(&longer), document_code),
            (plain(""), value),
            (rule("*", "", "", "", "0"), value),
            (rule("*", "get", "", "", "0"), document_code),
            (rule("*", "GET,CONNECT", "", "", "0"), document_code),
            (rule("*", "GET", &texts("x", 65), "", "0"), document_code),
            (rule("*", "GET", "", &texts("x", 65), "0"), document_code),
            (rule("*", "GET", &texts("x*", 3), "", "0"), document_code),
            (rule("*", "GET", "", &texts("x*", 3), "0"), document_code),
            (rule("*", "GET", &longer, "", "0"), document_code),
            (rule("*", "GET", "", &longer, "0"), document_code),
            (rule("*", "GET", "", "", "-1"), value),
            (rule("*", "GET", "", "", ""), value),
            (filled(254), document_code),
        ] {
            let response = set(&rules).await;
            assert_eq!(response.failure(), (400, code), "{rules}");
        }
        let read = endpoint.get("/?restype=service&comp=properties", &[]).await;
        assert!(read.text().contains(&"x".repeat(253)), "the earlier rules remain: {read:?}");
    }
}
