//! What the CORS rules of a service allow: the headers of responses, and the responses to preflight requests.

use std::sync::Arc;

use futures::{StreamExt as _, future, stream};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use trestle_model::{fault::Fault, name::AccountName};
use trestle_rpc::cors::{Lookup, Preflight, Rules};
use trestle_rpc::layer::Response;
use trestle_rpc::status::meaning;

use crate::plain_answer::plain;

/// The header with the code of a failure, as Azure names it.
pub(super) const ERROR_CODE: &str = "x-ms-error-code";
/// Most accounts whose rules are read concurrently.
const READS_MAX: usize = 16;

/// The accounts of this server at the time of the call, because they may change.
pub type AccountNames = Arc<dyn Fn() -> Vec<AccountName> + Send + Sync>;

/// Where the rules for calls of a service are stored.
pub struct CorsStore {
    /// The full name of the service.
    pub service: &'static str,
    /// Reads its rules.
    pub lookup: Lookup,
}

/// The CORS rules of a service.
pub(super) struct ServiceCors {
    pub(super) store: CorsStore,
    /// The accounts that have rules.
    pub(super) accounts: AccountNames,
}

impl ServiceCors {
    /// A response with the headers of CORS, where the rules of the account allow the page. A call
    /// that was rejected before it was authenticated has data of no account, so the rules of
    /// every account count, so that pages can read the error.
    pub(super) async fn with_headers(
        &self,
        answer: Response,
        account: Option<&AccountName>,
        origin: HeaderValue,
        method: Method,
    ) -> Response {
        let (mut answer, body) = answer.into_parts();
        let allowed = |rules: &Rules| rules.answer(&origin, &method, &answer.headers);
        let allowed = match account {
            Some(account) => allowed(&self.store.lookup.rules(account).await),
            None => self.first_of_any(allowed).await,
        };
        if let Some(allowed) = allowed {
            let request = HeaderMap::from_iter([(header::ORIGIN, origin)]);
            for (name, value) in &allowed.headers(method, request).await {
                answer.headers.append(name, value.clone());
            }
        }
        Response::from_parts(answer, body)
    }

    /// Whether the rules of the development account allow the page, so that its public key counts for it.
    pub(super) async fn is_development_page(&self, origin: &HeaderValue, method: &Method) -> bool {
        let account = AccountName::development();
        self.store.lookup.rules(&account).await.allow(origin, method)
    }

    /// What the rules of any account allow.
    async fn first_of_any<T>(&self, allowed: impl Fn(&Rules) -> Option<T>) -> Option<T> {
        let reads = stream::iter((self.accounts)())
            .map(|account| async move { self.store.lookup.rules(&account).await })
            .buffer_unordered(READS_MAX)
            .filter_map(|rules| future::ready(allowed(&rules)));
        std::pin::pin!(reads).next().await
    }
}

/// The response to a preflight request.
pub(super) async fn preflight(
    pages: Option<&ServiceCors>,
    headers: &HeaderMap,
) -> Result<Response, Fault> {
    let preflight = Preflight::read(headers)?;
    let pages = pages.ok_or_else(|| preflight.rejected())?;
    let allowed = pages.first_of_any(|rules| rules.preflight(preflight)).await;
    let allowed = allowed.ok_or_else(|| preflight.rejected())?;
    let mut answer = Response::default();
    *answer.headers_mut() = allowed.headers(Method::OPTIONS, headers.clone()).await;
    Ok(answer)
}

/// The error response of a preflight request. Browsers read its status only; the rest is for people.
pub(super) fn error_response(fault: &Fault) -> Response {
    let meaning = meaning(fault.reason);
    let status = StatusCode::from_u16(meaning.http_status);
    let text = format!("{}: {}\n", meaning.azure_code, fault.message);
    let mut answer = plain(status.unwrap_or(StatusCode::FORBIDDEN), text);
    let code = HeaderValue::from_static(meaning.azure_code);
    answer.headers_mut().insert(ERROR_CODE, code);
    answer
}
