//! Cross-origin resource sharing (CORS), by the rules that accounts have in their service
//! properties.
//!
//! A preflight request has no credentials, so its account is unknown: it is allowed where the rules
//! of any account of this server allow it. That grants nothing; a page may read the response of the call
//! itself only by the rules of the account that the call was authenticated for. The rules bind
//! browsers, not callers: a call is rejected for its origin only where the public key of the development account, or no
//! key, authenticates it.

mod service_cors;
#[cfg(test)]
mod tests;

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Method, header};
use tower::{Service, ServiceExt as _};
use trestle_identity::public_key::{AllowedPage, PageAccount};
use trestle_rpc::call_protocol::CallProtocol;
use trestle_rpc::layer::short_circuit::with_outcome;
use trestle_rpc::layer::{CallService, Request, Response, ResponseFuture};
use trestle_rpc::rpc_path::service_of;

pub use self::service_cors::{AccountNames, CorsStore};
use self::service_cors::{ServiceCors, error_response, preflight};
use crate::{IngressStack, short_circuit::ShortCircuit, web::Web};

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

/// In front of all layers: a preflight request is not a call.
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
        let mut inner = self.inner.clone();
        Box::pin(async move {
            if let Some(pages) = at.and_then(|at| services.get(at))
                && pages.is_development_page(&origin, &method).await
            {
                request.extensions_mut().insert(AllowedPage);
            }
            let answer = inner.ready().await?.call(request).await?;
            Ok(match at.and_then(|at| services.get(at)) {
                Some(pages) => pages.with_headers(answer, account.0.get(), origin, method).await,
                None => answer,
            })
        })
    }
}
