//! Reports the statistics of a call to a gateway that requests them.
//!
//! They are sent with the headers of the response, and again with its trailers if they changed
//! since, as with a stream. A gateway removes both.

use std::convert::Infallible;

use tower::Service;

use super::{
    Request, Response, ResponseFuture,
    body_wrapper::{BodyPart, BodyWrapper, Next, wrap_body},
    middleware::{Middleware, MiddlewareLayer},
};
use crate::call_statistics::{CallStatistics, StatisticsRecorder};

/// Reports statistics.
pub type StatisticsLayer = MiddlewareLayer<ReportStatistics>;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportStatistics;

impl Middleware for ReportStatistics {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        if !StatisticsRecorder::is_requested(request.headers()) {
            return inner.call(request);
        }
        let recorder = StatisticsRecorder::enabled();
        request.extensions_mut().insert(recorder.clone());
        let answer = inner.call(request);
        Box::pin(async move {
            let mut answer = answer.await?;
            let in_headers = recorder.recorded().statistics;
            StatisticsRecorder::write(&in_headers, answer.headers_mut());
            Ok(answer.map(|body| wrap_body(body, StatisticsTrailers { recorder, in_headers })))
        })
    }
}

/// A body that reports at its end what its headers did not contain.
struct StatisticsTrailers {
    recorder: StatisticsRecorder,
    in_headers: CallStatistics,
}

impl BodyWrapper for StatisticsTrailers {
    fn map_part(&mut self, mut part: BodyPart) -> Next {
        if let Some(Ok(frame)) = &mut part
            && let Some(trailers) = frame.trailers_mut()
        {
            let statistics = self.recorder.recorded().statistics;
            if statistics != self.in_headers {
                StatisticsRecorder::write(&statistics, trailers);
            }
        }
        Next::Part(part)
    }
}
