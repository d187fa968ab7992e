//! What anyone may call, health and reflection, is bounded for each peer and for all.

use std::{net::SocketAddr, time::Duration};

use tokio::time::Instant;
use tokio_stream::StreamExt as _;
use tonic::{Code, Status, body::Body};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use tonic_types::StatusExt as _;
use tower::{ServiceExt as _, service_fn};
use trestle_model::limits::{
    HEALTH_CALLS_MAX, HEALTH_MESSAGE_BYTES_MAX, REFLECTION_CALLS_MAX, REFLECTION_HOST_BYTES_MAX,
    REFLECTION_MESSAGE_BYTES_MAX, STREAM_IDLE_MAX,
};
use trestle_rpc::layer::{CallService, Request, Response};
use trestle_rpc::peer::Peer;
use trestle_runtime::{health::Health, health_reflection::HealthReflectionRouter};

/// How long a message may take to arrive.
const REQUEST_WITHIN: Duration = Duration::from_secs(20);

async fn router() -> CallService {
    let rest = service_fn(|_: Request| async {
        Ok::<Response, std::convert::Infallible>(Status::not_found("the rest").into_http())
    });
    let health = Health::of(&["a.v1.A"]).await;
    let (descriptors, rest) = (trestle_proto::REFLECTION_DESCRIPTOR_SET, CallService::new(rest));
    let router = HealthReflectionRouter::new(&health, descriptors, &[], REQUEST_WITHIN, rest);
    CallService::new(router.unwrap())
}

/// The same for calls of a peer.
fn of_peer(router: &CallService, host: u8) -> CallService {
    let address = SocketAddr::from(([10, 0, 0, host], 1));
    let with_peer = move |mut request: http::Request<Body>| {
        request.extensions_mut().insert(Peer { address, tls: None });
        request
    };
    CallService::new(router.clone().map_request(with_peer))
}

fn requested(host: String, symbol: String) -> ServerReflectionRequest {
    let message_request = Some(MessageRequest::FileContainingSymbol(symbol));
    ServerReflectionRequest { host, message_request }
}

fn rejection(status: &Status) -> (Code, String) {
    let info = status.get_details_error_info();
    (status.code(), info.map(|info| info.reason).unwrap_or_default())
}

fn busy() -> (Code, String) {
    (Code::ResourceExhausted, "SERVER_BUSY".to_owned())
}

#[tokio::test]
async fn watches_of_one_peer_leave_room_for_others_and_for_checks() {
    let router = router().await;
    let mut client = HealthClient::new(of_peer(&router, 1));
    let mut watches = Vec::new();
    let full = loop {
        match client.watch(HealthCheckRequest::default()).await {
            Ok(watch) => watches.push(watch.into_inner()),
            Err(status) => break status,
        }
    };

    let mut other = HealthClient::new(of_peer(&router, 2));
    let watch = other.watch(HealthCheckRequest::default()).await;
    let check = client.check(HealthCheckRequest::default()).await;

    // Half of the calls are watches, and one peer has three quarters of them.
    assert_eq!(watches.len(), HEALTH_CALLS_MAX / 2 * 3 / 4);
    assert_eq!(rejection(&full), busy(), "{full:?}");
    assert!(watch.is_ok() && check.is_ok(), "{:?} {:?}", watch.err(), check.err());
}

#[tokio::test]
async fn streams_of_reflection_of_one_peer_leave_room_for_others() {
    let router = router().await;
    let open = async |host| {
        let mut client = ServerReflectionClient::new(of_peer(&router, host));
        client.server_reflection_info(tokio_stream::pending()).await
    };
    let mut streams = Vec::new();
    let full = loop {
        match open(1).await {
            Ok(stream) => streams.push(stream.into_inner()),
            Err(status) => break status,
        }
    };

    assert_eq!(streams.len(), REFLECTION_CALLS_MAX / 2 * 3 / 4);
    assert_eq!(rejection(&full), busy(), "{full:?}");
    assert!(open(2).await.is_ok());
}

#[tokio::test]
async fn messages_are_small() {
    let router = router().await;
    let too_large = (Code::ResourceExhausted, "RPC_MESSAGE_TOO_LARGE".to_owned());
    let mut health = HealthClient::new(router.clone());
    let named = |bytes: usize| HealthCheckRequest { service: "s".repeat(bytes) };
    // The field has a tag and a length before its bytes.
    let within = health.check(named(HEALTH_MESSAGE_BYTES_MAX - 3)).await.unwrap_err();
    let beyond = health.check(named(HEALTH_MESSAGE_BYTES_MAX)).await.unwrap_err();
    assert_eq!(within.code(), Code::NotFound);
    assert_eq!(rejection(&beyond), too_large, "{beyond:?}");

    let mut reflection = ServerReflectionClient::new(router);
    let question = requested(String::new(), "s".repeat(REFLECTION_MESSAGE_BYTES_MAX));
    let answers = reflection.server_reflection_info(tokio_stream::iter([question])).await;
    let beyond = answers.unwrap().into_inner().next().await.unwrap().unwrap_err();
    assert_eq!(rejection(&beyond), too_large, "{beyond:?}");
}

#[tokio::test]
async fn a_host_that_cannot_be_one_is_rejected_and_not_sent_back() {
    let mut reflection = ServerReflectionClient::new(router().await);
    let longest = "h".repeat(REFLECTION_HOST_BYTES_MAX);
    let questions = [format!("{longest}h"), longest.clone()];
    let questions = questions.map(|host| requested(host, "grpc.health.v1.Health".to_owned()));
    let answers = reflection.server_reflection_info(tokio_stream::iter(questions)).await;
    let answers: Vec<_> = answers.unwrap().into_inner().collect().await;
    let [over, within] = answers.try_into().unwrap();
    let (over, within) = (over.unwrap(), within.unwrap());

    let Some(MessageResponse::ErrorResponse(error)) = over.message_response else { panic!() };
    assert_eq!(Code::from(error.error_code), Code::InvalidArgument);
    assert_eq!(error.error_message, "host: must have at most 255 bytes");
    assert!(over.valid_host.is_empty() && over.original_request.is_none());
    assert_eq!(within.valid_host, longest, "the stream continues");
}

#[tokio::test]
async fn compressed_requests_are_rejected_with_what_is_supported() {
    let router = router().await;
    for encoding in ["gzip", "zstd"] {
        let mut health = HealthClient::new(router.clone());
        let about = || compressed(encoding, HealthCheckRequest::default());
        let check = health.check(about()).await.unwrap_err();
        let watch = health.watch(about()).await.unwrap_err();
        let mut reflection = ServerReflectionClient::new(router.clone());
        let questions = tokio_stream::iter([requested(String::new(), "a".to_owned())]);
        let questions = compressed(encoding, questions);
        let answered = reflection.server_reflection_info(questions).await.unwrap_err();

        for status in [check, watch, answered] {
            assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
            assert_eq!(status.metadata().get("grpc-accept-encoding").unwrap(), "identity");
        }
    }
}

/// A request that declares an encoding of its messages.
fn compressed<T>(encoding: &str, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.metadata_mut().insert("grpc-encoding", encoding.parse().unwrap());
    request
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_reflection_ends_when_no_message_arrives() {
    let mut reflection = ServerReflectionClient::new(router().await);
    let started = Instant::now();
    let silent = reflection.server_reflection_info(tokio_stream::pending()).await;
    let late = silent.unwrap().into_inner().next().await.unwrap().unwrap_err();
    let first = started.elapsed();

    let one = tokio_stream::iter([requested(String::new(), "a".to_owned())]);
    let answers = reflection.server_reflection_info(one.chain(tokio_stream::pending())).await;
    let mut answers = answers.unwrap().into_inner();
    assert!(answers.next().await.unwrap().is_ok());
    let answered = Instant::now();
    let idle = answers.next().await.unwrap().unwrap_err();

    assert_eq!((rejection(&late).1, first), ("OPERATION_TIMED_OUT".to_owned(), REQUEST_WITHIN));
    assert_eq!(rejection(&idle), rejection(&late));
    assert_eq!(answered.elapsed(), STREAM_IDLE_MAX);
}
