//! The decisions of the CORS rules of an account: pure, and the same as those of Azure.

use std::{convert::Infallible, future, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tower::{Layer as _, ServiceExt as _, service_fn};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};
use trestle_proto::service::v1::CorsRule;

use trestle_model::fault::{Fault, Reason, quoted};

/// Every origin, in a rule.
const ANY: &str = "*";

/// The rules of an account, in their order. Clones share them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules(Arc<[CorsRule]>);

/// The permissions of a rule for a page.
#[derive(Debug, Clone)]
pub struct Allowed(CorsLayer);

impl Allowed {
    /// The CORS headers of the response to a request with this method and these headers.
    pub async fn headers(self, method: Method, headers: HeaderMap) -> HeaderMap {
        let mut request = http::Request::new(());
        (*request.method_mut(), *request.headers_mut()) = (method, headers);
        let bare = |_| future::ready(Ok::<_, Infallible>(http::Response::new(())));
        let Ok(answer) = self.0.layer(service_fn(bare)).oneshot(request).await;
        answer.into_parts().0.headers
    }
}

/// A preflight request.
#[derive(Debug, Clone, Copy)]
pub struct Preflight<'a> {
    /// The origin of the page.
    pub origin: &'a HeaderValue,
    /// The method of the request.
    pub method: &'a HeaderValue,
    /// The headers that the page sets, separated by commas; a list may have several headers.
    pub headers: &'a HeaderMap,
}

impl<'a> Preflight<'a> {
    /// Parses the headers of a preflight request.
    ///
    /// # Errors
    /// Missing headers.
    pub fn read(headers: &'a HeaderMap) -> Result<Self, Fault> {
        let origin = headers.get(header::ORIGIN);
        let method = headers.get(header::ACCESS_CONTROL_REQUEST_METHOD);
        let (Some(origin), Some(method)) = (origin, method) else {
            let rule = "A required CORS header is not present. A preflight needs the headers Origin \
                        and Access-Control-Request-Method";
            return Err(Fault::new(Reason::InvalidHeaderValue, rule));
        };
        Ok(Self { origin, method, headers })
    }

    /// The error of a preflight request that no rule allows.
    #[must_use]
    pub fn rejected(&self) -> Fault {
        let origin = String::from_utf8_lossy(self.origin.as_bytes());
        let message = format!("no rule of the service allows this: origin=`{}`", quoted(&origin));
        Fault::new(Reason::CorsPreflightFailure, message)
    }
}

impl Rules {
    /// Creates the rules from their stored form.
    pub fn new(rules: Vec<CorsRule>) -> Self {
        Self(rules.into())
    }

    /// The headers of the response to a preflight request; none if it is rejected.
    ///
    /// The first rule of the origin and the method decides, and later ones are not tried.
    pub fn preflight(&self, preflight: Preflight<'_>) -> Option<Allowed> {
        let rule = self.of(preflight.origin, preflight.method.as_bytes())?;
        let requested = preflight.headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS);
        let allowed = requested.iter().all(|list| {
            let names = list.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            names.filter(|name| !name.is_empty()).all(|name| names_of(&rule.allowed_headers, name))
        });
        // A request's own values, all of which were found allowed.
        let layer = layer(rule, AllowOrigin::mirror_request())
            .allow_methods(AllowMethods::mirror_request())
            .allow_headers(AllowHeaders::mirror_request());
        let age = rule.max_age.and_then(|age| u64::try_from(age.seconds).ok()).unwrap_or_default();
        allowed.then(|| Allowed(layer.max_age(Duration::from_secs(age))))
    }

    /// Whether a rule allows pages of an origin to call with a method.
    #[must_use]
    pub fn allow(&self, origin: &HeaderValue, method: &Method) -> bool {
        self.of(origin, method.as_str().as_bytes()).is_some()
    }

    /// The CORS headers of a response; none if the page must not read it.
    pub fn answer(
        &self,
        origin: &HeaderValue,
        method: &Method,
        answer: &HeaderMap,
    ) -> Option<Allowed> {
        let rule = self.of(origin, method.as_str().as_bytes())?;
        let exposed = exposed(&rule.exposed_headers, answer);
        let shown = if is_any(rule) { AllowOrigin::any() } else { AllowOrigin::mirror_request() };
        Some(Allowed(layer(rule, shown).expose_headers(exposed)))
    }

    /// Whether the CORS headers of responses to a method depend on the origin, so that caches need
    /// a `Vary` header: where there are rules, unless the first one of the method is for any origin.
    pub fn vary(&self, method: &Method) -> bool {
        let mut rules = self.0.iter();
        let first = rules.find(|rule| rule.allowed_methods.iter().any(|m| m == method.as_str()));
        first.map_or(!self.0.is_empty(), |rule| !is_any(rule))
    }

    /// The first rule of an origin and a method. Both are compared with regard to case.
    fn of(&self, origin: &HeaderValue, method: &[u8]) -> Option<&CorsRule> {
        let origin = origin.as_bytes();
        self.0.iter().find(|rule| {
            let mut origins = rule.allowed_origins.iter();
            let mut methods = rule.allowed_methods.iter();
            origins.any(|allowed| allowed == ANY || allowed.as_bytes() == origin)
                && methods.any(|allowed| allowed.as_bytes() == method)
        })
    }
}

fn is_any(rule: &CorsRule) -> bool {
    rule.allowed_origins.iter().any(|origin| origin == ANY)
}

/// The headers of every response under a rule. A rule for any origin does not allow the credentials
/// of the browser (cookies and client certificates); a rule that names the origin does.
fn layer(rule: &CorsRule, origin: AllowOrigin) -> CorsLayer {
    let layer = CorsLayer::new().allow_origin(origin).allow_credentials(!is_any(rule));
    if is_any(rule) { layer.vary([]) } else { layer.vary([header::ORIGIN]) }
}

/// Whether a list names a header, by its name or by a prefix of it, in any case.
fn names_of(list: &[String], header: &[u8]) -> bool {
    list.iter().any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => {
            let start = header.get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        }
        None => header.eq_ignore_ascii_case(allowed.as_bytes()),
    })
}

/// The names of headers that a rule exposes to a page; a prefix is expanded to the matching headers
/// of the response.
fn exposed(list: &[String], answer: &HeaderMap) -> Vec<HeaderName> {
    let whole = list.iter().filter(|name| !name.ends_with('*'));
    let mut names: Vec<HeaderName> = whole.filter_map(|name| name.parse().ok()).collect();
    let prefixes: Vec<_> = list.iter().filter(|name| name.ends_with('*')).cloned().collect();
    let matching = answer.keys().filter(|name| names_of(&prefixes, name.as_str().as_bytes()));
    names.extend(matching.cloned());
    names
}

#[cfg(test)]
mod tests;
