//! Ends a call when the stored access policy that opened it is removed, expires, or is changed to grant less.
//!
//! The service that stores the policy reads it again every second while a stream, or a call that waits, is open by it.
//! Every other call ends soon after its own check.

use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc, time::Duration};

use tower::Service;
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_rpc::layer::middleware::Middleware;
use trestle_rpc::layer::{Request, Response, ResponseFuture};
use trestle_rpc::status::meaning;
use trestle_rpc::upstream::kind::kind_of;

use tonic::Code;

use crate::{
    caller::{Caller, Letters},
    ending::{End, end_call},
};

/// Time between two checks of the policy of an open call.
pub const RECHECK_EVERY: Duration = Duration::from_secs(1);

/// The permissions that a stored access policy leaves a caller now; none for a caller without one.
pub type PolicyPermissions = Pin<Box<dyn Future<Output = Result<Option<Letters>, Fault>> + Send>>;

/// Reads the policy of a caller.
type ReadPolicy = dyn Fn(Arc<Caller>) -> PolicyPermissions + Send + Sync;

/// The layer of a service that stores access policies. See the module.
#[derive(Clone)]
pub struct PolicyRechecks {
    read: Arc<ReadPolicy>,
}

impl PolicyRechecks {
    /// Checks by `read`, which has the error of a policy that is not valid now.
    pub fn new(read: impl Fn(Arc<Caller>) -> PolicyPermissions + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read) }
    }

    /// Completes when the policy of `caller` stops granting what it `granted` when the call began.
    fn end(&self, caller: Arc<Caller>, granted: Letters) -> End {
        let read = Arc::clone(&self.read);
        Box::pin(async move {
            loop {
                tokio::time::sleep(RECHECK_EVERY).await;
                match read(Arc::clone(&caller)).await {
                    Ok(now) => {
                        let lost = granted.without(now.unwrap_or_default());
                        if !lost.is_empty() {
                            return narrowed(&caller, lost);
                        }
                    }
                    Err(fault) if is_rejection(&fault) => return fault,
                    // The store failed, not the policy: the next check decides.
                    Err(_) => {}
                }
            }
        })
    }
}

impl Middleware for PolicyRechecks {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let caller = Caller::of_policy(&request).filter(|_| {
            let kind = kind_of(request.uri().path());
            !kind.is_unary || kind.may_wait
        });
        let answer = inner.call(request);
        let Some(caller) = caller else { return answer };
        let rechecks = self.clone();
        Box::pin(async move {
            // Before the call begins, so that no later change counts as what it began with.
            match (rechecks.read)(Arc::clone(&caller)).await {
                Ok(Some(granted)) => end_call(answer, rechecks.end(caller, granted)).await,
                // The service responds with its own error.
                _ => answer.await,
            }
        })
    }
}

fn is_rejection(fault: &Fault) -> bool {
    matches!(meaning(fault.reason).code, Code::Unauthenticated | Code::PermissionDenied)
}

/// The error of a call whose policy was changed to grant less.
fn narrowed(caller: &Caller, lost: Letters) -> Fault {
    let id = caller.authority.policy().map(|policy| policy.id.as_str()).unwrap_or_default();
    let message = "the stored access policy was changed during the call";
    let message = format!("{message}: policy=`{}`, permissions lost=`{lost}`", quoted(id));
    Fault::new(Reason::AuthorizationPermissionMismatch, message)
}

#[cfg(test)]
mod tests;
