//! Cross-origin resource sharing (CORS), by the rules that accounts have in their service
//! properties.
//!
//! A preflight request has no credentials, so its account is unknown: it is allowed where the rules
//! of any account of this server allow it. That grants nothing; a page may read the response of the call
//! itself only by the rules of the account that the call was authenticated for. The rules bind
//! browsers, not callers: a call is never rejected for its origin.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use futures::{StreamExt as _, future, stream};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tower::Service;
use trestle_identity::caller::Caller;
use trestle_service::{
    call_protocol::CallProtocol,
    cors::{Lookup, Preflight, Rules},
    fault::{Fault, meaning},
    layer::{
        CallService, Request, Response, ResponseFuture,
        middleware::{Middleware, MiddlewareLayer},
        short_circuit::with_outcome,
    },
    name::AccountName,
};

use crate::{
    IngressStack,
    route::service_of,
    short_circuit::ShortCircuit,
    web::{Web, plain},
};

/// The header with the code of a failure, as Azure names it.
const ERROR_CODE: &str = "x-ms-error-code";
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

/// Serves browsers in front of `calls`: gRPC-Web, preflight requests, and the headers of CORS.
#[must_use]
pub fn cors(
    stack: &IngressStack,
    calls: CallService,
    stores: Vec<CorsStore>,
    accounts: &AccountNames,
) -> CallService {
    let pages = |store| ServiceCors { store, accounts: Arc::clone(accounts) };
    let pages = stores.into_iter().map(pages).collect();
    let short_circuit = ShortCircuit::new(stack);
    CallService::new(CorsGateway {
        inner: Web::new(calls, short_circuit.clone()),
        services: pages,
        short_circuit,
    })
}

/// In front of all layers: a preflight request is no call.
#[derive(Clone)]
struct CorsGateway {
    inner: Web,
    services: Arc<[ServiceCors]>,
    short_circuit: ShortCircuit,
}

impl CorsGateway {
    /// The CORS rules of the service of a path.
    fn pages(&self, path: &str) -> Option<usize> {
        let service = service_of(path);
        self.services.iter().position(|pages| Some(pages.store.service) == service)
    }
}

/// The account of a request from a page, once it is authenticated.
#[derive(Debug, Clone, Default)]
struct PageAccount(Arc<OnceLock<AccountName>>);

impl Service<Request> for CorsGateway {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> ResponseFuture {
        let (services, at) = (Arc::clone(&self.services), self.pages(request.uri().path()));
        if request.method() == Method::OPTIONS {
            request.extensions_mut().insert(CallProtocol::GrpcWeb);
            let headers = request.headers().clone();
            return self.short_circuit.answer(&request, async move {
                let pages = at.and_then(|at| services.get(at));
                match preflight(pages, &headers).await {
                    Ok(answer) => with_outcome(answer, Ok(())),
                    Err(fault) => with_outcome(error_response(&fault), Err(fault)),
                }
            });
        }
        let Some(origin) = request.headers().get(header::ORIGIN).cloned() else {
            return self.inner.call(request);
        };
        let method = request.method().clone();
        let account = PageAccount::default();
        request.extensions_mut().insert(account.clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(match at.and_then(|at| services.get(at)) {
                Some(pages) => pages.with_headers(answer, account.0.get(), origin, method).await,
                None => answer,
            })
        })
    }
}

/// The response to a preflight request.
async fn preflight(pages: Option<&ServiceCors>, headers: &HeaderMap) -> Result<Response, Fault> {
    let preflight = Preflight::read(headers)?;
    let pages = pages.ok_or_else(|| preflight.rejected())?;
    let allowed = pages.first_of_any(|rules| rules.preflight(preflight)).await;
    let allowed = allowed.ok_or_else(|| preflight.rejected())?;
    let mut answer = Response::default();
    *answer.headers_mut() = allowed.headers(Method::OPTIONS, headers.clone()).await;
    Ok(answer)
}

/// The CORS rules of a service.
struct ServiceCors {
    store: CorsStore,
    accounts: AccountNames,
}

impl ServiceCors {
    /// A response with the headers of CORS, where the rules of the account allow the page. A call
    /// that was rejected before it was authenticated has data of no account, so the rules of
    /// every account count, so that pages can read the error.
    async fn with_headers(
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

    /// What the rules of any account allow.
    async fn first_of_any<T>(&self, allowed: impl Fn(&Rules) -> Option<T>) -> Option<T> {
        let reads = stream::iter((self.accounts)())
            .map(|account| async move { self.store.lookup.rules(&account).await })
            .buffer_unordered(READS_MAX)
            .filter_map(|rules| future::ready(allowed(&rules)));
        std::pin::pin!(reads).next().await
    }
}

/// The error response of a preflight request. Browsers read its status only; the rest is for people.
fn error_response(fault: &Fault) -> Response {
    let meaning = meaning(fault.reason);
    let status = StatusCode::from_u16(meaning.http_status);
    let text = format!("{}: {}\n", meaning.azure_code, fault.message);
    let mut answer = plain(status.unwrap_or(StatusCode::FORBIDDEN), text);
    let code = HeaderValue::from_static(meaning.azure_code);
    answer.headers_mut().insert(ERROR_CODE, code);
    answer
}

/// Stores the account of a request from a page. Placed behind authentication.
pub(crate) type PageAccountLayer = MiddlewareLayer<StorePageAccount>;

/// See [`PageAccountLayer`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StorePageAccount;

impl Middleware for StorePageAccount {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let extensions = request.extensions();
        if let Some(page) = extensions.get::<PageAccount>()
            && let Some(caller) = Caller::in_process(extensions)
        {
            page.0.get_or_init(|| caller.account.clone());
        }
        inner.call(request)
    }
}

#[cfg(test)]
mod tests;
