//! Hostile XML and JSON documents.

use super::endpoint::{Call, EDGES, ServedEdge, TABLES};

/// A request of both services with an XML body, and its root element.
const DOCUMENTS: [(&str, &str); 2] = [
    ("/things?comp=acl", "SignedIdentifiers"),
    ("/?restype=service&comp=properties", "StorageServiceProperties"),
];

fn set(target: &'static str) -> Call {
    Call { method: "PUT", target, content_type: "application/xml", body: "" }
}

#[tokio::test]
async fn rejects_xml_with_a_dtd_or_beyond_depth_and_size() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        for (target, root) in DOCUMENTS {
            let inside = |declared: &str, text: &str| format!("{declared}<{root}>{text}</{root}>");
            let laughs: String = (1..10)
                .map(|at| format!("<!ENTITY l{at} \"{}\">", format!("&l{};", at - 1).repeat(10)))
                .collect();
            let laughs = format!("<!DOCTYPE x [<!ENTITY l0 \"ha\">{laughs}]>");
            let file = "<!DOCTYPE x [<!ENTITY f SYSTEM \"file:///etc/passwd\">]>";
            let remote = "<!DOCTYPE x SYSTEM \"http://127.0.0.1:1/x.dtd\">";
            for document in [
                inside(&laughs, "&l9;"),
                inside(file, "&f;"),
                inside(remote, ""),
                inside("", "&unknown;"),
                inside("", "&#x110000;"),
                inside("", &"<a>".repeat(20_000)),
                inside("", &format!("{}{}", "<a>".repeat(10_000), "</a>".repeat(10_000))),
                inside("", "<a b='1' b='2'/>"),
                inside("", "text"),
                inside("", "&lt;a&gt;"),
                inside("<![CDATA[]]>", ""),
                format!("<{root}>"),
                format!("<{root}/><{root}/>"),
                "text".to_owned(),
                "\u{0}".to_owned(),
            ] {
                let response = endpoint.call(set(target), document.as_bytes(), &[]).await;
                let shown = &document[..document.len().min(100)];
                assert_eq!(response.failure(), (400, "InvalidXmlDocument"), "{target} {shown}");
                assert!(!response.text().contains("root:"), "{response:?}");
            }
            let large = inside("", &" ".repeat(edge.body_bytes_max));
            let response = endpoint.call(set(target), large.as_bytes(), &[]).await;
            assert_eq!(response.failure(), (413, "RequestBodyTooLarge"), "{target}");
        }
        endpoint.is_untouched().await;
    }
}

#[tokio::test]
async fn rejects_xml_in_other_encodings_and_prefixed_names() {
    for edge in EDGES {
        let endpoint = ServedEdge::open(edge, &[]).await;
        for (target, root) in DOCUMENTS {
            let declared =
                |encoding| format!("<?xml version='1.0' encoding='{encoding}'?><{root}/>");
            let prefixed = format!("<x:{root} xmlns:x='urn:x'/>");
            let wide: Vec<_> =
                declared("utf-16").encode_utf16().flat_map(u16::to_le_bytes).collect();
            for document in [
                [b"\xff\xfe", &wide[..]].concat(),
                declared("utf-16").into_bytes(),
                declared("iso-8859-1").into_bytes(),
                prefixed.into_bytes(),
                "\u{feff}\u{feff}".bytes().chain(declared("utf-8").bytes()).collect(),
            ] {
                let response = endpoint.call(set(target), &document, &[]).await;
                let shown = String::from_utf8_lossy(&document);
                assert_eq!(response.failure(), (400, "InvalidXmlDocument"), "{target} {shown}");
            }
            for encoding in ["utf-8", "UTF-8", "us-ascii"] {
                let response = endpoint.call(set(target), declared(encoding).as_bytes(), &[]).await;
                assert!([202, 204].contains(&response.status), "{target} {encoding} {response:?}");
            }
            let with_bom = format!("\u{feff}<{root} xmlns='urn:x' />");
            let response = endpoint.call(set(target), with_bom.as_bytes(), &[]).await;
            assert!([202, 204].contains(&response.status), "{target} {response:?}");
        }
    }
}

#[tokio::test]
async fn rejects_duplicate_json_names_and_unpaired_surrogates() {
    let endpoint = ServedEdge::open(&TABLES, &[]).await;
    for (members, code) in [
        (r#""x":1,"x":1"#, "DuplicatePropertiesSpecified"),
        (r#""x":1,"\u0078":1"#, "DuplicatePropertiesSpecified"),
        (r#""PartitionKey":"q""#, "DuplicatePropertiesSpecified"),
        (
            r#""x":"1","x@odata.type":"Edm.Int64","x@odata.type":"Edm.Int64""#,
            "DuplicatePropertiesSpecified",
        ),
        (r#""x":"\ud800""#, "InvalidInput"),
        (r#""x":"\udc00\ud800""#, "InvalidInput"),
        (r#""\ud800":"x""#, "InvalidInput"),
        (r#""x":"\ud83d\u0041""#, "InvalidInput"),
        (r#""x":"\u00""#, "InvalidInput"),
        ("\"x\":\"\u{1}\"", "InvalidInput"),
        (r#""x":{"y":1}"#, "InvalidInput"),
        (r#""x":[1]"#, "InvalidInput"),
        (r#""x":1e999"#, "InvalidInput"),
        (r#""x":01"#, "InvalidInput"),
        (r#""x":NaN"#, "InvalidInput"),
    ] {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"r",{members}}}"#);
        let response = endpoint.put(body.as_bytes(), &[]).await;
        assert_eq!(response.failure(), (400, code), "{members}");
    }
    endpoint.is_untouched().await;
    let body = r#"{"PartitionKey":"p","RowKey":"r","x":"\ud83d\ude00"}"#;
    assert_eq!(endpoint.put(body.as_bytes(), &[]).await.status, 201);
    assert!(endpoint.get("/things()", &[]).await.text().contains('😀'));
}

#[tokio::test]
async fn service_properties_have_the_limits_of_the_service() {
    let kept = |days: &str| {
        format!("<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy>")
    };
    let none = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
    let logging = |version: &str, retention: &str| {
        format!(
            "<Logging><Version>{version}</Version><Delete>true</Delete><Read>true</Read>\
             <Write>true</Write>{retention}</Logging>"
        )
    };
    let metrics =
        |inside: &str| format!("<HourMetrics><Version>1.0</Version>{inside}{none}</HourMetrics>");
    for edge in EDGES {
        // The table service has one code for every rejected document.
        let (missing, value) = match edge.name {
            "table" => ("InvalidXmlDocument", "InvalidXmlDocument"),
            _ => ("MissingRequiredXmlNode", "InvalidXmlNodeValue"),
        };
        let endpoint = ServedEdge::open(edge, &[]).await;
        let set = async |inside: &str| {
            let target = "/?restype=service&comp=properties";
            let set = Call { method: "PUT", target, content_type: "application/xml", body: "" };
            let text = format!("<StorageServiceProperties>{inside}</StorageServiceProperties>");
            endpoint.call(set, text.as_bytes(), &[]).await
        };
        for inside in [
            logging("1.0", &kept("1")),
            logging("1.0", &kept("365")),
            logging("1.0", none),
            metrics("<Enabled>false</Enabled>"),
            metrics("<Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs>"),
            String::new(),
        ] {
            let response = set(&inside).await;
            assert_eq!(response.status, 202, "{inside}: {response:?}");
        }
        for days in ["0", "366", "70000"] {
            let response = set(&logging("1.0", &kept(days))).await;
            let rule = format!("Days: must be 1 to 365: value=`{days}`");
            assert!(response.text().contains(&rule), "{response:?}");
        }
        for (inside, code) in [
            (logging("1.0", &kept("0")), value),
            (logging("1.0", &kept("366")), value),
            (logging("1.0", &kept("x")), value),
            (logging("1.0", &kept("70000")), value),
            (logging("2.0", none), value),
            (logging("1.0", ""), missing),
            (logging("1.0", "<RetentionPolicy><Enabled>true</Enabled></RetentionPolicy>"), missing),
            (metrics("<Enabled>true</Enabled>"), missing),
            (metrics("<Enabled>false</Enabled><IncludeAPIs>true</IncludeAPIs>"), value),
            ("<Tracing/>".to_owned(), "InvalidXmlDocument"),
        ] {
            let response = set(&inside).await;
            assert_eq!(response.failure(), (400, code), "{inside}");
        }
    }
}
