//! gRPC-Web: calls as browsers make them, over either version of HTTP, in bytes and in text.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Version, header};
use prost::Message as _;
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use trestle_proto::table::v1::{
    CreateTableRequest, Entity, GetEntityRequest, GetEntityResponse, ImportChunk,
    ImportEntitiesRequest, ImportEntitiesResponse, ImportSpec, InsertEntityRequest,
    InsertEntityResponse, ListTablesRequest, ListTablesResponse, StreamEntitiesRequest,
    StreamEntitiesResponse, Table, import_entities_request::Message,
    table_service_client::TableServiceClient,
};
use trestle_tests::{
    BINARY, Server, TEXT, World, entity, framed, int, path_of, scenario, web_request,
};

scenario!(
    text_is_answered_in_text,
    unary_calls_work_in_grpc_web_and_grpc_web_text,
    stream_is_delivered_message_by_message,
    import_works_over_grpc_web_with_a_complete_body,
    error_details_are_in_the_trailers_frame,
    grpc_web_deadline_is_enforced,
    malformed_grpc_web_body_is_invalid_argument,
    rejects_other_content_types_with_415,
    health_is_served_over_grpc_web,
    rejects_a_header_over_the_size_limit,
);

const FORMS: [(Version, &str); 4] = [
    (Version::HTTP_11, BINARY),
    (Version::HTTP_11, TEXT),
    (Version::HTTP_2, BINARY),
    (Version::HTTP_2, TEXT),
];

fn get(table: &str) -> GetEntityRequest {
    GetEntityRequest {
        table: table.to_owned(),
        partition_key: "p".to_owned(),
        row_key: "r".to_owned(),
        ..Default::default()
    }
}

/// The server still serves calls.
fn create(table: &str) -> CreateTableRequest {
    CreateTableRequest { table: Some(Table { name: table.to_owned(), ..Table::default() }) }
}

async fn still_serves(world: &World) {
    let request = ListTablesRequest::default();
    let answer = world.web((Version::HTTP_11, TEXT), "ListTables", &request).await;
    answer.message::<ListTablesResponse>();
    assert!(world.list("", None, "").await.is_ok(), "plain gRPC is still served");
}

async fn text_is_answered_in_text(world: &World) {
    let body = STANDARD.encode(framed(&ListTablesRequest::default().encode_to_vec()));
    for accepted in [None, Some("*/*"), Some("application/json")] {
        let mut request = web_request(&path_of("ListTables"), TEXT, body.clone());
        request.headers_mut().remove(header::ACCEPT);
        if let Some(accepted) = accepted {
            request.headers_mut().insert(header::ACCEPT, accepted.parse().unwrap());
        }
        let answer = world.http(Version::HTTP_11, request).await.unwrap();
        assert_eq!(answer.headers()[header::CONTENT_TYPE], TEXT, "{accepted:?}");
        assert!(answer.body().is_ascii(), "base64");
    }
}

async fn unary_calls_work_in_grpc_web_and_grpc_web_text(world: &World) {
    for (index, form) in FORMS.into_iter().enumerate() {
        let table = format!("web{index}");
        // Long enough for several pieces, and of every length modulo three.
        let blob = trestle_tests::string("text", &"é".repeat(15_000 + index));
        let request = create(&table);
        let created = world.web(form, "CreateTable", &request).await;
        assert_eq!(created.trailers["grpc-status"], "0", "{form:?}");

        let row = entity("p", "r", [int("n", 7), blob]);
        let request = InsertEntityRequest { table: table.clone(), entity: Some(row.clone()) };
        let inserted = world.web(form, "InsertEntity", &request).await;
        let inserted: InsertEntityResponse = inserted.message();
        let found: GetEntityResponse = world.web(form, "GetEntity", &get(&table)).await.message();

        let found = Entity::decode(found.entity).unwrap();
        assert_eq!(found.properties, row.properties, "{form:?}");
        assert_eq!(found.etag, inserted.etag, "{form:?}");
        let native = world.existing_table(&table).get("p", "r").await.unwrap();
        assert_eq!(native, found, "the same as over gRPC");
    }
}

async fn stream_is_delivered_message_by_message(world: &World) {
    let table = world.table("streamed").await;
    let rows: Vec<_> = (0..5000).map(|n| entity("p", &format!("{n:05}"), [int("n", n)])).collect();
    let chunks = rows.chunks(1000).map(<[Entity]>::to_vec).collect();
    assert_eq!(table.import(None, chunks).await.unwrap(), []);
    for form in FORMS {
        let request = StreamEntitiesRequest { table: "streamed".to_owned(), ..Default::default() };

        let answer = world.web(form, "StreamEntities", &request).await;

        assert_eq!(answer.trailers["grpc-status"], "0", "{form:?}");
        let decoded = |message: Bytes| StreamEntitiesResponse::decode(message).unwrap();
        let messages: Vec<_> = answer.messages.into_iter().map(decoded).collect();
        assert!(messages.len() > 1, "{form:?}");
        let rows = messages.into_iter().flat_map(|message| message.entities);
        let rows: Vec<_> = rows.map(|row| Entity::decode(row).unwrap().row_key).collect();
        assert_eq!(rows.len(), 5000, "{form:?}");
        assert!(rows.is_sorted(), "{form:?}");
    }
}

async fn import_works_over_grpc_web_with_a_complete_body(world: &World) {
    world.table("imported").await;
    for (index, (version, kind)) in FORMS.into_iter().enumerate() {
        let spec = Message::Spec(ImportSpec { table: "imported".to_owned(), mode: None });
        let entities = vec![entity("p", &format!("{index}"), [int("n", 1)])];
        let messages = [spec, Message::Chunk(ImportChunk { entities })];
        let frames = messages.map(|message| {
            framed(&ImportEntitiesRequest { message: Some(message) }.encode_to_vec())
        });
        let body = frames.concat();
        let body = if kind == TEXT { STANDARD.encode(body).into_bytes() } else { body };

        let answer = world.web_body(version, web_request(&path_of("ImportEntities"), kind, body));

        let response: ImportEntitiesResponse = answer.await.message();
        assert_eq!(response.results.len(), 1, "{kind}");
    }
    assert_eq!(world.existing_table("imported").rows("").await.unwrap(), ["0", "1", "2", "3"]);
}

async fn error_details_are_in_the_trailers_frame(world: &World) {
    world.table("failing").await;
    let request = InsertEntityRequest { table: "1".to_owned(), entity: None };
    for form in FORMS {
        let absent = world.web(form, "GetEntity", &get("failing")).await;
        let wrong = world.web(form, "InsertEntity", &request).await;
        let unknown = world.web(form, "DropEverything", &request).await;

        assert_eq!(absent.error().kind(), (Code::NotFound, "RESOURCE_NOT_FOUND"), "{form:?}");
        assert_eq!(wrong.error().fields, ["table", "entity"], "{form:?}");
        assert_eq!(unknown.error().code, Code::Unimplemented, "{form:?}");
        for answer in [absent, wrong, unknown] {
            // Headers are not exposed to pages of other origins.
            assert!(!answer.headers.contains_key("grpc-status"), "{form:?}");
            assert!(answer.messages.is_empty(), "{form:?}");
        }
    }
}

async fn grpc_web_deadline_is_enforced(world: &World) {
    for (limit, code) in [("0n", Code::DeadlineExceeded), ("soon", Code::InvalidArgument)] {
        for (version, kind) in FORMS {
            let body = if kind == TEXT { "AAAAAAA=" } else { "\0\0\0\0\0" };
            let mut request = web_request(&path_of("ListTables"), kind, body);
            request.headers_mut().insert("grpc-timeout", limit.parse().unwrap());

            let answer = world.web_body(version, request).await;

            assert_eq!(answer.error().code, code, "{limit} {kind} {version:?}");
        }
    }
}

async fn malformed_grpc_web_body_is_invalid_argument(world: &World) {
    let message = framed(&create("broken").encode_to_vec());
    let text = STANDARD.encode(&message);
    let cut = |by: usize| text.as_bytes()[..text.len() - by].to_vec();
    for version in [Version::HTTP_11, Version::HTTP_2] {
        for (body, what) in [
            (b"!".repeat(40), "no base64 at all"),
            (b"AAAA!AAA".to_vec(), "not base64 in its middle"),
            ([b"====", text.as_bytes()].concat(), "padding first"),
            (cut(1), "a part of a group"),
            (cut(2), "half a group"),
            (vec![0xff; 4096], "bytes"),
        ] {
            let request = web_request(&path_of("CreateTable"), TEXT, body);
            let rejected = world.web_body(version, request).await.error();
            assert_eq!(rejected.code, Code::InvalidArgument, "{what} {version:?}: {rejected:?}");
            assert_eq!(rejected.fields, ["message"], "{what} {version:?}");
            assert!(!rejected.message.contains("tonic"), "{what} {version:?}: {rejected:?}");
        }
        // A body, but no whole message in it: the error of gRPC for that.
        let frames = [
            (Vec::new(), BINARY, "nothing"),
            (vec![0, 0, 0], BINARY, "half a head"),
            (message[..message.len() - 1].to_vec(), BINARY, "a part of a message"),
            (vec![7, 0, 0, 0, 0], BINARY, "an unknown flag"),
            (vec![1, 0, 0, 0, 0], BINARY, "a compression that was not declared"),
            (vec![0x80, 0, 0, 0, 0], BINARY, "trailers of a client"),
            (vec![0, 0xff, 0xff, 0xff, 0xff], BINARY, "four gigabytes"),
            (text.as_bytes().to_vec(), BINARY, "text as bytes"),
            (cut(4), TEXT, "whole groups of a part"),
        ];
        for (body, kind, what) in frames {
            let request = web_request(&path_of("CreateTable"), kind, body);
            let rejected = world.web_body(version, request).await.error();
            let expected = match what {
                "four gigabytes" => Code::ResourceExhausted,
                _ => Code::Internal,
            };
            assert_eq!(rejected.code, expected, "{what} {version:?}: {rejected:?}");
        }
    }
    assert_eq!(world.describe("broken").await.unwrap_err().code, Code::NotFound);
    still_serves(world).await;
}

async fn rejects_other_content_types_with_415(world: &World) {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        for (method, kind, expected) in [
            (Method::GET, BINARY, StatusCode::METHOD_NOT_ALLOWED),
            (Method::PUT, TEXT, StatusCode::METHOD_NOT_ALLOWED),
            (Method::POST, "application/grpc-web+json", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            (Method::POST, "application/grpc-websocket", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ] {
            let mut request = web_request(&path_of("ListTables"), kind, "");
            *request.method_mut() = method.clone();

            let answer = world.http(version, request).await.unwrap();

            assert_eq!(answer.status(), expected, "{method} {kind} {version:?}");
        }
    }
    let no_call = [None, Some("application/json"), Some(""), Some("text/plain")];
    let forms = no_call.map(|kind| (Version::HTTP_2, kind)).into_iter();
    let forms = forms.chain(no_call.map(|kind| (Version::HTTP_11, kind)));
    for (version, kind) in forms.chain([(Version::HTTP_11, Some("application/grpc"))]) {
        // A simple request, which needs no preflight.
        let message = framed(&create("unasked").encode_to_vec());
        let request = Request::post(path_of("CreateTable"));
        let mut request = request.body(Bytes::from(message)).unwrap();
        if let Some(kind) = kind {
            request.headers_mut().insert(header::CONTENT_TYPE, kind.parse().unwrap());
        }
        let answer = world.http(version, request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind:?} {version:?}");
    }
    assert_eq!(world.describe("unasked").await.unwrap_err().code, Code::NotFound);
}

async fn health_is_served_over_grpc_web(world: &World) {
    let mut status = 0;
    // A gateway serves once it is connected to the services in other processes.
    for _ in 0..500 {
        let body = framed(&HealthCheckRequest::default().encode_to_vec());
        let request = web_request("/grpc.health.v1.Health/Check", BINARY, body);
        let answer = world.web_body(Version::HTTP_11, request).await;
        status = answer.message::<HealthCheckResponse>().status;
        if status == 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    assert_eq!(status, 1, "serving");
}

async fn rejects_a_header_over_the_size_limit(world: &World) {
    if world.address().is_none() {
        return; // No HTTP, no headers to read.
    }
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut request = web_request(&path_of("ListTables"), BINARY, "");
        let large = "x".repeat(1024 * 1024);
        request.headers_mut().insert("x-large", large.parse().unwrap());

        let answer = world.http(version, request).await;

        let expected = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        assert!(answer.as_ref().map_or(true, |answer| answer.status() == expected), "{answer:?}");
    }
    still_serves(world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overload_is_reported_over_grpc_web() {
    let server = Server::start(&["--ephemeral"], &[("TRESTLE__LIMITS__CALLS_MAX", "1")]);
    let mut client = TableServiceClient::new(server.channel());
    let world = World::of(server).await;
    // An import that sends nothing holds the only slot.
    let (_hold, requests) = tokio::sync::mpsc::channel::<ImportEntitiesRequest>(1);
    let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
    let held = client.import_entities(requests).await.unwrap();
    let list = ListTablesRequest::default();

    let answer = world.web((Version::HTTP_11, TEXT), "ListTables", &list).await;

    assert_eq!(answer.error().kind(), (Code::ResourceExhausted, "SERVER_BUSY"));
    drop(held);
}
