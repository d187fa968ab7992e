//! Answers of HTTP to what is no call, which go through the door as calls do.

use http::StatusCode;
use tower::Service as _;
use trestle_service::layer::{
    Answer, CallService, Request, Response, STATUS_HEADERS,
    early::{Early, EarlyAnswers, WasEarly},
};

use crate::Door;

/// What the layers see of a request that is no call.
const PATH: &str = "/";

/// Sends answers through the door.
#[derive(Clone)]
pub(crate) struct Answers {
    door: CallService,
}

impl Answers {
    /// Through this door.
    pub(crate) fn new(door: &Door) -> Self {
        Self { door: door.before(EarlyAnswers) }
    }

    /// Answers a request so, unless a layer turns it away.
    pub(crate) fn answer(
        &mut self,
        request: &Request,
        answer: impl Future<Output = Response> + Send + 'static,
    ) -> Answer {
        let answer = self.door.call(Early::request(request, request.headers(), PATH, answer));
        Box::pin(async move {
            let mut answer = answer.await?;
            if answer.extensions().get::<WasEarly>().is_none() {
                // What a layer says, it says in gRPC; without it, this would look like a yes.
                *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            for name in STATUS_HEADERS {
                answer.headers_mut().remove(name);
            }
            Ok(answer)
        })
    }
}
