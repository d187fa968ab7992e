//! Bodies of batches, and the operations or the error of each.

use http::{Method, Request};
use proptest::prelude::*;
use tonic::body::Body;
use trestle_proto::table::v1::WriteMode;

use super::*;

/// The head of a batch, whose body has the boundary `b`.
fn head_of(host: &str, target: &str, content_type: &str) -> RequestHead {
    let request = Request::builder().method(Method::POST).uri(target);
    let request = request.header("host", host).header("content-type", content_type);
    let mut request = request.body(Body::empty()).expect("a request");
    RequestHead::take(&mut request, "table").expect("a head")
}

fn head() -> RequestHead {
    head_of("127.0.0.1:10002", "/acme/$batch", "multipart/mixed; boundary=b")
}

/// A body with a change set of these requests.
fn change_set<T: AsRef<str>>(requests: &[T]) -> String {
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for request in requests {
        body.push_str("--c\r\nContent-Type: application/http\r\n\r\n");
        body.push_str(request.as_ref());
        body.push_str("\r\n");
    }
    body + "--c--\r\n\r\n--b--\r\n"
}

/// A body with a query and no change set.
fn query_part(request: &str) -> String {
    format!("--b\r\nContent-Type: application/http\r\n\r\n{request}\r\n--b--\r\n")
}

fn insert(target: &str, row_key: &str) -> String {
    format!("POST {target} HTTP/1.1\r\n\r\n{{\"PartitionKey\":\"p\",\"RowKey\":\"{row_key}\"}}")
}

fn delete(target: &str) -> String {
    format!("DELETE {target}(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n")
}

/// The table and the operations of a change set.
fn changes_of(body: &str) -> (String, Vec<BatchOperation>, Vec<BatchPart>) {
    match plan(&head(), body.as_bytes()) {
        Ok(Plan::Changes { table, operations, parts }) => (table, operations, parts),
        other => panic!("not a change set: {other:?}"),
    }
}

/// The error of a batch that belongs to no operation.
fn whole(head: &RequestHead, body: &str) -> Reason {
    match plan(head, body.as_bytes()) {
        Err(Stop::Whole(fault)) => fault.reason,
        other => panic!("not an error of the batch: {other:?}"),
    }
}

/// The error of one of the changes: its reason, and its position.
fn change_error(head: &RequestHead, body: &str) -> (Reason, Option<usize>) {
    match plan(head, body.as_bytes()) {
        Err(Stop::Change(fault, _)) => (fault.reason, fault.index),
        other => panic!("not an error of a change: {other:?}"),
    }
}

/// The key of an operation.
fn key_of(operation: &BatchOperation) -> (&str, &str) {
    use batch_operation::Operation as Proto;
    let entity = match operation.operation.as_ref().expect("an operation") {
        Proto::Insert(insert) => insert.entity.as_ref(),
        Proto::Update(update) => update.entity.as_ref(),
        Proto::Upsert(upsert) => upsert.entity.as_ref(),
        Proto::Delete(delete) => return (&delete.partition_key, &delete.row_key),
    };
    let entity = entity.expect("an entity");
    (&entity.partition_key, &entity.row_key)
}

#[test]
fn each_verb_of_a_change_set_becomes_its_own_operation() {
    use batch_operation::Operation as Proto;
    const ENTITY: &str = "/acme/tab(PartitionKey='p',RowKey='r')";
    let change = |verb: &str, headers: &str| {
        let body = change_set(&[format!("{verb} {ENTITY} HTTP/1.1\r\n{headers}\r\n{{}}")]);
        let (table, operations, _) = changes_of(&body);
        assert_eq!((table.as_str(), key_of(&operations[0])), ("tab", ("p", "r")), "{verb}");
        operations[0].operation.clone().expect("an operation")
    };
    let any = "If-Match: *\r\n";
    for (verb, headers, mode) in [
        ("PUT", "", WriteMode::Replace),
        ("PATCH", "", WriteMode::Merge),
        ("MERGE", "", WriteMode::Merge),
        ("POST", "X-HTTP-Method: MERGE\r\n", WriteMode::Merge),
    ] {
        let Proto::Upsert(upsert) = change(verb, headers) else { panic!("no upsert: {verb}") };
        assert_eq!(upsert.mode(), mode, "{verb}");
        let Proto::Update(update) = change(verb, &format!("{headers}{any}")) else {
            panic!("no update: {verb}")
        };
        assert_eq!((update.mode(), update.if_match.as_deref()), (mode, Some("*")), "{verb}");
    }
    let (_, operations, _) = changes_of(&change_set(&[delete("/acme/tab")]));
    let Some(Proto::Delete(deleted)) = &operations[0].operation else { panic!("no delete") };
    assert_eq!(deleted.if_match.as_deref(), Some("*"));
    let (_, operations, _) = changes_of(&change_set(&[insert("/acme/tab", "new")]));
    assert!(matches!(operations[0].operation, Some(Proto::Insert(_))));
    assert_eq!(key_of(&operations[0]), ("p", "new"));
}

#[test]
fn a_change_is_addressed_with_and_without_the_account() {
    for target in [
        "/acme/tab",
        "/tab",
        "http://127.0.0.1:10002/acme/tab",
        "https://acme.table.core.windows.net/tab",
        "http://acme.table.localhost:10002/tab",
        // A proxy whose host name looks like that of an account.
        "https://proxy.table.example.com/acme/tab",
    ] {
        let (table, operations, _) = changes_of(&change_set(&[insert(target, "r")]));
        assert_eq!((table.as_str(), operations.len()), ("tab", 1), "{target}");
    }
    let of_host = head_of("acme.table.localhost", "/$batch", "multipart/mixed; boundary=b");
    let planned = plan(&of_host, change_set(&[insert("/tab", "r")]).as_bytes());
    assert!(matches!(planned, Ok(Plan::Changes { table, .. }) if table == "tab"));
}

#[test]
fn rejects_a_change_of_another_account_or_at_its_replica() {
    for (target, reason) in [
        ("/other/tab", Reason::ResourceNotFound),
        ("https://other.table.core.windows.net/tab", Reason::ResourceNotFound),
    ] {
        let body = change_set(&[insert(target, "r")]);
        assert_eq!(change_error(&head(), &body), (reason, Some(0)), "{target}");
    }
    let own = plan(&head(), change_set(&[insert("/acme/tab", "r")]).as_bytes());
    assert!(own.is_ok());
    let expected = read_only().reason;
    for target in ["/acme-secondary/tab", "http://acme-secondary.table.core.windows.net/tab"] {
        let body = change_set(&[insert("/acme/tab", "a"), insert(target, "b")]);
        assert_eq!(change_error(&head(), &body), (expected, Some(1)), "{target}");
    }
}

#[test]
fn all_changes_are_on_one_table_whose_case_is_ignored() {
    let same = [insert("/acme/tab", "a"), insert("/acme/TAB", "b"), delete("/acme/Tab")];
    let (table, operations, _) = changes_of(&change_set(&same));
    assert_eq!((table.as_str(), operations.len()), ("tab", 3), "the spelling of the first");

    let body = change_set(&[insert("/acme/tab", "a"), insert("/acme/tabs", "b")]);
    let reason = Reason::CommandsInBatchActOnDifferentPartitions;
    assert_eq!(change_error(&head(), &body), (reason, Some(1)));
}

#[test]
fn a_change_set_has_at_most_a_hundred_changes() {
    let requests: Vec<_> =
        (0..=BATCH_OPERATIONS_MAX).map(|at| insert("/acme/tab", &at.to_string())).collect();
    let (_, operations, parts) = changes_of(&change_set(&requests[..BATCH_OPERATIONS_MAX]));
    assert_eq!((operations.len(), parts.len()), (100, 100));

    let Err(Stop::Change(fault, _)) = plan(&head(), change_set(&requests).as_bytes()) else {
        panic!("one change too many")
    };
    // The text and the position that clients of Azure receive.
    assert_eq!((fault.reason, fault.index), (Reason::InvalidInput, Some(99)));
    assert!(fault.message.contains("exceeds the maximum 100 changes per change set"));
}

#[test]
fn the_error_of_a_change_has_its_position_and_the_parameters_of_its_response() {
    let bad = "POST /acme/tab HTTP/1.1\r\nContent-ID: 7\r\nPrefer: return-no-content\r\n\
               Accept: application/json;odata=nometadata\r\n\r\n[]";
    let body = change_set(&[insert("/acme/tab", "a"), bad.to_owned(), insert("/acme/tab", "c")]);
    let Err(Stop::Change(fault, part)) = plan(&head(), body.as_bytes()) else {
        panic!("an invalid body")
    };
    assert_eq!((fault.reason, fault.index), (Reason::InvalidInput, Some(1)));
    assert_eq!(part.content_id, Some(HeaderValue::from_static("7")));
    assert_eq!((part.level, part.prefer), (Level::None, Prefer::NoContent));
}

#[test]
fn rejects_operations_that_a_change_set_cannot_have() {
    for (request, reason) in [
        ("GET /acme/tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n", Reason::InvalidInput),
        ("POST /acme/Tables HTTP/1.1\r\n\r\n{\"TableName\":\"x\"}", Reason::InvalidInput),
        ("POST /acme/$batch HTTP/1.1\r\n\r\n", Reason::InvalidInput),
        ("PUT /acme/tab?comp=acl HTTP/1.1\r\n\r\n", Reason::InvalidInput),
        ("PUT /acme/tab HTTP/1.1\r\n\r\n{}", Reason::UnsupportedHttpVerb),
        (
            "DELETE /acme/tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n",
            Reason::MissingRequiredHeader,
        ),
        (
            "DELETE /acme/tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n{}",
            Reason::InvalidInput,
        ),
        (
            "PUT /acme/tab(PartitionKey='p',RowKey='r')?$orderby=x HTTP/1.1\r\n\r\n{}",
            Reason::NotImplemented,
        ),
        ("POST /acme/tab HTTP/1.1\r\n\r\n{\"PartitionKey\":\"p\"}", Reason::PropertiesNeedValue),
    ] {
        assert_eq!(change_error(&head(), &change_set(&[request])), (reason, Some(0)), "{request}");
    }
}

#[test]
fn an_empty_change_set_has_no_operation() {
    let (table, operations, parts) = changes_of(&change_set::<&str>(&[]));
    assert!(table.is_empty() && operations.is_empty() && parts.is_empty());
}

#[test]
fn a_single_query_reads_one_entity_by_its_key() {
    let request = "GET /acme/tab(PartitionKey='p',RowKey='r')?$select=a HTTP/1.1\r\n\
                   Content-ID: 3\r\nAccept: application/json;odata=fullmetadata\r\n\r\n";
    let Ok(Plan::Query(get, part)) = plan(&head(), query_part(request).as_bytes()) else {
        panic!("a query")
    };
    assert_eq!((get.table.as_str(), get.level), ("tab", Level::Full));
    assert_eq!((get.key.partition_key.as_str(), get.key.row_key.as_str()), ("p", "r"));
    assert!(get.options.select.is_some_and(|select| select.custom() == ["a"]));
    assert_eq!(part.content_id, Some(HeaderValue::from_static("3")));
}

#[test]
fn rejects_queries_that_do_not_read_one_entity() {
    for (request, reason) in [
        ("GET /acme/tab() HTTP/1.1\r\n\r\n", Reason::NotImplemented),
        ("GET /acme/Tables HTTP/1.1\r\n\r\n", Reason::NotImplemented),
        ("GET /acme/tab('p') HTTP/1.1\r\n\r\n", Reason::InvalidInput),
        ("GET /other/tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n", Reason::ResourceNotFound),
    ] {
        let Err(Stop::Query(fault, _)) = plan(&head(), query_part(request).as_bytes()) else {
            panic!("an invalid query: {request}")
        };
        assert_eq!((fault.reason, fault.index), (reason, Some(0)), "{request}");
    }
    // A change alone, and a query with a body, make the whole batch invalid.
    for request in [
        delete("/acme/tab"),
        "GET /acme/tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n--c".to_owned(),
    ] {
        assert_eq!(whole(&head(), &query_part(&request)), Reason::InvalidInput, "{request}");
    }
}

#[test]
fn rejects_bodies_that_are_no_batch() {
    let one = change_set(&[insert("/acme/tab", "r")]);
    let twice = format!("{}{one}", one.trim_end().trim_end_matches("--b--"));
    for body in [
        String::new(),
        "--b--".to_owned(),
        "--b\r\n\r\n--b--".to_owned(),
        twice,
        // Requests before the first boundary, after the last one, and around the change set.
        format!("--other\r\n\r\n{one}"),
        format!("{one}--b\r\n\r\n{}--b--", insert("/acme/tab", "s")),
        one.replace("--c--", "--c--\r\nPOST /acme/tab HTTP/1.1"),
        // Without the last boundaries.
        one.replace("--c--\r\n\r\n--b--", ""),
        one.replace("\r\n--b--", ""),
        one.replace("POST /acme/tab HTTP/1.1", "POST"),
    ] {
        assert_eq!(whole(&head(), &body), Reason::InvalidInput, "{body:?}");
    }
    for content_type in ["application/json", "multipart/mixed", "multipart/form-data; boundary=b"] {
        let head = head_of("127.0.0.1", "/acme/$batch", content_type);
        assert_eq!(whole(&head, &one), Reason::InvalidInput, "{content_type}");
    }
}

proptest! {
    #[test]
    fn every_change_is_planned_in_its_order_with_either_line_end(
        rows in proptest::collection::vec("[a-z]{1,8}", 1..20),
        is_bare in any::<bool>(),
    ) {
        let requests: Vec<_> = rows.iter().map(|row| insert("/acme/tab", row)).collect();
        let body = change_set(&requests);
        let body = if is_bare { body.replace("\r\n", "\n") } else { body };
        let (_, operations, _) = changes_of(&body);
        let found: Vec<_> = operations.iter().map(|operation| key_of(operation).1).collect();
        prop_assert_eq!(found, rows);
    }

    #[test]
    fn a_truncated_batch_is_never_executed_in_part(cut in any::<prop::sample::Index>()) {
        let rows = ["a", "b", "c"];
        let body = change_set(&rows.map(|row| insert("/acme/tab", row)));
        let end = body.rfind("--b--").expect("a last boundary");
        let cut = &body[..cut.index(end)];
        let planned = plan(&head(), cut.as_bytes());
        prop_assert!(matches!(planned, Err(Stop::Whole(_))), "{}", cut);
    }
}
