//! A receiver of traces, as an OpenTelemetry collector is one.

use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::any_value::Value,
    trace::v1::Span,
};
use tonic::{Request, Response, Status, async_trait};

/// A span, and the process it comes from.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) process: String,
    pub(crate) span: Span,
}

/// Keeps every span that it is sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Collector(Arc<Mutex<Vec<Received>>>);

impl Collector {
    /// Starts one on a free port, for as long as the test runs. Itself, and its endpoint.
    pub(crate) async fn start() -> (Self, String) {
        let collector = Self::default();
        let service = TraceServiceServer::new(collector.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
        let server = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(incoming));
        (collector, endpoint)
    }

    pub(crate) fn spans(&self) -> Vec<Received> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for of_process in request.into_inner().resource_spans {
            let attributes = of_process.resource.unwrap_or_default().attributes;
            let name = attributes.into_iter().find(|a| a.key == "service.name");
            let Some(Value::StringValue(process)) = name.unwrap().value.unwrap().value else {
                panic!("a name that is no text");
            };
            for span in of_process.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                let process = process.clone();
                self.0.lock().unwrap().push(Received { process, span });
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
