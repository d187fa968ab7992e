//! Upstreams: a service in this process, or behind a few connections to another. Only this type
//! distinguishes them.
//!
//! In this process a call is work of its account, or of its peer where it has none: what costs the store much it does
//! in turns with the others.
//!
//! Both variants are the same service of calls; bodies and trailers pass untouched. To another process
//! a call is sent with its headers, which have caller and request id; the deadline becomes the rest of
//! it, the trace context that of the client span.
//!
//! What happens when the other process restarts, in the order of the files:
//! - `link`: opens a connection, checks the health of the service, watches it, and reconnects.
//! - `pool`: a call uses the least loaded connection; without one, it waits a bounded time.
//! - `retry`: a call that changed nothing is retried a few times, within a budget.
//! - `failed_call`: the error of a call states whether it may have changed something.
//!
//! No call is sent twice at the same time.

mod answer;
mod endpoint;
mod failed_call;
pub mod in_process;
pub mod kind;
mod link;
mod outgoing_body;
mod pool;
mod remote;
mod replay;
mod retry;
mod tls;

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use tokio::task::futures::TaskLocalFuture;
use tower::Service;
use trestle_kv::turns::Owner;

use crate::layer::{CallService, Request, Response, ResponseFuture, shares::CallHolder};

pub use self::{
    endpoint::{Endpoint, EndpointError},
    remote::{NothingChanged, Remote, RemoteOptions},
    tls::{ClientPem, ClientTls, ClientTlsError},
};

/// A service, in this process or another.
#[derive(Clone)]
pub enum Upstream {
    /// In this process; [`Upstream::local`] has each call of it work for its account.
    Local(CallService),
    /// In another process.
    Remote(Remote),
}

impl Upstream {
    /// A service in this process.
    pub fn local<S>(service: S) -> Self
    where
        S: Service<Request, Response = Response, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        Self::Local(CallService::new(OwnedCalls(service)))
    }
}

/// A service whose calls are work of their accounts. It is below the type-erased service, so that a call has no other
/// future of its own on the heap for it.
#[derive(Clone)]
struct OwnedCalls<S>(S);

impl<S> Service<Request> for OwnedCalls<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = TaskLocalFuture<Owner, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let owner = CallHolder::of(request.extensions()).holder().owner();
        owner.scope(self.0.call(request))
    }
}

impl Service<Request> for Upstream {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match self {
            Self::Local(service) => service.poll_ready(cx),
            Self::Remote(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        match self {
            Self::Local(service) => service.call(request),
            Self::Remote(remote) => remote.send(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::body::Body;

    use super::*;
    use crate::{layer::shares::Holder, response_stream};

    /// The owner of the tasks of a call: of the handler, and of the stream that it spawns.
    async fn owners(account: Option<&str>) -> [Owner; 2] {
        let (seen, mut owners) = tokio::sync::mpsc::unbounded_channel();
        let handler = tower::service_fn(move |_: Request| {
            let seen = seen.clone();
            async move {
                seen.send(Owner::current()).unwrap();
                let _responses = response_stream::spawn::<(), _>(|_| async move {
                    seen.send(Owner::current()).unwrap();
                    Ok(())
                });
                Ok(Response::new(Body::empty()))
            }
        });
        let mut request = Request::new(Body::empty());
        if let Some(account) = account {
            let holder = CallHolder::of(request.extensions());
            request.extensions_mut().insert(holder);
            CallHolder::authenticated(&mut request, account).unwrap();
        }
        let Ok(_response) = Upstream::local(handler).call(request).await;
        [owners.recv().await.unwrap(), owners.recv().await.unwrap()]
    }

    #[tokio::test]
    async fn the_tasks_of_a_call_take_turns_for_its_account() {
        let [one, two] = [owners(Some("one")).await, owners(Some("two")).await];
        assert_eq!(one, [Holder::account_alone("one").owner(); 2]);
        assert_eq!(two, [Holder::account_alone("two").owner(); 2]);
        let peer = owners(None).await;
        assert_eq!(peer[0], peer[1]);
        assert!(![Owner::PROCESS, one[0], two[0]].contains(&peer[0]), "{peer:?}");
    }
}
