//! Invalid requests: every violation is reported, and the server continues to serve.

use bytes::Bytes;
use prost::Message as _;
use tonic::Code;
use trestle_proto::table::v1::{
    self as proto, BatchOperation, Entity, ExecuteBatchRequest, InsertEntityRequest,
    UpdateEntityRequest, UpsertEntityRequest,
};
use trestle_tests::{CallError, World, delete_op, entity, int, scenario, string, update_op};

scenario!(
    every_violation_of_a_request_is_listed_with_its_path,
    violations_of_batch_operations_are_listed_with_their_paths,
    a_quote_in_a_name_does_not_end_its_path,
    an_unknown_or_unset_mode_is_rejected,
    missing_required_fields_are_named,
    malformed_protobuf_is_invalid_argument,
    rejects_a_message_over_the_size_limit,
    rejects_a_message_with_too_many_fields_before_decoding,
    an_unknown_method_is_not_implemented,
    rejects_a_malformed_or_repeated_grpc_timeout,
);

/// The server responds, and its entity is unchanged.
async fn still_serves(world: &World) {
    let table = world.existing_table("witness");
    if world.describe("witness").await.is_err() {
        world.create("witness").await.unwrap();
        table.insert(entity("p", "r", [])).await.unwrap();
    }
    assert_eq!(table.rows("").await.unwrap(), ["r"]);
}

async fn every_violation_of_a_request_is_listed_with_its_path(world: &World) {
    still_serves(world).await;
    let properties =
        [int("ok", 1), int("not ok", 1), string("long", &"x".repeat(32_769)), int("ok", 2)];
    let request = UpdateEntityRequest {
        table: "1".to_owned(),
        entity: Some(entity("a/b", "c#d", properties)),
        mode: 9,
        if_match: Some("nonsense".to_owned()),
    };

    let rejected = world.client().update_entity(request).await.unwrap_err();

    let rejected = CallError::of(&rejected);
    assert_eq!(rejected.code, Code::InvalidArgument);
    let mut fields = rejected.fields.clone();
    fields.sort();
    let expected = [
        "entity.partition_key",
        "entity.properties[\"long\"]",
        "entity.properties[\"not ok\"]",
        "entity.properties[\"ok\"]",
        "entity.row_key",
        "if_match",
        "mode",
        "table",
    ];
    assert_eq!(fields, expected);
    // The reason and the text are those of the first.
    assert_eq!(rejected.reason, "INVALID_RESOURCE_NAME");
    assert!(rejected.message.starts_with("table: "), "{}", rejected.message);
    still_serves(world).await;

    let query = proto::QueryEntitiesRequest {
        table: "x".to_owned(),
        filter: "a eq".to_owned(),
        page_size: Some(-5),
        ..Default::default()
    };
    let rejected = world.client().query_entities(query).await.unwrap_err();
    let mut fields = CallError::of(&rejected).fields;
    fields.sort();
    assert_eq!(fields, ["filter", "page_size", "table"]);
}

async fn a_quote_in_a_name_does_not_end_its_path(world: &World) {
    let table = world.table("quotes").await;
    for (name, path) in [
        ("a\"]", r#"entity.properties["a\"]"]"#),
        ("\"", r#"entity.properties["\""]"#),
        ("a\\", r#"entity.properties["a\\"]"#),
        ("a b", r#"entity.properties["a b"]"#),
    ] {
        let rejected = table.insert(entity("p", "r", [int(name, 1)])).await.unwrap_err();

        assert_eq!(rejected.kind(), (Code::InvalidArgument, "PROPERTY_NAME_INVALID"), "{name}");
        assert_eq!(rejected.fields, [path], "{name}");
        assert!(rejected.message.starts_with(&format!("{path}: ")), "{}", rejected.message);
    }
    assert_eq!(table.rows("").await.unwrap().len(), 0);
}

async fn violations_of_batch_operations_are_listed_with_their_paths(world: &World) {
    let table = world.table("batches").await;
    let operation = |operation| BatchOperation { operation };
    let mut unmoded = update_op(entity("p", "c", []), proto::WriteMode::Merge, Some("x"));
    if let proto::batch_operation::Operation::Update(update) = &mut unmoded {
        update.mode = 0;
    }
    let request = ExecuteBatchRequest {
        table: table.name(),
        operations: vec![
            operation(Some(delete_op("p", "a", None))),
            operation(Some(delete_op("p", "b?", Some("")))),
            operation(Some(unmoded)),
        ],
    };

    let rejected = world.client().execute_batch(request).await.unwrap_err();

    let rejected = CallError::of(&rejected);
    assert_eq!((rejected.code, rejected.index), (Code::InvalidArgument, Some(1)));
    let mut fields = rejected.fields;
    fields.sort();
    let expected = [
        "operations[1].delete.if_match",
        "operations[1].delete.row_key",
        "operations[2].update.if_match",
        "operations[2].update.mode",
    ];
    assert_eq!(fields, expected);
}

async fn an_unknown_or_unset_mode_is_rejected(world: &World) {
    let table = world.table("modes").await;
    table.insert(entity("p", "r", [])).await.unwrap();

    for mode in [0, 3, -1, i32::MAX] {
        let upsert = UpsertEntityRequest {
            table: table.name(),
            entity: Some(entity("p", "r", [int("a", 1)])),
            mode,
        };
        let rejected = world.client().upsert_entity(upsert).await.unwrap_err();
        let rejected = CallError::of(&rejected);
        let expected = (Code::InvalidArgument, "INVALID_INPUT");
        assert_eq!((rejected.kind(), rejected.fields.len()), (expected, 1));
        assert_eq!(rejected.fields[0], "mode");
    }
    assert_eq!(table.get("p", "r").await.unwrap().properties, []);
}

async fn missing_required_fields_are_named(world: &World) {
    let empty = Bytes::new();
    for (method, fields) in [
        ("CreateTable", &["table"][..]),
        ("GetTable", &["table"]),
        ("DeleteTable", &["table"]),
        ("GetTableAccessPolicies", &["table"]),
        ("SetTableAccessPolicies", &["table"]),
        ("InsertEntity", &["table", "entity"]),
        ("GetEntity", &["table"]),
        ("UpdateEntity", &["table", "entity", "mode"]),
        ("UpsertEntity", &["table", "entity", "mode"]),
        ("DeleteEntity", &["table"]),
        ("ExecuteBatch", &["table"]),
        ("QueryEntities", &["table"]),
        ("ExplainQuery", &["table"]),
        ("SetServiceProperties", &["properties"]),
    ] {
        let rejected = world.raw(method, empty.clone()).await.unwrap_err();
        let expected = (Code::InvalidArgument, "PROPERTIES_NEED_VALUE");
        assert_eq!(rejected.kind(), expected, "{method}");
        assert_eq!(rejected.fields, fields, "{method}");
    }
    for method in ["ListTables", "GetServiceProperties", "GetServiceStats"] {
        assert!(world.raw(method, empty.clone()).await.is_ok(), "{method}");
    }
}

async fn malformed_protobuf_is_invalid_argument(world: &World) {
    still_serves(world).await;
    // An entity whose key is not UTF-8.
    let mut not_utf8 =
        InsertEntityRequest { table: "witness".to_owned(), entity: Some(entity("KEY", "r", [])) }
            .encode_to_vec();
    let position = not_utf8.windows(3).position(|part| part == b"KEY").unwrap();
    not_utf8[position] = 0xFF;
    let nested = (0..300).fold(Vec::new(), |inner: Vec<u8>, _| {
        // Field 2, a message, in a message, and so on: groups would recurse as well.
        let mut outer = vec![0x13];
        outer.extend(inner);
        outer.push(0x14);
        outer
    });
    let messages = [
        not_utf8,
        b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF".to_vec(),
        b"\x0A\x7Fshort".to_vec(),
        b"\x12\x02\x0A\x05".to_vec(),
        b"\x08\x01".to_vec(),
        b"\x0F".to_vec(),
        nested,
    ];

    for message in messages {
        for method in ["InsertEntity", "UpsertEntity", "ExecuteBatch", "QueryEntities"] {
            let message = Bytes::from(message.clone());
            let rejected = world.raw(method, message.clone()).await.unwrap_err();
            let code = rejected.code;
            assert_eq!(code, Code::InvalidArgument, "{method} {message:?}: {rejected:?}");
        }
        still_serves(world).await;
    }
    let rejected = world.raw("GetTable", Bytes::from_static(b"\x0A\x02\xC3\x28")).await;
    let rejected = rejected.unwrap_err();
    assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(rejected.fields, ["message"]);
    // Unknown fields are ignored, as in protobuf.
    let unknown = Bytes::from_static(b"\x0A\x07witness\xFA\x01\x03abc");
    assert!(world.raw("GetTable", unknown).await.is_ok());
}

async fn rejects_a_message_over_the_size_limit(world: &World) {
    still_serves(world).await;
    let filler = Entity { etag: "x".repeat(9 * 1024 * 1024), ..entity("p", "large", []) };
    let request = InsertEntityRequest { table: "witness".to_owned(), entity: Some(filler) };

    let rejected = world.raw("InsertEntity", request.encode_to_vec().into()).await.unwrap_err();

    let expected = (Code::ResourceExhausted, "RPC_MESSAGE_TOO_LARGE");
    assert_eq!(rejected.kind(), expected);
    still_serves(world).await;
}

/// Two bytes for each entity, a hundred times that once decoded.
async fn rejects_a_message_with_too_many_fields_before_decoding(world: &World) {
    still_serves(world).await;
    let empty = vec![BatchOperation { operation: None }; 4_000_000];
    let request = ExecuteBatchRequest { table: "witness".to_owned(), operations: empty };
    let message = Bytes::from(request.encode_to_vec());

    let rejected = world.raw("ExecuteBatch", message).await.unwrap_err();

    assert_eq!(rejected.code, Code::InvalidArgument);
    assert_eq!(rejected.reason, "INVALID_INPUT");
    assert!(rejected.message.contains("at most 300000 elements"), "{}", rejected.message);
    still_serves(world).await;
}

async fn an_unknown_method_is_not_implemented(world: &World) {
    still_serves(world).await;
    for method in ["DropEverything", "insertentity", ""] {
        let rejected = world.raw(method, Bytes::new()).await.unwrap_err();
        assert_eq!(rejected.code, Code::Unimplemented, "{method}");
    }
    still_serves(world).await;
}

async fn rejects_a_malformed_or_repeated_grpc_timeout(world: &World) {
    still_serves(world).await;
    let limited = async |limits: &[&'static str]| {
        let mut request = tonic::Request::new(proto::ListTablesRequest::default());
        for limit in limits {
            request.metadata_mut().append("grpc-timeout", limit.parse().unwrap());
        }
        let answer = world.client().list_tables(request).await;
        answer.map(drop).map_err(|status| CallError::of(&status))
    };

    limited(&["20S"]).await.unwrap();
    for limits in [&["20S", "20S"][..], &["20S", "1"], &[""], &["20s"], &["100000000S"], &["-1S"]] {
        let rejected = limited(limits).await.unwrap_err();
        assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_INPUT"), "{limits:?}");
        assert_eq!(rejected.fields, ["grpc-timeout"], "{limits:?}");
    }
    still_serves(world).await;
}
