//! The texts of errors: the sentence of Azure first, once, then what is wrong in the words of the request.

use trestle_tests::{QueueRest, Rest, RestRequest, RestResponse};

/// The lines of the message of an error.
fn lines(response: &RestResponse) -> Vec<String> {
    let text = match serde_json::from_slice::<serde_json::Value>(&response.body) {
        Ok(body) => body["odata.error"]["message"]["value"].as_str().expect("a text").to_owned(),
        Err(_) => response.only("Message"),
    };
    text.lines().map(str::to_owned).collect()
}

/// How often a text has a sentence, in any case and with or without its final dot.
fn occurrences(text: &str, sentence: &str) -> usize {
    let words = sentence.strip_suffix('.').unwrap_or(sentence).to_lowercase();
    text.to_lowercase().matches(&words).count()
}

const INPUT: &str = "One of the request inputs is not valid.";
const NAME: &str = "The property name is invalid.";
const LARGE: &str = "The property value exceeds the maximum allowed size (64KB). If the property value \
                     is a string, it is UTF-16 encoded and the maximum number of characters should \
                     be 32K or less.";

#[tokio::test]
async fn an_error_of_a_property_begins_with_the_sentence_and_names_the_property() {
    let rest = Rest::start();
    rest.table("tab").await;
    let long = format!(r#""first":1,"long":"{}""#, "x".repeat(32_769));
    for (members, sentence, named) in [
        (r#""a":1,"a-b":1"#, NAME, "a-b: "),
        (r#""a":1,"x":1,"x":2"#, "A property is specified more than one time.", "x"),
        (r#""a":1,"g@odata.type":"Edm.Guid","g":"z""#, INPUT, "g: "),
        (r#""a":1,"n":2147483648"#, INPUT, "n: "),
        (&*long, LARGE, "long: "),
    ] {
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"r",{members}}}"#);
        let response = rest.send(RestRequest::json("POST", "/tab", &body)).await;

        let lines = lines(&response);

        assert_eq!((response.status, lines[0].as_str()), (400, sentence), "{lines:?}");
        assert!(lines[1].starts_with(named), "{lines:?}");
        assert!(!lines[1].contains("properties[") && !lines[1].contains("entity."), "{lines:?}");
        assert_eq!(lines.len(), 4, "sentence, detail, request and time: {lines:?}");
    }
    let key = r#"{"PartitionKey":"a/b","RowKey":"r"}"#;
    let found = lines(&rest.send(RestRequest::json("POST", "/tab", key)).await);
    assert_eq!(found[0], "One of the request inputs is out of range.", "{found:?}");
    assert!(found[1].starts_with("PartitionKey: "), "{found:?}");
}

#[tokio::test]
async fn a_name_with_quotes_and_brackets_is_that_of_the_request() {
    let rest = Rest::start();
    rest.table("tab").await;
    for name in [r#"a"b"#, r#"a"]"#, r#"a"]: x"#, r"a\b", r#"\""#, r#"properties["a"]"#, "[a]"] {
        let member = serde_json::Value::from(name);
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"r",{member}:1}}"#);
        let response = rest.send(RestRequest::json("POST", "/tab", &body)).await;

        let lines = lines(&response);

        assert_eq!((response.status, lines[0].as_str()), (400, NAME), "{lines:?}");
        assert!(lines[1].starts_with(&format!("{name}: property name is")), "{name}: {lines:?}");
        assert_eq!(lines.len(), 4, "{lines:?}");
    }
}

#[tokio::test]
async fn an_error_in_a_batch_names_the_property_too() {
    let rest = Rest::start();
    rest.table("tab").await;
    let insert = |row: usize, members: &str| {
        format!(
            "--c\r\nContent-Type: application/http\r\n\r\nPOST /tab HTTP/1.1\r\n\
             Content-Type: application/json\r\n\r\n\
             {{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\",{members}}}\r\n"
        )
    };
    let parts = [insert(0, "\"x\":1"), insert(1, "\"x\":1,\"a-b\":1")].concat();
    let body = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--\r\n--b--\r\n"
    );
    let request = RestRequest::table("POST", "/$batch")
        .with("content-type", "multipart/mixed; boundary=b")
        .body(body);

    let response = rest.send(request).await;

    assert_eq!(response.status, 202, "{response:?}");
    let text = response.text();
    assert!(text.contains("\r\nContent-Transfer-Encoding: binary\r\n"), "{text}");
    assert!(text.contains("1:The property name is invalid.\\na-b: "), "{text}");
}

#[tokio::test]
async fn every_error_of_tables_begins_with_its_sentence_once() {
    let rest = Rest::start();
    rest.table("tab").await;
    let get = |target: &str| RestRequest::table("GET", target);
    let keys = "The number of keys specified in the URI does not match number of key properties \
                for the resource";
    for (request, sentence) in [
        (get("/absent"), "The table specified does not exist."),
        (get("/tab(PartitionKey='p',RowKey='r')"), "The specified resource does not exist."),
        (get("/tab(PartitionKey='p')"), keys),
        (get("/tab?$filter=a%20b"), "Syntax error at position "),
        (get("/tab?$top=x"), INPUT),
        (
            get("/tab?NextPartitionKey=x"),
            "Value for one of the query parameters specified in the request URI is invalid.",
        ),
        (
            get("/tab?$orderby=x"),
            "The requested operation is not implemented on the specified resource.",
        ),
        (get("/tab").with("accept", "application/atom+xml"), "Atom format is not supported."),
        (get("/"), "The requested URI does not represent any resource on the server."),
        (
            get("/tab").with("x-ms-version", "soon"),
            "The value for one of the HTTP headers is not in the correct format.",
        ),
        (
            RestRequest::table("DELETE", "/tab(PartitionKey='p',RowKey='r')"),
            "An HTTP header that's mandatory for this request is not specified.",
        ),
        (
            RestRequest::table("PATCH", "/Tables").with("content-length", "0"),
            "The resource doesn't support specified Http Verb.",
        ),
        (
            get("/tab").scheme(None),
            "Server failed to authenticate the request. Please refer to the information in the \
             www-authenticate header.",
        ),
        (
            get("/tab").scheme(None).with("authorization", "Bearer x"),
            "Authentication information is not given in the correct format. Check the value of \
             Authorization header.",
        ),
    ] {
        let response = rest.send(request.clone()).await;
        let text = response.text().to_owned();
        let message = text.split_once("odata.error").map_or_else(
            || {
                let (_, rest) = text.split_once("<m:message xml:lang=\"en-US\">").expect("XML");
                rest.replace("&amp;", "&")
            },
            |_| lines(&response).join("\n"),
        );
        assert!(message.starts_with(sentence), "{request:?}: {message}");
        assert_eq!(occurrences(&message, sentence), 1, "{message}");
    }
}

#[tokio::test]
async fn every_error_of_queues_begins_with_its_sentence_once() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let range = "One of the query parameters specified in the request URI is outside the \
                 permissible range.";
    for (request, sentence) in [
        (RestRequest::queue("GET", "/absent?comp=acl"), "The specified queue does not exist."),
        (RestRequest::queue("GET", "/orders/messages?numofmessages=33"), range),
        (
            RestRequest::queue("GET", "/orders"),
            "A query parameter that's mandatory for this request is not specified.",
        ),
        (
            RestRequest::queue("GET", "/a/b/c/d"),
            "The requested URI does not represent any resource on the server.",
        ),
        (RestRequest::queue("GET", "/?comp=list&marker=x"), "The specified marker is invalid."),
        (
            RestRequest::xml("POST", "/orders/messages", "<x"),
            "XML specified is not syntactically valid.",
        ),
        (
            RestRequest::xml("POST", "/orders/messages", "<QueueMessage/>"),
            "An XML node that's mandatory for this request is not specified.",
        ),
        (
            RestRequest::queue("PUT", "/new").with("x-ms-meta-1", "x").with("content-length", "0"),
            "The metadata specified is invalid. It has characters that are not permitted.",
        ),
    ] {
        let response = rest.send(request.clone()).await;
        let message = lines(&response).join("\n");
        assert!(message.starts_with(sentence), "{request:?}: {message}");
        assert_eq!(occurrences(&message, sentence), 1, "{message}");
    }
}

#[tokio::test]
async fn an_error_of_a_queue_names_the_part_of_the_request_and_has_no_index() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let message =
        |text: &str| format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    let send = |target: &str, text: &str| RestRequest::xml("POST", target, message(text));
    let of = |name: &str| format!("/orders/messages{name}");
    let id = "/00000000-0000-0000-0000-000000000000?popreceipt=abc";
    let policy = "<SignedIdentifier><Id>a</Id><AccessPolicy><Permission>z</Permission></AccessPolicy>\
                  </SignedIdentifier>";
    let policies = format!("<SignedIdentifiers>{policy}</SignedIdentifiers>");
    let settings = "<StorageServiceProperties><HourMetrics><Version>2.0</Version>\
                    <Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled>\
                    </RetentionPolicy></HourMetrics></StorageServiceProperties>";
    for (request, named) in [
        (RestRequest::queue("DELETE", &of(id)), "popreceipt: "),
        (
            RestRequest::xml("PUT", &of(&format!("{id}&visibilitytimeout=0")), message("a")),
            "popreceipt: ",
        ),
        (send(&of(""), &"a".repeat(65_537)), "MessageText: "),
        (
            send(&of("?visibilitytimeout=9&messagettl=5"), "a"),
            "visibilitytimeout: must be less than messagettl: visibilitytimeout=`9s`, messagettl=`5s`",
        ),
        (RestRequest::xml("PUT", "/orders?comp=acl", &policies), "Permission: "),
        (RestRequest::queue("PUT", "/a_b").with("content-length", "0"), "queue: "),
        (RestRequest::xml("PUT", "/?restype=service&comp=properties", settings), "Version: "),
    ] {
        let found = lines(&rest.send(request.clone()).await);

        assert!(found[1].starts_with(named), "{request:?}: {found:?}");
        assert_eq!(found.len(), 4, "sentence, detail, request and time: {found:?}");
    }
    let deleted = "/00000000-0000-0000-0000-000000000000?popreceipt=AQAAAQAAAAACAAAAAQjfSyos7Jt6";
    let found = lines(&rest.send(RestRequest::queue("DELETE", &of(deleted))).await);
    assert_eq!(found[0], "The specified message does not exist.", "{found:?}");
    assert!(found[1].starts_with("it may have been received or updated since: "), "{found:?}");
}

#[tokio::test]
async fn an_error_of_a_table_names_the_part_of_the_request() {
    let rest = Rest::start();
    rest.table("tab").await;
    let strong = RestRequest::json("PUT", "/tab(PartitionKey='p',RowKey='r')", "{}")
        .with("if-match", "\"strong\"");
    for (request, named) in [
        (RestRequest::json("POST", "/Tables", r#"{"TableName":"a"}"#), "TableName: "),
        (strong, "If-Match: "),
    ] {
        let found = lines(&rest.send(request.clone()).await);

        assert!(found[1].starts_with(named), "{request:?}: {found:?}");
    }
}

#[tokio::test]
async fn an_error_names_tables_keys_and_messages_by_the_names_of_rest() {
    let rest = Rest::start();
    rest.table("tab").await;
    rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    let entity = |row: &str| format!("/tab(PartitionKey='p',RowKey='{row}')");
    let stale = "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"";
    let existing = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    for (request, status, details) in [
        (RestRequest::table("GET", &entity("no")), 404, "PartitionKey=`p`, RowKey=`no`"),
        (RestRequest::json("POST", "/tab", existing), 409, "PartitionKey=`p`, RowKey=`r`"),
        (
            RestRequest::json("PUT", &entity("r"), "{}").with("if-match", stale),
            412,
            "PartitionKey=`p`, RowKey=`r`",
        ),
        (RestRequest::table("GET", "/absent"), 404, "TableName=`absent`"),
    ] {
        let response = rest.send(request).await;
        assert_eq!((response.status, &*lines(&response)[1]), (status, details));
    }
    let format = rest.send(RestRequest::table("GET", "/tab?$format=foo")).await;
    assert!(format.text().contains("\n$format: only application/json is served: value=`foo`"));

    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let id = "00000000-0000-0000-0000-000000000000";
    let receipt = "AQAAAQAAAAACAAAAAQjfSyos7Jt6";
    let deleted = format!("/orders/messages/{id}?popreceipt={receipt}");
    let found = lines(&rest.send(RestRequest::queue("DELETE", &deleted)).await);
    assert!(found[1].ends_with(&format!(": messageid=`{id}`")), "{found:?}");
}

#[tokio::test]
async fn an_error_adds_only_what_its_sentence_does_not_say() {
    let rest = Rest::start();
    rest.table("tab").await;
    let many = (0..300).map(|at| format!("\"m{at}\":1")).collect::<Vec<_>>().join(",");
    let entity = |members: &str| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",{members}}}");
    let insert = |members: &str| RestRequest::json("POST", "/tab", &entity(members));
    let rule = "a-b: property name is not a letter or `_`, then letters, digits, marks or `_`";
    for (request, details) in [
        (RestRequest::json("POST", "/Tables", r#"{"TableName":"tab"}"#), "TableName=`tab`"),
        (insert(r#""x":1,"x":2"#), "x"),
        (insert(r#""PartitionKey":"q""#), "PartitionKey"),
        (insert(r#""a-b":1"#), rule),
        (insert(&many), "body: count=`300`, max=`252`"),
        (RestRequest::table("DELETE", "/tab"), "method=`DELETE`"),
    ] {
        let response = rest.send(request.clone()).await;
        let found = lines(&response);
        assert_eq!((found[1].as_str(), found.len()), (details, 4), "{request:?}: {found:?}");
    }
    let queues = QueueRest::start().await;
    let patch = RestRequest::queue("PATCH", "/orders/messages").with("content-length", "0");
    assert_eq!(lines(&queues.send(patch).await)[1], "method=`PATCH`");
}

#[tokio::test]
async fn an_operation_that_is_invalid_in_its_batch_has_its_key_alone() {
    let rest = Rest::start();
    rest.table("tab").await;
    let insert = |partition: &str| {
        format!(
            "--c\r\nContent-Type: application/http\r\n\r\nPOST /tab HTTP/1.1\r\n\
             Content-Type: application/json\r\n\r\n\
             {{\"PartitionKey\":\"{partition}\",\"RowKey\":\"r\"}}\r\n"
        )
    };
    for (second, details) in [
        (
            "p",
            "1:The batch request contains multiple changes with same row key. An entity can \
               appear only once in a batch request.\\nRowKey=`r`\\n",
        ),
        ("q", "1:All commands in a batch must operate on same entity group.\\nPartitionKey=`q`\\n"),
    ] {
        let parts = [insert("p"), insert(second)].concat();
        let begin = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n";
        let request = RestRequest::table("POST", "/$batch")
            .with("content-type", "multipart/mixed; boundary=b")
            .body(format!("{begin}{parts}--c--\r\n--b--\r\n"));

        let response = rest.send(request).await;

        assert!(response.text().contains(details), "{response:?}");
    }
}
