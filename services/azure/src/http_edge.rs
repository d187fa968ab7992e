//! The HTTP edge: from an HTTP request to a call through the layers, and back.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use tonic::{Code, Status, body::Body};
use tower::{Service, ServiceExt as _};
use trestle_identity::{
    account::{Account, Accounts},
    public_key::AllowedPage,
};
use trestle_model::fault::{Fault, Reason};
use trestle_model::time::Clock;
use trestle_rpc::call_protocol::CallProtocol;
use trestle_rpc::cors::{Lookup, Preflight};
use trestle_rpc::layer::body_bytes::Unframed;
use trestle_rpc::layer::body_wrapper::{BodyPart, BodyWrapper, Next, wrap_body};
use trestle_rpc::layer::short_circuit::ShortCircuitResponse;
use trestle_rpc::layer::trace::REQUEST_ID_HEADER;
use trestle_rpc::layer::{CallService, Request, Response, ResponseFuture, STATUS_HEADERS};
use trestle_rpc::propagation::trace_headers;

use crate::{
    auth,
    date::http_date,
    dispatch::{RequestContext, counted, rejected},
    drain::DrainableBody,
    error::{ErrorResponse, RestError},
    head::{CLIENT_REQUEST_ID, RequestHead},
    params::Params,
    protocol::RestProtocol,
    reply::{self, ERROR_CODE, REQUEST_ID, Rendered},
    version::{self, VERSION},
};

/// The method of every service that changes the CORS rules.
const SET_RULES: &str = "/SetServiceProperties";
/// The challenge of a request without credentials. Shared access signatures have no scheme of HTTP.
const CHALLENGE: HeaderValue = HeaderValue::from_static("SharedKey");
/// The policy of a stored page whose origin is not its own: it gets one of its own, whatever it does.
const SANDBOX: HeaderValue = HeaderValue::from_static(
    "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads",
);
/// The Azure code of malformed credentials.
const MALFORMED: &str = "InvalidAuthenticationInfo";
/// Longest client request id that is echoed, in bytes.
const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;
/// Longest time limit of a client, in seconds; a longer one is reduced to this.
const TIMEOUT_SECONDS_MAX: u64 = 30;

/// See the module.
#[derive(Clone)]
pub(crate) struct HttpEdge<P> {
    calls: CallService,
    state: Arc<EdgeState<P>>,
}

/// The shared, constant state of all requests.
struct EdgeState<P> {
    protocol: P,
    clock: Arc<dyn Clock>,
    rules: Lookup,
    accounts: Accounts,
}

impl<P: RestProtocol> HttpEdge<P> {
    /// An HTTP edge before `calls`: the layers, with the dispatch behind them. The CORS rules are
    /// read from `rules`, and the challenge of bearer tokens from `accounts`.
    pub(crate) fn new(
        protocol: P,
        calls: CallService,
        clock: Arc<dyn Clock>,
        rules: Lookup,
        accounts: Accounts,
    ) -> Self {
        Self { calls, state: Arc::new(EdgeState { protocol, clock, rules, accounts }) }
    }

    /// The call of a page to the development account, whose public key counts where a rule of the account allows the
    /// page.
    fn call_of_page(&self, mut call: Request, head: Arc<RequestHead>) -> ResponseFuture {
        let (mut calls, state) = (self.calls.clone(), Arc::clone(&self.state));
        Box::pin(async move {
            let rules = state.rules.rules(&head.account).await;
            let origin = head.headers.get(header::ORIGIN);
            if origin.is_some_and(|origin| rules.allow(origin, &head.method)) {
                call.extensions_mut().insert(AllowedPage);
            }
            calls.ready().await?.call(call).await
        })
    }
}

impl<P: RestProtocol> EdgeState<P> {
    /// Whether a page that is stored at an address has the origin of what is not its own: of all accounts where they
    /// are in the path, or of everything that the public key opens. A website has a host of its own.
    fn shares_origin(&self, head: &RequestHead) -> bool {
        let is_public = || {
            let accounts = self.accounts.now();
            accounts.get(head.account.as_str()).is_some_and(Account::has_public_key)
        };
        !head.is_website && (head.is_account_in_path || is_public())
    }

    /// The request as the layers see it: a call of its gRPC method.
    fn call_of(&self, mut request: Request, head: Arc<RequestHead>) -> Request {
        let limit = timeout(&head);
        let operation = self.protocol.route(&head);
        let operation = limit.clone().and(operation).and_then(|operation| {
            check_length(&head)?;
            Ok(operation)
        });
        let target = operation.as_ref().ok().map(|operation| self.protocol.target(operation));
        let path = target.map_or(P::UNKNOWN, |target| target.path);
        let is_stream =
            operation.as_ref().is_ok_and(|operation| self.protocol.transfer(operation).is_streamed);
        let mut headers = trace_headers(&head.headers);
        // One that streams has no end that a client can foresee: it ends where no more bytes arrive.
        if let Ok(Some(limit)) = limit
            && !is_stream
        {
            let text = format!("{}S", limit.as_secs());
            headers.insert("grpc-timeout", text.parse().expect("digits and a letter"));
        }
        *request.method_mut() = Method::POST;
        *request.uri_mut() = http::Uri::from_static(path);
        *request.headers_mut() = headers;
        // The encoding of a body that is streamed is a property of what is stored.
        let is_compressed = !is_stream && head.headers.contains_key(header::CONTENT_ENCODING);
        request.extensions_mut().insert(Unframed { is_compressed, is_stream });
        request.extensions_mut().insert(RequestContext::<P> { head, operation });
        request
    }

    /// The same for a CORS preflight.
    fn preflight_of(self: &Arc<Self>, request: &Request, head: Arc<RequestHead>) -> Request {
        let (state, headers) = (Arc::clone(self), head.headers.clone());
        ShortCircuitResponse::request(request, &headers, P::UNKNOWN, async move {
            match state.preflight(&head).await {
                Ok(answer) => counted(answer),
                Err(fault) => error_answer(fault),
            }
        })
    }

    /// The response to a CORS preflight. It needs no credentials, and does not check whether the
    /// requested resource exists.
    async fn preflight(&self, head: &RequestHead) -> Result<Response, Fault> {
        let preflight = Preflight::read(&head.headers)?;
        let rules = self.rules.rules(&head.account).await;
        let allowed = rules.preflight(preflight).ok_or_else(|| preflight.rejected())?;
        let mut answer = reply::empty(StatusCode::OK);
        let headers = allowed.headers(Method::OPTIONS, head.headers.clone()).await;
        answer.headers_mut().extend(headers);
        Ok(answer)
    }

    /// Sets the CORS headers of a response by the rules of the account, and `Vary` if they depend
    /// on the origin: also on the response to a request without one, which a cache may return to a
    /// page.
    async fn set_cors_headers(&self, answer: &mut Response, head: &RequestHead) {
        let origin = head.headers.get(header::ORIGIN);
        let is_cached = matches!(head.method, Method::GET | Method::HEAD);
        if origin.is_none() && !is_cached {
            return;
        }
        let rules = self.rules.rules(&head.account).await;
        if is_cached && rules.vary(&head.method) {
            answer.headers_mut().insert(header::VARY, HeaderValue::from_static("Origin"));
        }
        let Some(origin) = origin else {
            return;
        };
        let Some(allowed) = rules.answer(origin, &head.method, answer.headers()) else {
            return;
        };
        let origin_only = HeaderMap::from_iter([(header::ORIGIN, origin.clone())]);
        for (name, value) in &allowed.headers(head.method.clone(), origin_only).await {
            answer.headers_mut().insert(name, value.clone());
        }
    }

    /// The header `Date`, which for HTTP/1 the listener sets.
    fn date(&self) -> HeaderValue {
        let text = http_date(Some(&self.clock.now().into()));
        let mut date = HeaderValue::from_str(&text).expect("a date is visible ASCII");
        // Excluded from the HPACK tables of HTTP/2, which it would fill.
        date.set_sensitive(true);
        date
    }

    fn failed(
        &self,
        error: RestError,
        request_id: &str,
        headers: &HeaderMap,
        head: Option<&RequestHead>,
    ) -> Response {
        let mut response =
            ErrorResponse::new(error, request_id, self.clock.now()).of_request(headers);
        // Clients request another token then, as from Azure. Without issuers no token helps.
        let has_issuers = self.accounts.now().issuers().iter().next().is_some();
        if response.code == MALFORMED && has_issuers && has_bearer_token(headers) {
            response.status = StatusCode::UNAUTHORIZED;
        }
        let mut answer = self.protocol.error_response(&response, headers, head);
        *answer.status_mut() = response.status;
        let headers = answer.headers_mut();
        if let Ok(code) = response.code.parse() {
            headers.insert(ERROR_CODE, code);
        }
        headers.extend(response.header);
        if response.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, self.challenge());
        }
        if let Some(delay) = response.retry_after {
            // Whole seconds, at least one.
            let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        answer
    }

    /// The challenge of a request without valid credentials: the first issuer of bearer tokens, as Azure names its own.
    fn challenge(&self) -> HeaderValue {
        let accounts = self.accounts.now();
        let Some(issuer) = accounts.issuers().iter().next() else { return CHALLENGE };
        let (uri, resource) = (&issuer.issuer, &issuer.audience);
        let text = format!("Bearer authorization_uri={uri} resource_id={resource}");
        HeaderValue::from_str(&text).unwrap_or(CHALLENGE)
    }

    /// The REST response of a call, to a request with these headers.
    fn rendered(
        &self,
        answer: Response,
        headers: &HeaderMap,
        head: Option<&RequestHead>,
    ) -> Response {
        let id = answer.headers().get(REQUEST_ID_HEADER).cloned();
        let mut answer = match answer.extensions().get::<Rendered>() {
            Some(Rendered) => answer,
            None => {
                let error = answer.extensions().get::<RestError>().cloned();
                let error = error.unwrap_or_else(|| {
                    let status = Status::from_header_map(answer.headers());
                    status.unwrap_or_else(|| Status::internal("no status")).into()
                });
                let id = id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default();
                self.failed(error, id, headers, head)
            }
        };
        let headers = answer.headers_mut();
        for name in STATUS_HEADERS {
            headers.remove(name);
        }
        headers.remove(REQUEST_ID_HEADER);
        headers.extend(id.map(|id| (REQUEST_ID, id)));
        answer.map(|body| wrap_body(body, Complete))
    }
}

impl<P: RestProtocol> Service<Request> for HttpEdge<P> {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.calls.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> ResponseFuture {
        let state = Arc::clone(&self.state);
        let is_http2 = request.version() == Version::HTTP_2;
        let is_head = request.method() == Method::HEAD;
        request.extensions_mut().insert(CallProtocol::Rest);
        let body = DrainableBody::of(&mut request);
        let head = RequestHead::take(&mut request, P::SERVICE);
        let (head, call) = match head {
            Ok(head) => {
                let head = Arc::new(head);
                let call = match head.method {
                    // The headers were moved into the head.
                    Method::OPTIONS => state.preflight_of(&request, Arc::clone(&head)),
                    _ => state.call_of(request, Arc::clone(&head)),
                };
                (Ok(head), call)
            }
            Err(fault) => {
                let rejected = std::future::ready(error_answer(fault));
                let call = ShortCircuitResponse::request(
                    &request,
                    request.headers(),
                    P::UNKNOWN,
                    rejected,
                );
                (Err(std::mem::take(request.headers_mut())), call)
            }
        };
        let sets_rules = call.uri().path().ends_with(SET_RULES);
        let calls = match head.as_ref().ok().filter(|head| head.is_development_page()) {
            None => self.calls.call(call),
            Some(head) => self.call_of_page(call, Arc::clone(head)),
        };
        // Every response is completed, of any origin.
        Box::pin(async move {
            let (headers, head) = match &head {
                Ok(head) => (&head.headers, Some(&**head)),
                Err(headers) => (headers, None),
            };
            let mut answer = state.rendered(calls.await?, headers, head);
            common(answer.headers_mut(), headers, head.map(|head| &head.params));
            if !is_blob(&answer) {
                let no_cache = HeaderValue::from_static("no-cache");
                answer.headers_mut().entry(header::CACHE_CONTROL).or_insert(no_cache);
            }
            if let Some(head) = head
                && is_active(&answer)
                && state.shares_origin(head)
            {
                answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, SANDBOX);
            }
            if is_http2 {
                answer.headers_mut().insert(header::DATE, state.date());
            }
            // Over HTTP/1 the listener omits it, and over HTTP/2 it would break the rule.
            if is_head {
                drop_body(&mut answer);
            }
            // Also if the outcome is unknown, as after a server error.
            if let Some(head) = head.filter(|_| sets_rules && !answer.status().is_client_error()) {
                state.rules.invalidate(&head.account);
            }
            let is_preflight = head.is_some_and(|head| head.method == Method::OPTIONS);
            if let Some(head) = head.filter(|_| !is_preflight) {
                state.set_cors_headers(&mut answer, head).await;
            }
            // A preflight needs no credentials, so the rest of its body is not drained.
            if let Some(body) = body
                && (is_preflight || !body.drained().await)
            {
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(answer)
        })
    }
}

/// Whether a request has a bearer token.
fn has_bearer_token(headers: &HeaderMap) -> bool {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    value.and_then(auth::bearer_token).is_some()
}

/// The error of a request that becomes no call, for the layers to count.
fn error_answer(fault: Fault) -> Response {
    let reason = fault.reason;
    let mut answer = rejected(fault.into());
    answer.extensions_mut().insert(reason);
    answer
}

/// The headers of every response.
fn common(headers: &mut HeaderMap, client: &HeaderMap, params: Option<&Params>) {
    headers.insert(VERSION, version::negotiated(client, params));
    headers.insert(header::SERVER, HeaderValue::from_static("Trestle"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(id) = client.get(CLIENT_REQUEST_ID).filter(|id| is_id(id.as_bytes())) {
        headers.insert(CLIENT_REQUEST_ID, id.clone());
    }
}

/// Whether a response is a blob, or that it is unchanged. Whether a cache may keep it is for its owner to decide.
fn is_blob(answer: &Response) -> bool {
    answer.headers().contains_key(header::ACCEPT_RANGES)
        || answer.status() == StatusCode::NOT_MODIFIED
}

/// Leaves the head of a response alone.
fn drop_body(answer: &mut Response) {
    *answer.body_mut() = Body::empty();
    if !answer.status().is_success() {
        // They would announce a document that clients then try to read.
        let headers = answer.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// Whether a browser runs scripts in a response that is a blob: by its type, since it guesses none.
fn is_active(answer: &Response) -> bool {
    let media = answer.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let media = media.map(|media| String::from_utf8_lossy(media).to_ascii_lowercase());
    let is_of = |media: String| ["html", "xml", "svg", "mixed"].iter().any(|of| media.contains(of));
    is_blob(answer) && media.is_none_or(is_of)
}

/// Whether a client request id is valid.
fn is_id(id: &[u8]) -> bool {
    id.len() <= CLIENT_REQUEST_ID_BYTES_MAX && id.iter().all(|byte| (b' '..=b'~').contains(byte))
}

/// The time limit of the client.
fn timeout(head: &RequestHead) -> Result<Option<Duration>, RestError> {
    let Some(text) = head.params.get("timeout") else {
        return Ok(None);
    };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Digits that overflow the number exceed the maximum.
    match text.parse().unwrap_or(u64::MAX) {
        seconds @ 1.. if is_number => {
            Ok(Some(Duration::from_secs(seconds.min(TIMEOUT_SECONDS_MAX))))
        }
        _ => {
            let rule = "must be a number of seconds, 1 or more";
            Err(RestError::of_parameter(Reason::InvalidQueryParameterValue, "timeout", text, rule))
        }
    }
}

/// Requires a declared length for a request that may have a body.
fn check_length(head: &RequestHead) -> Result<(), Fault> {
    let declarations = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
    let is_declared = declarations.iter().any(|name| head.headers.contains_key(name));
    let has_none = [Method::GET, Method::HEAD, Method::DELETE, Method::OPTIONS];
    if is_declared || head.is_http2 || has_none.contains(&head.method) {
        return Ok(());
    }
    let message = "the length of the body is required: Content-Length or Transfer-Encoding";
    Err(Fault::new(Reason::MissingContentLengthHeader, message))
}

/// A body that is cut off if the layers fail a call after its response began: otherwise a client
/// would accept a truncated response as complete.
struct Complete;

impl BodyWrapper for Complete {
    fn map_part(&mut self, part: BodyPart) -> Next {
        Next::Part(match part {
            Some(Ok(frame)) => match frame.into_trailers() {
                Ok(trailers) => Status::from_header_map(&trailers)
                    .filter(|status| status.code() != Code::Ok)
                    .map(Err),
                Err(frame) => Some(Ok(frame)),
            },
            other => other,
        })
    }
}

#[cfg(test)]
mod tests;
