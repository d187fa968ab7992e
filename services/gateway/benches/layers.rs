//! What the layers add to a call: the gateway before a service that answers at once, against that
//! service alone. No telemetry is configured beyond the metrics that are always kept.

#![allow(missing_docs, reason = "criterion makes the functions")]

use std::{convert::Infallible, hint::black_box, sync::Arc, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tonic::{Status, body::Body};
use tower::{Layer as _, Service as _, service_fn};
use trestle_gateway::{CallLimits, CallTelemetry, IngressStack, Routes, gateway};
use trestle_identity::{
    account::{Account, Accounts},
    credentials::Identity,
};
use trestle_model::time::SystemClock;
use trestle_rpc::access::AccessLog;
use trestle_rpc::layer::call_statistics::StatisticsLayer;
use trestle_rpc::layer::methods::Methods;
use trestle_rpc::layer::{CallService, Request, Response, ResponseFuture};
use trestle_rpc::propagation::Traces;
use trestle_rpc::upstream::Upstream;

const SERVICE: &str = "trestle.table.v1.TableService";

fn request() -> Request {
    http::Request::post("/trestle.table.v1.TableService/GetEntity")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::empty())
        .expect("a request")
}

/// A call of a gateway whose access log needs the statistics of the service.
fn request_of_statistics() -> Request {
    let mut request = request();
    request.headers_mut().insert("trestle-statistics", "1".parse().expect("a header"));
    request
}

fn measure(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let inner =
        service_fn(|_: Request| async { Ok::<Response, Infallible>(Status::ok("").into_http()) });
    let reader = opentelemetry_prometheus::exporter().with_registry(prometheus::Registry::new());
    let meters = SdkMeterProvider::builder().with_reader(reader.build().expect("an exporter"));
    let meters = meters.build();
    let observe = CallTelemetry {
        meter: meters.meter("bench"),
        methods: Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET)
            .expect("the build wrote the descriptors"),
        random: || 7,
        traces: Traces::default(),
        access: AccessLog::off(),
        is_by_method: false,
    };
    let limits = CallLimits {
        calls_max: 16,
        body_bytes_max: 1 << 20,
        message_bytes_max: 1 << 20,
        request_within_max: Duration::from_secs(20),
        answer_within_max: Duration::from_secs(60),
    };
    let accounts = Accounts::new([Account::development()]);
    let identity = Identity::new(accounts, Arc::new(SystemClock), true);
    let routes = Routes::default().with(SERVICE, Upstream::local(inner));
    let boxed = service_fn(|_: Request| -> ResponseFuture {
        Box::pin(async { Ok(Status::ok("").into_http()) })
    });
    let statistics = CallService::new(StatisticsLayer::default().layer(boxed));
    let ingress = gateway(&IngressStack::new(limits, observe), routes, identity);
    let calls: [(_, _, fn() -> Request); 4] = [
        ("service alone", CallService::new(inner), request),
        ("behind the layers", ingress, request),
        ("statistics not requested", statistics.clone(), request),
        ("statistics requested", statistics, request_of_statistics),
    ];
    for (name, service, request) in calls {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                // A clone for each call, as the listener makes one.
                let answer = service.clone().call(request());
                black_box(runtime.block_on(answer))
            });
        });
    }
}

criterion_group!(layers, measure);
criterion_main!(layers);
