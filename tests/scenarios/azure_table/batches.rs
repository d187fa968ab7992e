//! Entity group transactions.

use std::fmt::Write as _;

use trestle_tests::{Rest, RestRequest, RestResponse};

/// A batch with one change set of these requests, each a line and its headers and body.
fn batch(requests: &[String]) -> RestRequest {
    let mut body = "--b1\r\nContent-Type: multipart/mixed; boundary=c1\r\n\r\n".to_owned();
    for request in requests {
        let part =
            "--c1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
        write!(body, "{part}{request}\r\n").expect("text");
    }
    body.push_str("--c1--\r\n--b1--\r\n");
    whole(&body)
}

fn whole(body: &str) -> RestRequest {
    RestRequest::table("POST", "/$batch")
        .with("content-type", "multipart/mixed; boundary=b1")
        .body(body)
}

fn insert(rest: &Rest, partition: &str, row: &str, headers: &str) -> String {
    format!(
        "POST {}/tab HTTP/1.1\r\nContent-Type: application/json\r\n\
         Accept: application/json;odata=nometadata\r\n{headers}\r\n\
         {{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"}}",
        rest.base()
    )
}

/// The statuses of the parts of an answer.
fn statuses(response: &RestResponse) -> Vec<u16> {
    assert_eq!(response.status, 202, "{response:?}");
    let parts = response.text().split("HTTP/1.1 ").skip(1);
    parts.map(|part| part[..3].parse().expect("a status")).collect()
}

/// The status and the message of the only part, which failed.
fn failed(response: &RestResponse) -> (u16, String) {
    let statuses = statuses(response);
    let [status] = statuses[..] else { panic!("one part: {response:?}") };
    let start = response.text().find("{\"odata.error\"").expect("an error");
    let body = response.text()[start..].lines().next().expect("a line");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let error = &body["odata.error"];
    let message = error["message"]["value"].as_str().expect("text");
    let (index, text) = message.split_once(':').expect("an index");
    let code = error["code"].as_str().expect("text");
    (status, format!("{index} {code} {}", text.lines().next().expect("a line")))
}

#[tokio::test]
async fn batch_answers_each_operation_in_order() {
    let rest = Rest::start();
    rest.table("tab").await;
    rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"old","x":1}"#).await;
    let at = |row: &str| format!("{}/tab(PartitionKey='p',RowKey='{row}')", rest.base());

    let response = rest
        .send(batch(&[
            insert(&rest, "p", "1", "Prefer: return-no-content\r\nContent-ID: 7\r\n"),
            insert(&rest, "p", "2", "Content-ID: 0\r\n"),
            format!("MERGE {} HTTP/1.1\r\nIf-Match: *\r\n\r\n{{\"y\":2}}", at("old")),
            "PUT /tab(PartitionKey='p', RowKey='3') HTTP/1.1\n\n{\"z\":3}".to_owned(),
            format!("POST {} HTTP/1.1\r\nX-HTTP-Method: PATCH\r\n\r\n{{}}\r\n", at("4")),
        ]))
        .await;

    assert_eq!(statuses(&response), [204, 201, 204, 204, 204], "{response:?}");
    assert!(
        response.header("content-type").starts_with("multipart/mixed; boundary=batchresponse_")
    );
    let text = response.text();
    let first = format!("Location: {0}\r\nDataServiceId: {0}\r\nETag: W/\"datetime'", at("1"));
    assert!(text.contains(&first), "{text}");
    assert!(text.contains("Content-ID: 7\r\n") && !text.contains("Content-ID: 0"), "{text}");
    assert!(text.contains(r#"{"PartitionKey":"p","RowKey":"2","Timestamp":"#), "{text}");
    let all = rest.send(RestRequest::table("GET", "/tab?$select=RowKey,x,y,z")).await;
    assert_eq!(
        all.text(),
        concat!(
            r#"{"value":[{"RowKey":"1","x":null,"y":null,"z":null},"#,
            r#"{"RowKey":"2","x":null,"y":null,"z":null},"#,
            r#"{"RowKey":"3","x":null,"y":null,"z":3},"#,
            r#"{"RowKey":"4","x":null,"y":null,"z":null},"#,
            r#"{"RowKey":"old","x":1,"y":2,"z":null}]}"#
        )
    );
    let delete = format!("DELETE {} HTTP/1.1\r\nIf-Match: *\r\n", at("1"));
    assert_eq!(statuses(&rest.send(batch(&[delete])).await), [204]);
}

#[tokio::test]
async fn failed_batch_names_the_operation_and_changes_nothing() {
    let rest = Rest::start();
    rest.table("tab").await;
    rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"old"}"#).await;
    let new = |row: &str| insert(&rest, "p", row, "");
    let at =
        |table: &str, row: &str| format!("/{table}(PartitionKey='p',RowKey='{row}') HTTP/1.1\r\n");
    let update =
        |row: &str, etag: &str| format!("PUT {}If-Match: {etag}\r\n\r\n{{}}", at("tab", row));
    let stale = "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"";
    let many: Vec<String> = (0..101).map(|row| new(&row.to_string())).collect();

    for (requests, status, message) in [
        (
            vec![new("1"), new("old")],
            409,
            "1 EntityAlreadyExists The specified entity already exists.",
        ),
        (vec![new("old")], 409, "0 EntityAlreadyExists The specified entity already exists."),
        (
            vec![new("1"), update("no", "*")],
            404,
            "1 ResourceNotFound The specified resource does not exist.",
        ),
        (
            vec![new("1"), update("old", stale)],
            412,
            "1 UpdateConditionNotSatisfied The update condition specified in the request was not satisfied.",
        ),
        (
            vec![new("1"), insert(&rest, "q", "1", "")],
            400,
            "1 CommandsInBatchActOnDifferentPartitions All commands in a batch must operate on same entity group.",
        ),
        (
            vec![new("1"), format!("PUT {}\r\n{{}}", at("other", "2"))],
            400,
            "1 CommandsInBatchActOnDifferentPartitions All commands in a batch must operate on same entity group.",
        ),
        (
            vec![new("1"), new("2"), new("1")],
            400,
            "2 InvalidDuplicateRow The batch request contains multiple changes with same row key. \
             An entity can appear only once in a batch request.",
        ),
        (
            vec![new("1"), format!("DELETE {}\r\n", at("tab", "old"))],
            400,
            "1 MissingRequiredHeader An HTTP header that's mandatory for this request is not specified.",
        ),
        (
            vec![format!("PUT {}\r\n{{}}", at("absent", "1"))],
            404,
            "0 TableNotFound The table specified does not exist.",
        ),
        (
            many,
            400,
            "99 InvalidInput The batch request operation exceeds the maximum 100 changes per change set.",
        ),
    ] {
        let response = rest.send(batch(&requests)).await;
        assert_eq!(failed(&response), (status, message.to_owned()), "{response:?}");
    }
    let malformed = new("2").replace("\"RowKey\"", "RowKey");
    let (status, message) = failed(&rest.send(batch(&[new("1"), malformed])).await);
    assert!(status == 400 && message.starts_with("1 InvalidInput"), "{message}");
    let get = format!("GET {}\r\n", at("tab", "old"));
    let (status, message) = failed(&rest.send(batch(&[new("1"), get])).await);
    assert!(status == 400 && message.starts_with("1 InvalidInput"), "{message}");

    let left = rest.send(RestRequest::table("GET", "/tab?$select=RowKey")).await;
    assert_eq!(left.text(), r#"{"value":[{"RowKey":"old"}]}"#);
}

#[tokio::test]
async fn batch_may_be_one_query_or_empty() {
    let rest = Rest::start();
    rest.table("tab").await;
    rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"r","x":1}"#).await;
    let query = |row: &str| {
        let part = "--b1\r\nContent-Type: application/http\r\n\r\n";
        let accept = "Accept: application/json;odata=nometadata";
        let line = format!("GET {}/tab(PartitionKey='p',RowKey='{row}') HTTP/1.1", rest.base());
        whole(&format!("{part}{line}\r\n{accept}\r\n\r\n--b1--"))
    };

    let found = rest.send(query("r")).await;
    assert_eq!(statuses(&found), [200]);
    assert!(!found.text().contains("changeset") && found.text().contains(r#""x":1}"#), "{found:?}");
    assert_eq!(
        failed(&rest.send(query("no")).await),
        (404, "0 ResourceNotFound The specified resource does not exist.".to_owned())
    );
    let list =
        whole("--b1\r\nContent-Type: application/http\r\n\r\nGET /tab() HTTP/1.1\r\n\r\n--b1--");
    assert_eq!(failed(&rest.send(list).await).0, 501);

    let empty = rest.send(batch(&[])).await;
    assert_eq!(statuses(&empty), [0; 0]);
    assert!(empty.text().contains("--changesetresponse_"), "{empty:?}");
    for body in ["", "--b1--", "--b1\r\n\r\n--b1--\r\n", "nothing"] {
        assert_eq!(rest.send(whole(body)).await.failure(), (400, "InvalidInput"), "{body:?}");
    }
    let set = "--b1\r\nContent-Type: multipart/mixed; boundary=c1\r\n\r\n--c1--\r\n";
    let two = rest.send(whole(&format!("{set}{set}--b1--"))).await;
    assert_eq!(two.failure(), (400, "InvalidInput"));
    let form = whole("--b1--").with("content-type", "application/json");
    assert_eq!(rest.send(form).await.failure(), (400, "InvalidInput"));
}

#[tokio::test]
async fn rejects_a_batch_over_the_size_limit() {
    let rest = Rest::start();
    rest.table("tab").await;
    let large = insert(&rest, "p", "1", "")
        .replace("\"RowKey\"", &format!("\"x\":\"{}\",\"RowKey\"", "x".repeat(4 << 20)));
    assert_eq!(rest.send(batch(&[large])).await.failure(), (413, "RequestBodyTooLarge"));
}

#[tokio::test]
async fn multipart_headers_around_a_request_are_ignored() {
    let rest = Rest::start();
    rest.table("tab").await;
    let request = insert(&rest, "p", "1", "Prefer: return-content\r\n");
    let format =
        request.replacen("/tab HTTP", "/tab?$format=application/json;odata=fullmetadata HTTP", 1);
    let body = format!(
        "text before\r\n--b 1\nContent-Type: multipart/mixed; boundary=\"c 1\"\n\n\
         --c 1\nContent-Type: application/http\nContent-ID: 9\n\n{format}\n\n--c 1--\n\n--b 1"
    );
    let kind = "multipart/mixed; charset=utf-8; boundary=\"b 1\"";

    let response = rest.send(whole(&body).with("content-type", kind)).await;

    assert_eq!(statuses(&response), [201], "{response:?}");
    let text = response.text();
    assert!(!text.contains("Content-ID"), "that of the part is not the request's: {text}");
    assert!(text.contains("Preference-Applied: return-content\r\n"), "{text}");
    assert!(text.contains("odata=fullmetadata;streaming=true"), "{text}");
    assert!(text.contains("\"odata.editLink\":\"tab(PartitionKey='p',RowKey='1')\""), "{text}");
}

#[tokio::test]
async fn rejects_a_batch_with_unread_parts() {
    let rest = Rest::start();
    rest.table("tab").await;
    rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"old"}"#).await;
    let outer = "--b1\r\nContent-Type: multipart/mixed; boundary=c1\r\n\r\n";
    let part = |request: &str| format!("Content-Type: application/http\r\n\r\n{request}\r\n");
    let new = |row: &str| part(&insert(&rest, "p", row, ""));
    let at = "/tab(PartitionKey='p',RowKey='old')";
    let delete = part(&format!("DELETE {at} HTTP/1.1\r\nIf-Match: *\r\n\r\n"));
    let good = format!("{outer}--c1\r\n{}--c1\r\n{}--c1--\r\n--b1--\r\n", new("1"), new("2"));

    let mut bodies = vec![
        // Delimiters of the change set are missing: all, the first, or the last.
        good.replace("--c1", "--c2"),
        good.replacen("--c1\r\n", "", 1),
        good.replace("--c1--\r\n", ""),
        // Another request follows the end of the change set.
        good.replace("--c1--\r\n", &format!("--c1--\r\n{}", new("3"))),
        good.replace("--c1--\r\n", &format!("--c1--\r\n--c1\r\n{}--c1--\r\n", new("3"))),
        good.replace("--b1--\r\n", ""),
        // A boundary of the batch is missing, or the closing one is too early.
        format!("{}{good}", good.replace("--b1--\r\n", "").replacen("--b1\r\n", "", 1)),
        format!("{good}{good}"),
        format!("--b1\r\n{}{outer}", part(&format!("GET {at} HTTP/1.1\r\n\r\n")))
            .replace(&format!("\r\n{outer}"), &format!("\r\n{}", good.replacen("--b1\r\n", "", 1))),
    ];
    // Truncated at the end of a line.
    bodies.extend(good.match_indices("\r\n").map(|(end, _)| good[..end].to_owned()));
    bodies.retain(|body| !body.ends_with("\r\n--b1--"));
    for body in bodies {
        let response = rest.send(whole(&body)).await;
        assert_eq!(response.failure(), (400, "InvalidInput"), "{body}\n{response:?}");
    }
    // A delimiter is missing after a delete, or after a request with a body.
    for first in [delete, new("1")] {
        let glued = format!("{outer}--c1\r\n{first}{}--c1--\r\n--b1--\r\n", new("2"));
        let (status, message) = failed(&rest.send(whole(&glued)).await);
        assert!(status == 400 && message.starts_with("0 InvalidInput"), "{message}");
    }
    let left = rest.send(RestRequest::table("GET", "/tab?$select=RowKey")).await;
    assert_eq!(left.text(), r#"{"value":[{"RowKey":"old"}]}"#);
    assert_eq!(statuses(&rest.send(whole(&good)).await), [201, 201]);
}

#[tokio::test]
async fn batch_acts_only_on_its_own_account() {
    let rest = Rest::start();
    rest.table("tab").await;
    let to = |target: &str, row: &str| {
        let own = format!("{}/tab HTTP", rest.base());
        vec![insert(&rest, "p", row, "").replace(&own, &format!("{target} HTTP"))]
    };
    for target in [
        "https://other.table.core.windows.net/tab",
        "http://127.0.0.1:10002/other/tab",
        "/other/tab",
    ] {
        let (status, message) = failed(&rest.send(batch(&to(target, "1"))).await);
        assert!(status == 404 && message.starts_with("0 ResourceNotFound"), "{target}: {message}");
    }
    for target in [
        "http://127.0.0.1:10002/devstoreaccount1-secondary/tab",
        "https://devstoreaccount1-secondary.table.core.windows.net/tab",
        "/devstoreaccount1-secondary/tab",
    ] {
        let (status, message) = failed(&rest.send(batch(&to(target, "1"))).await);
        let code = "0 InsufficientAccountPermissions";
        assert!(status == 403 && message.starts_with(code), "{target}: {message}");
    }
    let none = rest.send(RestRequest::table("GET", "/tab")).await;
    assert_eq!(none.text(), r#"{"value":[]}"#);
    // Under any name of this server, and also without the account.
    for (row, target) in [
        "http://localhost:10002/devstoreaccount1/tab",
        "http://[::1]:1/devstoreaccount1/tab",
        "https://storage.example.com/devstoreaccount1/tab",
        "https://devstoreaccount1.table.core.windows.net/tab",
        "https://storage.example.com/tab",
        // Behind a proxy, by a name that resembles that of another account.
        "https://prod.table.example.com/devstoreaccount1/tab",
        "/devstoreaccount1/tab",
        "/tab",
        "tab",
    ]
    .into_iter()
    .enumerate()
    {
        let response = rest.send(batch(&to(target, &row.to_string()))).await;
        assert_eq!(statuses(&response), [201], "{target}: {response:?}");
    }
}

#[tokio::test]
async fn secondary_answers_a_query_in_a_batch_and_rejects_a_change() {
    let rest = Rest::start();
    rest.table("tab").await;
    rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    let at_secondary = |request: RestRequest| request.at("/devstoreaccount1-secondary/$batch");
    let get = |target: &str| {
        let part = "--b1\r\nContent-Type: application/http\r\n\r\n";
        whole(&format!("{part}GET {target} HTTP/1.1\r\n\r\n--b1--"))
    };
    let key = "(PartitionKey='p',RowKey='r')";

    for (target, status) in [
        (format!("/tab{key}"), 200),
        (format!("http://h/devstoreaccount1-secondary/tab{key}"), 200),
        (format!("{}/tab{key}", rest.base()), 200),
        (format!("/absent{key}"), 404),
        ("/tab()".to_owned(), 501),
    ] {
        let response = rest.send(at_secondary(get(&target))).await;
        assert_eq!(statuses(&response), [status], "{target}: {response:?}");
    }
    let target = format!("/devstoreaccount1-secondary/tab{key}");
    assert_eq!(statuses(&rest.send(get(&target)).await), [200]);

    let rejected = (403, "InsufficientAccountPermissions");
    let new = insert(&rest, "p", "1", "");
    let bad = new.replace("POST", "TRACE");
    for requests in [vec![new], vec![bad], vec![]] {
        let response = rest.send(at_secondary(batch(&requests))).await;
        assert_eq!(response.failure(), rejected, "{requests:?}");
    }
}

#[tokio::test]
async fn failed_query_in_a_batch_is_answered_outside_a_change_set() {
    let rest = Rest::start();
    rest.table("tab").await;
    let key = "(PartitionKey='p',RowKey='r')";
    for (target, status) in [
        (format!("/tab{key}"), 404),
        (format!("/tab{key}?$expand=x"), 501),
        ("/tab()".to_owned(), 501),
        (format!("/tab{key}?$format=application/atom%2Bxml"), 415),
        ("/tab(x)".to_owned(), 400),
    ] {
        let part = "--b1\r\nContent-Type: application/http\r\n\r\n";
        let response =
            rest.send(whole(&format!("{part}GET {target} HTTP/1.1\r\n\r\n--b1--"))).await;
        assert_eq!(failed(&response).0, status, "{target}");
        assert!(!response.text().contains("changeset"), "{target}: {response:?}");
    }
}
