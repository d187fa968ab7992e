//! Callers and their authorization: what the gateway authenticated.
//!
//! Within a process a caller is stored in the extensions of the request. To another process it is
//! sent in two headers, which a gateway removes from client requests. The service that owns the
//! data evaluates the grant.

mod grant;
mod key_range;
mod letters;
mod wire;

use std::{borrow::Cow, sync::Arc};

use http::{Extensions, HeaderMap, HeaderName};
use tonic::metadata::MetadataMap;

pub use self::{
    grant::{AccountGrant, Authority, GrantedResource, PolicyRef, ResourceGrant},
    key_range::KeyRange,
    letters::Letters,
};
use crate::spec::SERVICES;
use trestle_model::fault::Fault;
pub use trestle_model::name::ACCOUNT_HEADER;
use trestle_model::name::AccountName;
use trestle_rpc::call_statistics::{LoggedCaller, StatisticsRecorder};
use trestle_rpc::forwarded::{self, Forwarded};
use trestle_rpc::layer::Request;
use trestle_rpc::layer::shares::CallHolder;
use trestle_rpc::quota::CallQuotas;

/// The header with the authorization of the caller, if that is less than full access.
pub const GRANT_HEADER: &str = "trestle-grant-bin";

/// The header in which a client names the queue of its shared access signature, which the signature
/// itself does not contain. With a wrong name the signature does not match; it has no other effect.
pub const QUEUE_HEADER: &str = "trestle-queue";

/// The header in which a client names the container or the blob of its shared access signature: `container`, or
/// `container/blob` with everything but visible ASCII and with `%` percent-encoded. As [`QUEUE_HEADER`].
pub const BLOB_HEADER: &str = "trestle-blob";

/// The header with the time of the snapshot or the version that the signature is for: as `snapshot` or `version_id` of
/// the request have it. As [`QUEUE_HEADER`].
pub const BLOB_STATE_HEADER: &str = "trestle-blob-state";

/// The same as parsed names: every call looks them up.
pub(crate) const ACCOUNT: HeaderName = HeaderName::from_static(ACCOUNT_HEADER);
const GRANT: HeaderName = HeaderName::from_static(GRANT_HEADER);

/// The caller of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The account of the call.
    pub account: AccountName,
    /// The authorization of the caller in it.
    pub authority: Authority,
    /// The authorization of a read of the source of a copy, if the URL of the source has a signature of its own; none:
    /// that of the caller.
    pub source: Option<Box<Authority>>,
}

impl Caller {
    /// A caller of an account, with this authorization for all that it does.
    #[must_use]
    pub fn new(account: AccountName, authority: Authority) -> Self {
        Self { account, authority, source: None }
    }

    /// The same caller, who reads the source of a copy with another authorization.
    #[must_use]
    pub fn with_source(&self, source: Authority) -> Self {
        Self { source: Some(Box::new(source)), ..self.clone() }
    }

    /// The caller as the one who reads the source of a copy.
    #[must_use]
    pub fn at_source(&self) -> Self {
        let authority = self.source.as_deref().unwrap_or(&self.authority);
        Self::new(self.account.clone(), authority.clone())
    }

    /// A caller with full access to an account.
    #[must_use]
    pub fn owner(account: AccountName) -> Self {
        Self::new(account, Authority::Owner)
    }

    /// Puts the caller on a request, instead of any value from the client.
    pub fn insert(self: Arc<Self>, request: &mut Request) {
        remove(request.headers_mut());
        StatisticsRecorder::of(request.extensions()).record_caller(|| self.logged());
        forwarded::insert(self, request.extensions_mut());
    }

    /// Puts the caller on a call that this process makes for another caller, who remains the one that is logged.
    pub fn replace(self: Arc<Self>, extensions: &mut Extensions) {
        forwarded::insert(self, extensions);
    }

    /// Has a call count for the account of the caller from now on. One without credentials counts for its peer, since
    /// the account does not answer for who reads what it made public, and has quotas of its own there.
    ///
    /// # Errors
    /// The account has its share of the calls of its kind, or has used its quota.
    pub fn take_share(
        &self,
        request: &mut Request,
        quotas: Option<&Arc<CallQuotas>>,
    ) -> Result<(), Fault> {
        let has_credentials = !matches!(self.authority, Authority::Anonymous);
        if has_credentials {
            CallHolder::authenticated(request, self.account.as_str())?;
        }
        let admitted = quotas.map(|quotas| quotas.admit(&self.account, has_credentials));
        if let Some(meter) = admitted.transpose()?.flatten() {
            CallHolder::measure(request, meter);
        }
        Ok(())
    }

    /// The caller of a request; the owner of the development account if it has none.
    ///
    /// # Errors
    /// Headers without a valid caller.
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

    /// The caller of a request by a stored access policy; none for every other one, and for invalid headers, which the
    /// service rejects.
    pub(crate) fn of_policy(request: &Request) -> Option<Arc<Self>> {
        let is_sent = || request.headers().contains_key(GRANT);
        let caller = Self::in_process(request.extensions());
        let caller = caller.or_else(|| is_sent().then(|| Self::sent(request))?)?;
        caller.authority.policy().is_some().then_some(caller)
    }

    /// The caller of a request whose body is not read yet; none for invalid headers, which the service rejects.
    #[must_use]
    pub fn of_call(request: &Request) -> Option<Arc<Self>> {
        Self::in_process(request.extensions()).or_else(|| Self::sent(request))
    }

    /// The caller in the headers of a request.
    fn sent(request: &Request) -> Option<Arc<Self>> {
        let metadata = MetadataMap::from_headers(request.headers().clone());
        Some(Arc::new(wire::read(&metadata).ok()?))
    }

    fn logged(&self) -> LoggedCaller {
        let credential = match &self.authority {
            Authority::Owner => Cow::Borrowed("owner"),
            Authority::Role(role) => Cow::Owned(format!("bearer_{role}")),
            Authority::Account(_) => Cow::Borrowed("account_sas"),
            Authority::Anonymous => Cow::Borrowed("anonymous"),
            Authority::Resource(grant) => Cow::Owned(format!("{}_sas", grant.resource.service)),
        };
        let policy = self.authority.policy().map(|policy| policy.id.clone());
        LoggedCaller { account: self.account.clone(), credential, policy }
    }
}

/// Writes the headers of a request to another process.
impl Forwarded for Caller {
    fn write(&self, headers: &mut HeaderMap) {
        wire::write(self, headers);
    }
}

/// Removes every header of a caller.
fn remove(headers: &mut HeaderMap) {
    headers.remove(ACCOUNT);
    headers.remove(GRANT);
    for header in SERVICES.iter().flat_map(|service| service.headers()) {
        headers.remove(header);
    }
}
