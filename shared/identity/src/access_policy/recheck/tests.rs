use std::sync::{Mutex, PoisonError};

use http::HeaderValue;
use tonic::body::Body;
use tower::service_fn;
use trestle_model::name::AccountName;
use trestle_rpc::layer::middleware::MiddlewareService;

use super::*;
use crate::{
    caller::{Authority, PolicyRef, ResourceGrant},
    spec::QUEUE,
};

const STREAM: &str = "/trestle.queue.v1.QueueService/StreamMessages";
const RECEIVE: &str = "/trestle.queue.v1.QueueService/ReceiveMessages";
const PEEK: &str = "/trestle.queue.v1.QueueService/PeekMessages";

/// What a read of the policy returns.
type ReadPolicy = Result<Option<Letters>, Fault>;

/// What the store has of the policy, and how often it was read.
#[derive(Clone)]
struct Store(Arc<Mutex<(ReadPolicy, usize)>>);

impl Store {
    fn new(permissions: &str) -> Self {
        Self(Arc::new(Mutex::new((Ok(Letters::parse(permissions)), 0))))
    }

    fn set(&self, result: ReadPolicy) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = result;
    }

    fn reads(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    fn rechecks(&self) -> PolicyRechecks {
        let store = self.clone();
        PolicyRechecks::new(move |_| {
            let mut state = store.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.1 += 1;
            let result = state.0.clone();
            Box::pin(async move { result })
        })
    }
}

fn caller(authority: Authority) -> Arc<Caller> {
    Arc::new(Caller::new(AccountName::development(), authority))
}

fn by_policy() -> Arc<Caller> {
    let policy =
        PolicyRef { id: "p".to_owned(), has_start: false, has_expiry: false, denied: None };
    let grant = ResourceGrant { policy: Some(policy), ..ResourceGrant::new(&QUEUE, "", "jobs") };
    caller(Authority::Resource(grant))
}

/// Starts a call that never responds by itself.
fn start(store: &Store, path: &str, caller: Arc<Caller>) -> ResponseFuture {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = path.parse().expect("a path");
    caller.insert(&mut request);
    let never = service_fn(|_: Request| -> ResponseFuture { Box::pin(std::future::pending()) });
    let mut service = MiddlewareService::new(store.rechecks(), never);
    service.call(request)
}

/// The code of a call that ends within ten checks.
async fn code(call: &mut ResponseFuture) -> Option<HeaderValue> {
    let ended = tokio::time::timeout(RECHECK_EVERY * 10, call).await.ok()?;
    ended.expect("infallible").headers().get("grpc-status").cloned()
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_when_its_policy_is_denied_or_grants_less() {
    let denied = Fault::new(Reason::AuthenticationFailed, "the policy does not exist");
    for (path, result, expected) in [
        (STREAM, Err(denied.clone()), Some("16")),
        (RECEIVE, Err(denied), Some("16")),
        (STREAM, Ok(Letters::parse("a")), Some("7")),
        (STREAM, Ok(Letters::parse("apr")), None),
        // The store could not be read, which is no decision.
        (STREAM, Err(Fault::new(Reason::ServerUnavailable, "no store")), None),
    ] {
        let store = Store::new("ap");
        let mut call = start(&store, path, by_policy());
        assert_eq!(code(&mut call).await, None, "{path}");

        store.set(result);

        let expected = expected.map(HeaderValue::from_static);
        assert_eq!(code(&mut call).await, expected, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_long_calls_by_a_policy_read_it_again() {
    for (path, caller, reads) in [
        (PEEK, by_policy(), false),
        (STREAM, caller(Authority::Owner), false),
        (RECEIVE, caller(Authority::Anonymous), false),
        (STREAM, by_policy(), true),
    ] {
        let store = Store::new("ap");
        assert_eq!(code(&mut start(&store, path, caller)).await, None);
        assert_eq!(store.reads() > 1, reads, "{path}");
    }
}
