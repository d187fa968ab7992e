//! Reflection in both versions: what it has, and its answers about what it does not have.

use std::time::Duration;

use prost::Message as _;
use prost_types::FileDescriptorProto;
use tokio_stream::StreamExt as _;
use tonic::{Code, Status};
use tonic_reflection::pb::v1::{
    ExtensionRequest, ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use tonic_reflection::pb::v1alpha;
use tonic_types::StatusExt as _;
use tower::{ServiceExt as _, service_fn};
use trestle_rpc::layer::{CallService, Request, Response};
use trestle_runtime::{health::Health, health_reflection::HealthReflectionRouter};

const TABLE: &str = "trestle.table.v1.TableService";

async fn router(absent: &[&str]) -> CallService {
    let rest = service_fn(|_: Request| async {
        Ok::<Response, std::convert::Infallible>(Status::not_found("the rest").into_http())
    });
    let health = Health::of(&[TABLE]).await;
    let descriptors = trestle_proto::REFLECTION_DESCRIPTOR_SET;
    let (within, rest) = (Duration::from_secs(20), CallService::new(rest));
    let router = HealthReflectionRouter::new(&health, descriptors, absent, within, rest);
    CallService::new(router.unwrap())
}

/// The answers to questions of one stream.
async fn answers(questions: Vec<MessageRequest>) -> Vec<MessageResponse> {
    let mut client = ServerReflectionClient::new(router(&[]).await);
    let request = |question| ServerReflectionRequest {
        host: "h".to_owned(),
        message_request: Some(question),
    };
    let requests = tokio_stream::iter(questions.into_iter().map(request).collect::<Vec<_>>());
    let mut stream = client.server_reflection_info(requests).await.unwrap().into_inner();
    let mut answers = Vec::new();
    while let Some(answer) = stream.next().await {
        answers.push(answer.unwrap().message_response.unwrap());
    }
    answers
}

fn file(answer: &MessageResponse) -> FileDescriptorProto {
    let MessageResponse::FileDescriptorResponse(files) = answer else { panic!("{answer:?}") };
    FileDescriptorProto::decode(files.file_descriptor_proto[0].as_slice()).unwrap()
}

fn code(answer: &MessageResponse) -> (Code, &str) {
    let MessageResponse::ErrorResponse(error) = answer else { panic!("{answer:?}") };
    (error.error_code.into(), &error.error_message)
}

#[tokio::test]
async fn an_unknown_name_is_an_error_response_and_the_stream_continues() {
    let requested = ExtensionRequest {
        containing_type: "google.protobuf.FieldOptions".to_owned(),
        extension_number: 1,
    };
    let answers = answers(vec![
        MessageRequest::FileContainingSymbol("no.Such".to_owned()),
        MessageRequest::FileByFilename("no.proto".to_owned()),
        MessageRequest::FileContainingExtension(requested),
        MessageRequest::AllExtensionNumbersOfType("no.Such".to_owned()),
        MessageRequest::FileContainingSymbol(TABLE.to_owned()),
    ])
    .await;

    assert_eq!(code(&answers[0]), (Code::NotFound, "symbol not found: symbol=`no.Such`"));
    assert_eq!(code(&answers[1]), (Code::NotFound, "file not found: file=`no.proto`"));
    assert_eq!(code(&answers[2]).0, Code::NotFound);
    assert_eq!(code(&answers[3]).0, Code::NotFound);
    assert_eq!(file(&answers[4]).name(), "trestle/table/v1/table_service.proto");
}

#[tokio::test]
async fn options_of_fields_and_comments_are_served_as_they_were_compiled() {
    let answers = answers(vec![
        MessageRequest::FileContainingSymbol("trestle.table.v1.Table".to_owned()),
        MessageRequest::FileContainingExtension(ExtensionRequest {
            containing_type: "google.protobuf.FieldOptions".to_owned(),
            extension_number: 1052,
        }),
        MessageRequest::AllExtensionNumbersOfType("google.protobuf.FieldOptions".to_owned()),
    ])
    .await;

    let MessageResponse::FileDescriptorResponse(files) = &answers[0] else { panic!() };
    // `field_behavior` is number 1052, REQUIRED is 2: one value, or a list of one.
    let (required, packed) = ([0xe0, 0x41, 0x02], [0xe2, 0x41, 0x01, 0x02]);
    let encoded = &files.file_descriptor_proto[0];
    let has = |option: &[u8]| encoded.windows(option.len()).any(|bytes| bytes == option);
    assert!(has(&required) || has(&packed), "the options are lost");
    let info = file(&answers[0]).source_code_info.unwrap();
    assert!(info.location.iter().any(|location| location.leading_comments().contains("A table.")));
    assert_eq!(file(&answers[1]).name(), "google/api/field_behavior.proto");
    let MessageResponse::AllExtensionNumbersResponse(numbers) = &answers[2] else { panic!() };
    assert_eq!(numbers.extension_number, [1052]);
}

#[tokio::test]
async fn every_detail_of_an_error_can_be_read() {
    let details = ["ErrorInfo", "RetryInfo", "BadRequest", "ResourceInfo", "QuotaFailure"];
    let find = |name| MessageRequest::FileContainingSymbol(format!("google.rpc.{name}"));
    for answer in answers(details.map(find).to_vec()).await {
        assert_eq!(file(&answer).name(), "google/rpc/error_details.proto");
    }
}

#[tokio::test]
async fn the_older_version_has_the_same_services() {
    let mut client =
        v1alpha::server_reflection_client::ServerReflectionClient::new(router(&[]).await);
    let request = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1alpha::server_reflection_request::MessageRequest::ListServices(
            String::new(),
        )),
    };
    let answers = client.server_reflection_info(tokio_stream::iter([request])).await;
    let answer = answers.unwrap().into_inner().next().await.unwrap().unwrap();

    let names = format!("{answer:?}");
    for name in [TABLE, "trestle.queue.v1.QueueService", "grpc.health.v1.Health"] {
        assert!(names.contains(name), "{name}");
    }
}

#[tokio::test]
async fn a_service_that_is_not_served_is_not_listed_and_its_types_are_found() {
    let mut client = ServerReflectionClient::new(router(&[TABLE]).await);
    let symbol = MessageRequest::FileContainingSymbol(TABLE.to_owned());
    let requests = [MessageRequest::ListServices(String::new()), symbol].map(|request| {
        ServerReflectionRequest { host: String::new(), message_request: Some(request) }
    });

    let answers = client.server_reflection_info(tokio_stream::iter(requests)).await;
    let answers: Vec<_> = answers.unwrap().into_inner().collect().await;

    let response = |at: usize| answers[at].clone().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(listed) = response(0) else { panic!("{answers:?}") };
    let names: Vec<_> = listed.service.iter().map(|service| service.name.as_str()).collect();
    assert!(!names.contains(&TABLE), "{names:?}");
    assert!(names.contains(&"trestle.queue.v1.QueueService"), "{names:?}");
    assert_eq!(file(&response(1)).name(), "trestle/table/v1/table_service.proto");
}

#[tokio::test]
async fn an_unknown_method_of_health_and_reflection_is_named() {
    for service in ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"] {
        let mut request = Request::new(tonic::body::Body::empty());
        *request.uri_mut() = format!("/{service}/None").parse().unwrap();

        let Ok(answer) = router(&[]).await.oneshot(request).await;

        let status = Status::from_header_map(answer.headers()).unwrap();
        assert_eq!(status.code(), Code::Unimplemented);
        assert_eq!(status.message(), format!("unknown method: path=`/{service}/None`"));
        let info = status.get_details_error_info().unwrap();
        assert_eq!((&*info.reason, &*info.domain), ("NOT_IMPLEMENTED", service));
    }
}
