//! Hostile requests: dates, credentials, percent-encoding.

use prost_types::Timestamp;
use trestle_azure::date::http_date;
use trestle_model::time::{Clock as _, SystemClock};

use super::endpoint::{ACCOUNT, EDGES, QUEUES, ServedEdge};

/// An HTTP date so many seconds from now.
fn date(seconds: i64) -> String {
    let (now, nanos) = SystemClock.now().to_unix();
    http_date(Some(&Timestamp { seconds: now + seconds, nanos }))
}

#[tokio::test]
async fn rejects_a_malformed_or_skewed_date() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        for seconds in [0, -14 * 60, 14 * 60] {
            let response = endpoint.get(edge.list, &[("x-ms-date", &date(seconds))]).await;
            assert_eq!(response.status, 200, "{seconds}: {response:?}");
        }
        let far = [-16 * 60, 16 * 60, -86_400 * 365, 86_400 * 365 * 50].map(date);
        let malformed = [
            "now",
            "0",
            "2026-11-21T12:00:00Z",
            "Sat, 31 Feb 2026 12:00:00 GMT",
            "Sat, 21 Nov 2026 25:00:00 GMT",
            "Sat, 21 Nov 99999999999999999999 12:00:00 GMT",
            "Sat, 21 Nov 2026 12:00:00 GMT; drop",
            "999999999999999999999999999999",
        ];
        let long = "9".repeat(8000);
        let far = far.iter().map(|date| (date.as_str(), "must be at most 15 minutes"));
        let malformed = malformed.into_iter().chain([long.as_str()]);
        let malformed = malformed.map(|date| (date, "must be a date of HTTP"));
        for (date, rule) in far.chain(malformed) {
            let response = endpoint.get(edge.list, &[("x-ms-date", date)]).await;
            assert_eq!(response.failure(), (403, "AuthenticationFailed"), "{date}");
            // A clock that is wrong does not look like a wrong key.
            assert!(response.text().contains(&format!("x-ms-date: {rule}")), "{date}");
        }
    }
}

#[tokio::test]
async fn date_header_counts_without_x_ms_date() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let (now, old) = (date(0), date(-3600));
        // Signed without it, or with it instead of the date of the header.
        for (headers, is_good) in [
            (vec![("date", now.as_str())], true),
            (vec![("date", old.as_str())], false),
            (vec![("x-ms-date", now.as_str()), ("date", old.as_str())], true),
            (vec![("x-ms-date", old.as_str()), ("date", now.as_str())], false),
        ] {
            let response = endpoint.get(edge.list, &headers).await;
            if is_good {
                assert_eq!(response.status, 200, "{headers:?}: {response:?}");
            } else {
                assert_eq!(response.failure(), (403, "AuthenticationFailed"), "{headers:?}");
            }
        }
    }
}

#[tokio::test]
async fn rejects_malformed_credentials_without_echoing_them() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let long = format!("SharedKey {ACCOUNT}:{}", "A".repeat(12_000));
        for (credentials, failure) in [
            ("SharedKey", (400, "InvalidAuthenticationInfo")),
            ("SharedKey ", (400, "InvalidAuthenticationInfo")),
            ("SharedKey :", (403, "AuthenticationFailed")),
            ("SharedKey no-colon-secret", (400, "InvalidAuthenticationInfo")),
            ("sharedkey devstoreaccount1:c2VjcmV0", (400, "InvalidAuthenticationInfo")),
            ("Bearer c2VjcmV0", (400, "InvalidAuthenticationInfo")),
            ("Basic ZGV2OmM=", (400, "InvalidAuthenticationInfo")),
            ("SharedKey devstoreaccount1:%%%secret%%%", (403, "AuthenticationFailed")),
            ("SharedKey devstoreaccount1:c2VjcmV0:c2VjcmV0", (403, "AuthenticationFailed")),
            ("SharedKey ../devstoreaccount1:c2VjcmV0", (403, "AuthenticationFailed")),
            ("SharedKey absent:c2VjcmV0", (403, "AuthenticationFailed")),
            ("SharedKeyLite devstoreaccount1:c2VjcmV0", (403, "AuthenticationFailed")),
            (long.as_str(), (403, "AuthenticationFailed")),
        ] {
            let response = endpoint.get(edge.list, &[("authorization", credentials)]).await;
            let shown = &credentials[..credentials.len().min(60)];
            assert_eq!(response.failure(), failure, "{shown}");
            for secret in ["c2VjcmV0", "secret", "AAAAAAAA"] {
                assert!(!response.text().contains(secret), "{shown}: {response:?}");
            }
        }
        // Bytes that are not UTF-8.
        let head = endpoint.head("GET", edge.list, &[("authorization", "SharedKey name")]);
        let head = head.replace("SharedKey name", "SharedKey \u{e4}:\u{e4}");
        let response = endpoint.connect().await.call(head.as_bytes()).await;
        assert_eq!(response.failure(), (400, "InvalidAuthenticationInfo"));
        endpoint.is_untouched().await;
    }
}

#[tokio::test]
async fn rejects_malformed_sas_tokens_without_echoing_them() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let sign = if edge.list.contains('?') { '&' } else { '?' };
        // As long as a signature is.
        let signature = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U=";
        let good = format!(
            "sv=2019-02-02&ss=tq&srt=sco&sp=rl&se=2090-01-01&sig={}",
            signature.replace('=', "%3D")
        );
        let with = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            good.replace(from, to)
        };
        let wrong = (403, "AuthenticationFailed");
        for (token, failure) in [
            (good.clone(), wrong),
            (with("sp=rl", "sp=rwl"), wrong),
            (with("sig=c2Vj", "sig="), wrong),
            (with("sig=c2Vj", &format!("sig={}", "c2VjcmV0".repeat(900))), wrong),
            (with("%3D", "%FF"), (400, "InvalidUri")),
            (with("&sig=", "&gis="), (401, "NoAuthenticationInformation")),
            (with("se=2090-01-01", "se=tomorrow"), wrong),
            (with("se=2090-01-01", "se=2090-02-31"), wrong),
            (with("se=2090-01-01", "se="), wrong),
            (with("sv=2019-02-02", "sv=latest"), wrong),
            (with("sp=rl", "sp=zz"), wrong),
            (with("ss=tq", "ss=x"), wrong),
            (with("srt=sco", "srt=ooo"), wrong),
            (format!("{good}&sp=rwdl"), wrong),
            (format!("{good}&sip=999.1.1.1"), wrong),
            (format!("{good}&spr=gopher"), wrong),
            (format!("{good}&st=%00"), wrong),
            (format!("{good}{}", "&x=1".repeat(70)), (400, "InvalidUri")),
        ] {
            let target = format!("/{ACCOUNT}{}{sign}{token}", edge.list);
            let head =
                format!("GET {target} HTTP/1.1\r\nhost: h\r\nx-ms-version: 2019-02-02\r\n\r\n");
            let response = endpoint.connect().await.call(head.as_bytes()).await;
            let shown = &token[..token.len().min(120)];
            assert_eq!(response.failure(), failure, "{shown}");
            assert!(!response.text().contains("c2VjcmV0"), "{shown}: {response:?}");
        }
        endpoint.is_untouched().await;
    }
}

#[tokio::test]
async fn rejected_sas_token_names_the_malformed_field() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let sign = if edge.list.contains('?') { '&' } else { '?' };
        let fields = "sv=2019-02-02&ss=tq&srt=sco&sp=rl";
        let signature = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%3D";
        for (expiry, detail) in [
            ("&se=tomorrow", "se: must be a time such as 2026-01-31"),
            ("", "se: required"),
            ("&se=2090-01-01", "the account, its key or the signature is wrong"),
        ] {
            let token = format!("{fields}{expiry}&sig={signature}");
            let target = format!("/{ACCOUNT}{}{sign}{token}", edge.list);
            let head = format!("GET {target} HTTP/1.1\r\nhost: h\r\n\r\n");

            let response = endpoint.connect().await.call(head.as_bytes()).await;

            assert_eq!(response.failure(), (403, "AuthenticationFailed"), "{expiry}");
            assert!(response.text().contains(detail), "{expiry}: {response:?}");
            if edge.name == QUEUES.name {
                let element = response.only("AuthenticationErrorDetail");
                assert!(element.contains(detail), "{element}");
            }
        }
    }
}

#[tokio::test]
async fn percent_encoding_in_queries_is_utf_8_or_rejected() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let sign = if edge.list.contains('?') { '&' } else { '?' };
        // An invalid escape is literal text, in parameters that are ignored.
        for query in ["x=%zz", "x=%", "x=%4", "x=%25%32%65", "x=%00", "%00=x", "x=%F0%9F%98%80"] {
            let response = endpoint.get(&format!("{}{sign}{query}", edge.list), &[]).await;
            assert_eq!(response.status, 200, "{query}: {response:?}");
        }
        for query in ["x=%FF", "%C3=x", "x=%ED%A0%80", "x=%C0%AE%C0%AE"] {
            let response = endpoint.get(&format!("{}{sign}{query}", edge.list), &[]).await;
            assert_eq!(response.failure(), (400, "InvalidUri"), "{query}");
        }
        let many = "x=1&".repeat(100);
        let response = endpoint.get(&format!("{}{sign}{many}", edge.list), &[]).await;
        assert_eq!(response.failure(), (400, "InvalidUri"));
        for timeout in ["0", "00", "-1", "soon", "%00", "1e3", ""] {
            let response =
                endpoint.get(&format!("{}{sign}timeout={timeout}", edge.list), &[]).await;
            assert_eq!(response.failure(), (400, "InvalidQueryParameterValue"), "{timeout}");
            // An XML error names the rejected parameter.
            let named = "<QueryParameterName>timeout</QueryParameterName>";
            assert_eq!(response.text().contains(named), edge.name == "queue", "{response:?}");
        }
        for timeout in ["86400", "99999999999999999999"] {
            let response =
                endpoint.get(&format!("{}{sign}timeout={timeout}", edge.list), &[]).await;
            assert_eq!(response.status, 200, "{response:?}");
        }
    }
}

#[tokio::test]
async fn rejects_a_body_without_content_length() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        let kind = [("content-type", edge.put.content_type)];
        let head = endpoint.head(edge.put.method, edge.put.target, &kind);
        let (before, after) = head.split_once("content-length: 0\r\n").expect("it has a length");

        let mut wire = endpoint.connect().await;
        let response = wire.call(format!("{before}{after}").as_bytes()).await;

        assert_eq!(response.failure(), (411, "MissingContentLengthHeader"));
        // An unknown method needs no length.
        for method in ["FOO", "TRACE"] {
            let head = endpoint.head(method, edge.put.target, &[]);
            let head = head.replace("content-length: 0\r\n", "");
            let response = endpoint.connect().await.call(head.as_bytes()).await;
            assert_eq!(response.failure(), (405, "UnsupportedHttpVerb"), "{method}");
        }
        endpoint.is_untouched().await;
    }
}
