//! Routes a call by its path.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};
use trestle_rpc::status::{DOMAIN, IntoStatus as _};

use tower::Service;
use trestle_rpc::layer::{Request, Response, ResponseFuture};
use trestle_rpc::rpc_path::service_of;
use trestle_rpc::unserved::unserved;
use trestle_rpc::upstream::Upstream;

/// The upstreams of a process, by the full names of their services.
#[derive(Clone, Default)]
pub struct Routes {
    // Shared: every call has its own clone, and uses one upstream.
    upstreams: Arc<Vec<(&'static str, Upstream)>>,
    absent: Arc<Vec<(&'static str, String)>>,
}

impl Routes {
    /// Adds the service `name`, such as `trestle.table.v1.TableService`.
    #[must_use]
    pub fn with(mut self, name: &'static str, upstream: Upstream) -> Self {
        Arc::make_mut(&mut self.upstreams).push((name, upstream));
        self
    }

    /// Rejects calls of the service `name` with the reason why it is not served here.
    #[must_use]
    pub fn without(mut self, name: &'static str, reason: String) -> Self {
        Arc::make_mut(&mut self.absent).push((name, reason));
        self
    }
}

impl Service<Request> for Routes {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        let path = request.uri().path();
        let service = service_of(path);
        let matches = |(name, _): &&(&'static str, Upstream)| Some(*name) == service;
        if let Some((_, upstream)) = self.upstreams.iter().find(matches) {
            return upstream.clone().call(request);
        }
        let absent = self.absent.iter().find(|(name, _)| Some(*name) == service);
        let fault = unserved(path, absent.map(|(_, reason)| reason.as_str()));
        Box::pin(async move { Ok(fault.into_status(DOMAIN).into_http()) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;
    use tonic::Status;

    use http::HeaderMap;
    use tonic::{Code, body::Body};
    use tower::{ServiceExt as _, service_fn};

    use super::*;

    fn call(path: &str) -> Request {
        let uri = path.parse().expect("a path");
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = uri;
        request
    }

    /// Responds with its name.
    fn named(name: &'static str) -> Upstream {
        Upstream::local(service_fn(move |_: Request| async move {
            let mut answer = Response::new(Body::empty());
            let value = http::HeaderValue::from_static(name);
            answer.headers_mut().insert("x-name", value);
            Ok(answer)
        }))
    }

    async fn headers_of(routes: &Routes, path: &str) -> HeaderMap {
        let answer = routes.clone().oneshot(call(path));
        let answer = tokio::time::timeout(Duration::from_secs(5), answer).await;
        let Ok(answer) = answer.expect("routing is immediate");
        answer.headers().clone()
    }

    #[tokio::test]
    async fn routes_by_the_first_part_of_the_path() {
        let routes = Routes::default().with("a.v1.A", named("a")).with("a.v1.AB", named("ab"));

        assert_eq!(headers_of(&routes, "/a.v1.A/Get").await["x-name"], "a");
        assert_eq!(headers_of(&routes, "/a.v1.AB/Get").await["x-name"], "ab");
    }

    #[tokio::test]
    async fn rejects_a_service_that_is_not_served_with_the_reason() {
        let routes = Routes::default().without("b.v1.B", "no endpoint".to_owned());

        let status = Status::from_header_map(&headers_of(&routes, "/b.v1.B/Get").await);

        let status = status.expect("a status");
        assert_eq!(status.code(), Code::Unimplemented);
        let text = "service is not served here: no endpoint: service=`b.v1.B`";
        assert_eq!(status.message(), text);
    }

    #[tokio::test]
    async fn rejects_a_path_of_no_service_as_unimplemented() {
        let routes = Routes::default().with("a.v1.A", named("a"));

        for path in ["/", "/a.v1.A", "/a.v1.", "/b.v1.B/Get", "/A.V1.A/Get"] {
            let status = Status::from_header_map(&headers_of(&routes, path).await);
            let status = status.expect("a status");
            assert_eq!(status.code(), Code::Unimplemented, "{path}");
            assert!(status.message().contains(path), "{}", status.message());
        }
    }
}
