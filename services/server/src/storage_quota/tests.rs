use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, StreamBody};
use tonic::{Code, body::Body};
use tonic_types::StatusExt as _;
use tower::{Layer as _, ServiceExt as _, service_fn};
use trestle_identity::caller::Authority;
use trestle_model::name::AccountName;
use trestle_rpc::{layer::CallService, quota::StorageMax};

use super::*;

const PART: &[u8] = &[7; 100];

/// Every account may store so many bytes, and so many blobs.
fn quotas(bytes: u64, blobs: u64) -> StorageQuotas {
    StorageQuotas::without_metrics(StorageMax::new(|limit| match limit {
        StorageLimit::StoredBytes => bytes,
        StorageLimit::Blobs => blobs,
        _ => 0,
    }))
}

/// The service behind the layer: reads the request, and responds as it is set.
#[derive(Clone, Default)]
struct Behind {
    calls: Arc<AtomicUsize>,
    fails: bool,
}

impl Behind {
    fn layered(&self, quotas: &StorageQuotas, owner: StorageOwner) -> CallService {
        let behind = self.clone();
        let service = service_fn(move |request: Request| {
            let behind = behind.clone();
            async move {
                behind.calls.fetch_add(1, SeqCst);
                let read = request.into_body().collect().await;
                let status = match read {
                    Err(status) => status,
                    Ok(_) if behind.fails => Status::not_found("absent"),
                    Ok(_) => return Ok::<Response, Infallible>(Response::new(Body::empty())),
                };
                Ok(status.into_http())
            }
        });
        CallService::new(layer(quotas, owner).layer(CallService::new(service)))
    }

    fn calls(&self) -> usize {
        self.calls.load(SeqCst)
    }
}

/// Calls a method with a body of so many parts; the status of the response, if it has one.
async fn call(service: &CallService, method: &str, parts: usize) -> Option<Status> {
    let mut frames = Vec::new();
    for _ in 0..parts {
        let frame = Full::new(Bytes::from_static(PART)).frame().await.expect("a frame");
        frames.push(frame.map_err(|never| match never {}));
    }
    let frames: Vec<Result<_, Status>> = frames;
    let mut request = Request::new(Body::new(StreamBody::new(tokio_stream::iter(frames))));
    *request.uri_mut() = format!("/test.Service/{method}").parse().expect("a path");
    let account = AccountName::parse("acme").expect("a name");
    Arc::new(Caller::new(account, Authority::Owner)).insert(&mut request);
    let Ok(response) = service.clone().oneshot(request).await;
    Status::from_header_map(response.headers())
}

fn reason(status: Option<Status>) -> (Code, String) {
    let status = status.expect("an error");
    let info = status.get_error_details().error_info().cloned();
    (status.code(), info.map(|info| info.reason).unwrap_or_default())
}

fn busy() -> (Code, String) {
    (Code::ResourceExhausted, "SERVER_BUSY".to_owned())
}

#[tokio::test]
async fn a_call_that_adds_bytes_is_rejected_at_the_quota_and_others_pass() {
    let (quotas, behind) = (quotas(150, 0), Behind::default());
    let service = behind.layered(&quotas, StorageOwner::Tables);
    assert!(call(&service, "InsertEntity", 1).await.is_none());
    assert!(call(&service, "UpsertEntity", 1).await.is_none(), "one message passes as a whole");

    let rejected = reason(call(&service, "InsertEntity", 1).await);

    assert_eq!((rejected, behind.calls()), (busy(), 2));
    for passes in ["DeleteEntity", "GetEntity", "ExecuteBatch", "ReceiveMessages", "LeaseBlob"] {
        assert!(call(&service, passes, 1).await.is_none(), "{passes}");
    }
    let other = AccountName::parse("other").expect("a name");
    assert_eq!(quotas.check_bytes(StorageOwner::Tables, &other), Ok(()));
}

#[tokio::test]
async fn a_stream_is_rejected_at_its_next_part() {
    let (quotas, behind) = (quotas(1000, 0), Behind::default());
    let service = behind.layered(&quotas, StorageOwner::Blobs);
    assert!(call(&service, "StageBlock", 10).await.is_none());
    let account = AccountName::parse("acme").expect("a name");
    let used = || quotas.usage(&account).first().expect("a quota").used;
    assert_eq!(used(), 1000);
    let rejected = reason(call(&service, "WritePages", 10).await);
    assert_eq!((rejected, behind.calls()), (busy(), 1), "before the service");

    let nothing = async { Ok::<_, Infallible>(std::collections::HashMap::new()) };
    let Ok(()) = quotas.measure(StorageOwner::Blobs, nothing).await;
    let rejected = reason(call(&service, "StageBlock", 1000).await);

    assert_eq!((rejected, behind.calls()), (busy(), 2), "in the service");
    assert_eq!(used(), 1000, "nothing passes after the quota");
}

#[tokio::test]
async fn blobs_count_where_the_call_that_makes_one_succeeds() {
    let quotas = quotas(0, 2);
    let failing = Behind { fails: true, ..Behind::default() };
    let fails = failing.layered(&quotas, StorageOwner::Blobs);
    for _ in 0..5 {
        assert_eq!(call(&fails, "CommitBlocks", 1).await.expect("fails").code(), Code::NotFound);
    }
    let behind = Behind::default();
    let service = behind.layered(&quotas, StorageOwner::Blobs);
    assert!(call(&service, "WriteBlob", 3).await.is_none());
    assert!(call(&service, "CreateAppendBlob", 1).await.is_none());

    for makes in ["WriteBlob", "CommitBlocks", "CreateAppendBlob", "CreatePageBlob", "CopyBlob"] {
        assert_eq!(reason(call(&service, makes, 1).await), busy(), "{makes}");
    }
    assert!(call(&service, "AppendBlock", 5).await.is_none(), "it makes no blob");
    assert_eq!(behind.calls(), 3);
}

#[tokio::test]
async fn without_a_quota_of_the_account_nothing_counts() {
    let behind = Behind::default();
    let quotas = StorageQuotas::default();
    let service = behind.layered(&quotas, StorageOwner::Queues);

    for _ in 0..3 {
        assert!(call(&service, "SendMessages", 100).await.is_none());
    }

    assert_eq!((behind.calls(), quotas.every_usage()), (3, Vec::new()));
}

#[test]
fn each_method_that_is_named_exists() {
    let methods = crate::ingress::methods();
    let services = crate::roles::ROLES.iter().flat_map(|role| role.services);
    let services: Vec<_> = services.collect();
    for name in [
        "InsertEntity",
        "UpdateEntity",
        "UpsertEntity",
        "CreateTable",
        "SendMessages",
        "CreateQueue",
        "CreateContainer",
        "SnapshotBlob",
        "CreateStream",
        "AppendRecords",
        "Export",
        "ExecuteBatch",
        "UpdateMessage",
        "ImportEntities",
        "StageBlock",
        "AppendBlock",
        "WritePages",
        "AppendStream",
        "CommitBlocks",
        "CreateAppendBlob",
        "CreatePageBlob",
        "CopyBlob",
        "WriteBlob",
    ] {
        let path = |service: &&&str| format!("/{service}/{name}");
        let found: Vec<_> = services
            .iter()
            .map(|service| methods.of(&path(service)))
            .filter(|method| methods.contains(method))
            .collect();
        let adds = Adds::of(&format!("/a/{name}")).expect(name);
        assert!(!found.is_empty(), "{name}");
        assert!(found.iter().all(|method| !method.reads), "{name}");
        assert!(found.iter().all(|method| method.streams_in == adds.is_stream()), "{name}");
    }
}
