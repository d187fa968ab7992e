//! The domain of an error is the called service, for every origin of the error.

use bytes::Bytes;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;
use trestle_tests::{World, queue_scenario};

const TABLE: &str = "trestle.table.v1.TableService";
const QUEUE: &str = "trestle.queue.v1.QueueService";
const HEALTH: &str = "grpc.health.v1.Health";

queue_scenario!(errors_of_every_origin_carry_the_service_that_was_called);

/// The code, reason and domain of a call that fails.
async fn rejected(world: &World, path: &str, request: Request<Bytes>) -> (Code, String, String) {
    let status: Status = world.call(path, request).await.expect_err("the call is rejected");
    let info = status.get_details_error_info();
    let (reason, domain) = info.map(|info| (info.reason, info.domain)).unwrap_or_default();
    (status.code(), reason, domain)
}

async fn errors_of_every_origin_carry_the_service_that_was_called(world: &World) {
    // A message whose first field is the text `missing`.
    let named = Bytes::from_static(b"\x0a\x07missing");
    let malformed = Bytes::from_static(b"\xff\xff");
    for (service, method, not_found) in
        [(TABLE, "GetTable", "RESOURCE_NOT_FOUND"), (QUEUE, "GetQueue", "QUEUE_NOT_FOUND")]
    {
        let path = format!("/{service}/{method}");
        let expected = |code, reason: &str| (code, reason.to_owned(), service.to_owned());

        let by_service = rejected(world, &path, Request::new(named.clone())).await;
        assert_eq!(by_service, expected(Code::NotFound, not_found));

        let by_codec = rejected(world, &path, Request::new(malformed.clone())).await;
        assert_eq!(by_codec, expected(Code::InvalidArgument, "INVALID_INPUT"));

        let mut unknown = Request::new(named.clone());
        unknown.metadata_mut().insert("authorization", "Unknown x".parse().expect("a value"));
        let by_gateway = rejected(world, &path, unknown).await;
        let reason = "INVALID_AUTHENTICATION_INFO";
        assert_eq!(by_gateway, expected(Code::Unauthenticated, reason));
    }

    for service in [TABLE, QUEUE] {
        let path = format!("/{service}/None");
        let status = world.call(&path, Request::new(named.clone())).await.unwrap_err();
        assert_eq!(status.message(), format!("unknown method: path=`{path}`"));
        let unknown = rejected(world, &path, Request::new(named.clone())).await;
        let expected = (Code::Unimplemented, "NOT_IMPLEMENTED".to_owned(), service.to_owned());
        assert_eq!(unknown, expected);
    }

    let unknown = rejected(world, "/other.v1.Service/Call", Request::new(named.clone())).await;
    let expected = (Code::Unimplemented, "NOT_IMPLEMENTED", "other.v1.Service");
    assert_eq!((unknown.0, &*unknown.1, &*unknown.2), expected);

    // Health is a service of its own, without reasons where the server has it.
    let (_, reason, domain) =
        rejected(world, &format!("/{HEALTH}/Check"), Request::new(named)).await;
    assert!(reason.is_empty() || domain == HEALTH, "{reason} {domain}");
}
