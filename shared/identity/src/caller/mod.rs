//! Who calls, and what they may do: what the gateway learned from credentials and vouches for.
//!
//! Within a process a caller travels in the extensions of the request. To another process it
//! travels in two headers, which a gateway removes from what clients send. What a grant allows is
//! decided by the service that owns the data.

mod grant;
mod wire;

use std::sync::Arc;

use http::{Extensions, HeaderMap, HeaderName};

pub use self::grant::{
    AccountGrant, Authority, Denied, KeyRange, Letters, PolicyRef, QueueGrant, TableGrant,
};
pub use trestle_service::name::ACCOUNT_HEADER;
use trestle_service::{
    facts::{Facts, LoggedCaller},
    fault::Fault,
    forwarded::{self, Forwarded},
    layer::Request,
    name::AccountName,
};

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
        Facts::of(request.extensions()).caller(|| self.logged());
        forwarded::insert(self, request.extensions_mut());
    }

    /// The caller that a request carries; the owner of the development account where it carries
    /// none.
    ///
    /// # Errors
    /// Headers that hold no caller.
    pub fn of<T>(request: &tonic::Request<T>) -> Result<Arc<Self>, Fault> {
        match Self::in_process(request.extensions()) {
            Some(caller) => Ok(caller),
            None => wire::read(request.metadata()).map(Arc::new),
        }
    }

    /// The caller that a layer of this process put on a request.
    #[must_use]
    pub fn in_process(extensions: &Extensions) -> Option<Arc<Self>> {
        forwarded::get(extensions)
    }

    fn logged(&self) -> LoggedCaller {
        let credential = match &self.authority {
            Authority::Owner => "owner",
            Authority::Account(_) => "account_sas",
            Authority::Table(_) => "table_sas",
            Authority::Queue(_) => "queue_sas",
        };
        let policy = self.authority.policy().map(|policy| policy.id.clone());
        LoggedCaller { account: self.account.clone(), credential, policy }
    }
}

/// In the headers of a request to another process.
impl Forwarded for Caller {
    fn write(&self, headers: &mut HeaderMap) {
        wire::write(self, headers);
    }
}

/// Removes what claims to be a caller.
fn remove(headers: &mut HeaderMap) {
    headers.remove(ACCOUNT);
    headers.remove(GRANT);
    headers.remove(QUEUE);
}
