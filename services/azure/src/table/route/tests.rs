//! Heads of requests, and their operations.

use http::HeaderValue;

use super::*;

/// The operation of a request with these headers.
fn route_of(
    method: &str,
    target: &str,
    headers: &[(&'static str, &str)],
) -> Result<TableOperation, Reason> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
    }
    let params = Params::parse(query).expect("a query");
    route(&RouteRequest { method, account: "acme", path, params: &params, headers: &map })
        .map_err(|fault| fault.reason)
}

fn verb(method: &str, headers: &[(&'static str, &str)]) -> Result<Verb, Reason> {
    match route_of(method, ENTITY, headers)? {
        TableOperation::Change(EntityChange { verb, .. }) => Ok(verb),
        other => panic!("not a change: {other:?}"),
    }
}

const ENTITY: &str = "/tab(PartitionKey='p',RowKey='r')";

fn key() -> Key {
    Key { partition_key: "p".to_owned(), row_key: "r".to_owned() }
}

#[test]
fn every_operation_becomes_its_own_call() {
    for (method, target, call, reads) in [
        ("GET", "/Tables", "ListTables", true),
        ("POST", "/Tables", "CreateTable", false),
        ("GET", "/Tables('tab')", "GetTable", true),
        ("DELETE", "/Tables('tab')", "DeleteTable", false),
        ("POST", "/tab/Tables", "GetTable", false),
        ("DELETE", "/tab/Tables('x')", "GetTable", false),
        ("GET", "/tab()", "QueryEntities", true),
        ("POST", "/tab()", "InsertEntity", false),
        ("GET", ENTITY, "GetEntity", true),
        ("PUT", ENTITY, "UpsertEntity", false),
        ("PATCH", ENTITY, "UpsertEntity", false),
        ("MERGE", ENTITY, "UpsertEntity", false),
        ("GET", "/tab?comp=acl", "GetTableAccessPolicies", true),
        ("PUT", "/tab?comp=ACL", "SetTableAccessPolicies", false),
        ("GET", "/?restype=service&comp=properties", "GetServiceProperties", true),
        ("PUT", "/?restype=service&comp=properties", "SetServiceProperties", false),
        ("GET", "/?restype=service&comp=stats", "GetServiceStats", true),
        ("GET", "/acme?restype=service&comp=stats", "GetServiceStats", true),
        ("POST", "/$batch", "ExecuteBatch", true),
    ] {
        let operation = route_of(method, target, &[]).expect(target);
        let path: &'static str = operation.target().path;
        assert_eq!(path.rsplit('/').next(), Some(call), "{method} {target}");
        assert_eq!(operation.target().reads, reads, "{method} {target}");
    }
}

#[test]
fn the_condition_distinguishes_an_update_from_an_upsert_and_a_delete_needs_one() {
    let any: &[(&str, &str)] = &[("if-match", "*")];
    let (key, if_match) = (key(), "*".to_owned());
    let update = |mode| Ok(Verb::Update { key: key.clone(), mode, if_match: if_match.clone() });
    assert_eq!(verb("PUT", any), update(WriteMode::Replace));
    assert_eq!(verb("PATCH", any), update(WriteMode::Merge));
    assert_eq!(verb("MERGE", any), update(WriteMode::Merge));
    let upsert = |mode| Ok(Verb::Upsert { key: key.clone(), mode });
    assert_eq!(verb("PUT", &[]), upsert(WriteMode::Replace));
    assert_eq!(verb("MERGE", &[]), upsert(WriteMode::Merge));
    assert_eq!(
        verb("DELETE", any),
        Ok(Verb::Delete { key: key.clone(), if_match: if_match.clone() })
    );
    assert_eq!(verb("DELETE", &[]), Err(Reason::MissingRequiredHeader));
    // An empty one is present, and the service rejects it.
    assert!(
        matches!(verb("PUT", &[("if-match", "")]), Ok(Verb::Update { if_match, .. }) if if_match.is_empty())
    );
    for headers in [
        [("if-none-match", "*"), ("accept", "*/*")],
        [("if-match", "*"), ("if-none-match", "*")],
        [("if-match", "a"), ("if-match", "b")],
        [("if-match", "é"), ("accept", "*/*")],
    ] {
        for method in ["PUT", "PATCH", "DELETE"] {
            assert_eq!(verb(method, &headers), Err(Reason::InvalidInput), "{headers:?}");
        }
    }
    let inserted = route_of("POST", "/tab", &[("if-match", "nonsense")]);
    assert!(inserted.is_ok(), "an insert has no condition");
}

#[test]
fn a_verb_may_be_tunnelled_through_a_post() {
    for (tunnelled, plain) in [("MERGE", "MERGE"), ("PATCH", "PATCH"), ("PUT", "PUT")] {
        assert_eq!(verb("POST", &[("x-http-method", tunnelled)]), verb(plain, &[]));
    }
    let delete = [("x-http-method", "DELETE"), ("if-match", "*")];
    assert!(matches!(verb("POST", &delete), Ok(Verb::Delete { .. })));
    for (method, headers, reason) in [
        ("PUT", vec![("x-http-method", "MERGE")], Reason::XMethodNotUsingPost),
        ("POST", vec![("x-http-method", "GET")], Reason::XMethodIncorrectValue),
        ("POST", vec![("x-http-method", "")], Reason::XMethodIncorrectValue),
        (
            "POST",
            vec![("x-http-method", "MERGE"), ("x-http-method", "MERGE")],
            Reason::XMethodIncorrectCount,
        ),
    ] {
        assert_eq!(route_of(method, ENTITY, &headers), Err(reason), "{headers:?}");
    }
}

#[test]
fn rejects_invalid_verbs_and_addresses() {
    for (method, target, reason) in [
        ("PUT", "/Tables", Reason::UnsupportedHttpVerb),
        ("PUT", "/Tables('tab')", Reason::UnsupportedHttpVerb),
        ("DELETE", "/tab", Reason::UnsupportedHttpVerb),
        ("HEAD", "/tab", Reason::UnsupportedHttpVerb),
        ("POST", ENTITY, Reason::UnsupportedHttpVerb),
        ("GET", "/$batch", Reason::UnsupportedHttpVerb),
        ("DELETE", "/tab?comp=acl", Reason::UnsupportedHttpVerb),
        ("POST", "/?restype=service&comp=stats", Reason::UnsupportedHttpVerb),
        ("GET", "/", Reason::InvalidUri),
        ("GET", "/?restype=service&comp=list", Reason::InvalidQueryParameterValue),
        ("GET", "/tab/Tables('x')", Reason::InvalidInput),
        ("GET", "/tab/Tables", Reason::ResourceNotFound),
        ("POST", "/tab/$batch", Reason::MediaTypeNotSupported),
        ("GET", "/tab/$batch", Reason::UnsupportedHttpVerb),
        ("GET", "/tab/?restype=service&comp=properties", Reason::InvalidQueryParameterValue),
        ("PUT", "/tab?restype=service&comp=properties", Reason::InvalidQueryParameterValue),
        ("GET", "/tab?restype=service&comp=stats", Reason::InvalidQueryParameterValue),
        ("PUT", "/acme?restype=service&comp=properties", Reason::InvalidQueryParameterValue),
        ("GET", "/$MetricsHourPrimaryTransactionsTable", Reason::ResourceNotFound),
        ("GET", "/tab?$orderby=x", Reason::NotImplemented),
        ("GET", "/tab?$top=1001", Reason::InvalidInput),
        ("GET", "/tab?NextPartitionKey=x", Reason::InvalidQueryParameterValue),
    ] {
        assert_eq!(route_of(method, target, &[]), Err(reason), "{method} {target}");
    }
    let atom = route_of("GET", "/tab", &[("accept", "application/atom+xml")]);
    assert_eq!(atom, Err(Reason::AtomFormatNotSupported));
    let format =
        route_of("GET", "/tab?$format=application/json", &[("accept", "application/atom+xml")]);
    assert!(format.is_ok(), "the parameter counts");
}

#[test]
fn the_preference_of_an_insert_is_parsed() {
    for (value, expected) in [
        ("return-no-content", Prefer::NoContent),
        ("return-content", Prefer::Content),
        ("respond-async, Return-No-Content", Prefer::NoContent),
        ("other", Prefer::Unset),
    ] {
        let Ok(TableOperation::Change(EntityChange { verb: Verb::Insert { prefer, .. }, .. })) =
            route_of("POST", "/tab", &[("prefer", value)])
        else {
            panic!("an insert")
        };
        assert_eq!(prefer, expected, "{value}");
    }
}
