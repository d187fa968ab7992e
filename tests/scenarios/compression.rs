//! Compressed messages: requests, responses and streams, as clients with compression send them.

use bytes::Bytes;
use http::{HeaderMap, Request, Version, header};
use prost::Message as _;
use tonic::{Code, Status, codec::CompressionEncoding};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest,
};
use tonic_types::StatusExt as _;
use trestle_proto::table::v1::{
    Entity, InsertEntityRequest, QueryEntitiesRequest, StreamEntitiesRequest,
    table_service_client::TableServiceClient,
};
use trestle_tests::{Server, Transport, World, entity, int, path_of, scenario, string};

scenario!(
    a_client_with_compression_makes_every_kind_of_call,
    a_compressed_page_is_smaller_and_has_the_same_entities,
    a_response_is_not_compressed_unless_the_client_requests_it,
    a_decompression_bomb_is_rejected_and_the_service_continues,
    an_unsupported_encoding_is_rejected_with_the_supported_ones,
);

const ENCODINGS: [CompressionEncoding; 2] = [CompressionEncoding::Gzip, CompressionEncoding::Zstd];

fn compressing(world: &World, encoding: CompressionEncoding) -> TableServiceClient<Transport> {
    world.client().send_compressed(encoding).accept_compressed(encoding)
}

/// An entity that compresses well.
fn large(row: i32) -> Entity {
    let text = string("text", &"the same words ".repeat(1000));
    entity("p", &format!("{row:03}"), [text, int("n", row)])
}

async fn a_client_with_compression_makes_every_kind_of_call(world: &World) {
    for encoding in ENCODINGS {
        let name = format!("calls{encoding}");
        world.table(&name).await;
        let client = compressing(world, encoding);
        let table = trestle_tests::Table::new(client.clone(), &name);

        table.insert(large(0)).await.unwrap();
        let imported = table.import(None, vec![(1..50).map(large).collect(), vec![large(50)]]);
        assert_eq!(imported.await.unwrap(), []);

        let request = QueryEntitiesRequest { table: name.clone(), ..Default::default() };
        let page = client.clone().query_entities(request).await.unwrap().into_inner();
        assert_eq!(page.entities.len(), 51);
        let request = StreamEntitiesRequest { table: name, ..Default::default() };
        let mut stream = client.clone().stream_entities(request).await.unwrap().into_inner();
        let mut streamed = 0;
        while let Some(message) = stream.message().await.unwrap() {
            streamed += message.entities.len();
        }
        assert_eq!(streamed, 51);

        let absent = table.get("p", "absent").await.unwrap_err();
        assert_eq!(absent.kind(), (Code::NotFound, "RESOURCE_NOT_FOUND"));
    }
}

/// Sends bytes as a call, with the headers of a client; the headers and the body of its response.
async fn sent(
    world: &World,
    method: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> (HeaderMap, Bytes) {
    let request = Request::post(path_of(method)).header(header::CONTENT_TYPE, "application/grpc");
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let request = request.header(header::TE, "trailers").body(body.into()).expect("a request");
    let answer = world.http(Version::HTTP_2, request).await.expect("a response");
    let (head, body) = answer.into_parts();
    (head.headers, body)
}

fn framed(flag: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("a small message");
    [&[flag][..], &length.to_be_bytes(), content].concat()
}

fn query(table: &str) -> Vec<u8> {
    let request = QueryEntitiesRequest { table: table.to_owned(), ..Default::default() };
    framed(0, &request.encode_to_vec())
}

async fn filled(world: &World, name: &str) {
    let table = world.table(name).await;
    assert_eq!(table.import(None, vec![(0..50).map(large).collect()]).await.unwrap(), []);
}

async fn a_compressed_page_is_smaller_and_has_the_same_entities(world: &World) {
    filled(world, "pages").await;
    let (_, plain) = sent(world, "QueryEntities", &[], query("pages")).await;

    for encoding in ["gzip", "zstd", "deflate"] {
        let requested = [("grpc-encoding", encoding), ("grpc-accept-encoding", encoding)];
        let (headers, page) = sent(world, "QueryEntities", &requested, query("pages")).await;

        assert_eq!(headers["grpc-encoding"], encoding);
        assert_eq!(page[0], 1, "the flag of a compressed message");
        assert!(page.len() * 10 < plain.len(), "{} {}", page.len(), plain.len());
    }
}

async fn a_response_is_not_compressed_unless_the_client_requests_it(world: &World) {
    filled(world, "plain").await;
    for offered in ["identity, deflate, gzip", "gzip"] {
        let offer = [("grpc-accept-encoding", offered)];
        let (headers, page) = sent(world, "QueryEntities", &offer, query("plain")).await;
        assert!(!headers.contains_key("grpc-encoding"), "{headers:?}");
        assert_eq!(page[0], 0);
    }
}

fn error_of(headers: &HeaderMap) -> (Code, String) {
    let status = Status::from_header_map(headers).expect("a status in the headers");
    let info = status.get_details_error_info().expect("error info");
    (status.code(), info.reason)
}

async fn a_decompression_bomb_is_rejected_and_the_service_continues(world: &World) {
    let table = world.table("bombs").await;
    let filler = Entity { etag: "x".repeat(64 * 1024 * 1024), ..entity("p", "large", []) };
    let request = InsertEntityRequest { table: "bombs".to_owned(), entity: Some(filler.clone()) };
    let bomb = zstd::bulk::compress(&request.encode_to_vec(), 3).expect("it compresses");
    assert!(bomb.len() < 64 * 1024);

    let encoded = [("grpc-encoding", "zstd")];
    let (headers, _) = sent(world, "InsertEntity", &encoded, framed(1, &bomb)).await;
    let expected = (Code::ResourceExhausted, "RPC_MESSAGE_TOO_LARGE");
    assert_eq!(error_of(&headers), (expected.0, expected.1.to_owned()));
    // A service config retries this code.
    assert_eq!(headers["grpc-retry-pushback-ms"], "-1");
    for encoding in ENCODINGS {
        let table = trestle_tests::Table::new(compressing(world, encoding), "bombs");
        let error = table.import(None, vec![vec![filler.clone()]]).await.unwrap_err();
        assert_eq!(error.kind(), expected);
    }
    table.insert(entity("p", "small", [])).await.unwrap();
}

async fn an_unsupported_encoding_is_rejected_with_the_supported_ones(world: &World) {
    let encoded = [("grpc-encoding", "br")];
    let (headers, _) = sent(world, "QueryEntities", &encoded, framed(1, b"x")).await;

    assert_eq!(error_of(&headers), (Code::Unimplemented, "NOT_IMPLEMENTED".to_owned()));
    assert_eq!(headers["grpc-accept-encoding"], "gzip,zstd,deflate,identity");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_reflection_take_no_compressed_requests() {
    let server = Server::start(&["--ephemeral"], &[]);
    for encoding in ENCODINGS {
        let health = HealthClient::new(server.channel());
        let mut health = health.send_compressed(encoding).accept_compressed(encoding);
        let request = HealthCheckRequest { service: String::new() };
        let checked = health.check(request).await.unwrap_err();

        let reflection = ServerReflectionClient::new(server.channel());
        let mut reflection = reflection.send_compressed(encoding).accept_compressed(encoding);
        let list = MessageRequest::ListServices(String::new());
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(list) };
        let requests = tokio_stream::iter([request]);
        let reflected = reflection.server_reflection_info(requests).await.unwrap_err();

        for status in [checked, reflected] {
            assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
            assert_eq!(status.metadata().get("grpc-accept-encoding").unwrap(), "identity");
        }
    }
}
