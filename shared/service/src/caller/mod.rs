//! Who calls, and what they may do: what the gateway learned from credentials and vouches for.
//!
//! Within a process a caller travels in the extensions of the request. To another process it
//! travels in two headers, which a gateway removes from what clients send. What a grant allows is
//! decided by the service that owns the data.

mod grant;
mod wire;

use std::sync::Arc;

use http::{HeaderMap, HeaderName};

pub use self::grant::{
    AccountGrant, Authority, Denied, KeyRange, Letters, PolicyRef, QueueGrant, TableGrant,
};
use crate::{facts::Facts, fault::Fault, layer::Request, name::AccountName};

/// The header that carries the account.
pub const ACCOUNT_HEADER: &str = "trestle-account";

/// The header that carries what the caller may do, where that is less than everything.
pub const GRANT_HEADER: &str = "trestle-grant-bin";

/// The header in which a client names the queue that its shared access signature is over, which
/// the signature does not say itself. A wrong name makes a wrong signature, nothing more.
pub const QUEUE_HEADER: &str = "trestle-queue";

/// The same as parsed names: every call is asked for them.
pub(crate) const ACCOUNT: HeaderName = HeaderName::from_static(ACCOUNT_HEADER);
const GRANT: HeaderName = HeaderName::from_static(GRANT_HEADER);
pub(crate) const QUEUE: HeaderName = HeaderName::from_static(QUEUE_HEADER);

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The account that the call works in.
    pub account: AccountName,
    /// What the caller may do there.
    pub authority: Authority,
}

impl Caller {
    /// Somebody who may do everything in an account.
    #[must_use]
    pub fn owner(account: AccountName) -> Self {
        Self { account, authority: Authority::Owner }
    }

    /// Puts the caller on a request, in place of what the client may have sent.
    pub fn insert(self: Arc<Self>, request: &mut Request) {
        remove(request.headers_mut());
        Facts::of(request.extensions()).caller(&self);
        request.extensions_mut().insert(self);
    }

    /// The caller that a request carries; the owner of the development account where it carries
    /// none.
    ///
    /// # Errors
    /// Headers that hold no caller.
    pub fn of<T>(request: &tonic::Request<T>) -> Result<Arc<Self>, Fault> {
        match request.extensions().get::<Arc<Self>>() {
            Some(caller) => Ok(Arc::clone(caller)),
            None => wire::read(request.metadata()).map(Arc::new),
        }
    }

    /// Writes the caller of a request that leaves the process into its headers.
    pub(crate) fn export(request: &mut Request) {
        if let Some(caller) = request.extensions_mut().remove::<Arc<Self>>() {
            wire::write(&caller, request.headers_mut());
        }
    }
}

/// Removes what claims to be a caller.
fn remove(headers: &mut HeaderMap) {
    headers.remove(ACCOUNT);
    headers.remove(GRANT);
    headers.remove(QUEUE);
}
