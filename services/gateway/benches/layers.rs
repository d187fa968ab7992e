//! What the layers add to a call: the gateway before a service that answers at once, against that
//! service alone. No telemetry is configured beyond the metrics that are always kept.

#![allow(missing_docs, reason = "criterion makes the functions")]

use std::{convert::Infallible, hint::black_box, sync::Arc, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tonic::{Status, body::Body};
use tower::{Service as _, service_fn};
use trestle_gateway::{IngressStack, Limits, Observe, Routes, gateway};
use trestle_identity::{
    account::{Account, Accounts},
    credentials::Identity,
};
use trestle_service::{
    access::AccessLog,
    clock::SystemClock,
    layer::{CallService, Request, Response, methods::Methods},
    propagation::Traces,
    upstream::Upstream,
};

const SERVICE: &str = "trestle.table.v1.TableService";

fn request() -> Request {
    http::Request::post("/trestle.table.v1.TableService/GetEntity")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::empty())
        .expect("a request")
}

fn measure(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let inner =
        service_fn(|_: Request| async { Ok::<Response, Infallible>(Status::ok("").into_http()) });
    let reader = opentelemetry_prometheus::exporter().with_registry(prometheus::Registry::new());
    let meters = SdkMeterProvider::builder().with_reader(reader.build().expect("an exporter"));
    let meters = meters.build();
    let observe = Observe {
        meter: meters.meter("bench"),
        methods: Methods::from_descriptors(trestle_proto::FILE_DESCRIPTOR_SET)
            .expect("the build wrote the descriptors"),
        random: || 7,
        traces: Traces::default(),
        access: AccessLog::off(),
    };
    let limits = Limits {
        calls_max: 16,
        body_bytes_max: 1 << 20,
        request_within_max: Duration::from_secs(20),
        answer_within_max: Duration::from_secs(60),
    };
    let accounts = Accounts::new([Account::development()]);
    let identity = Identity { accounts, clock: Arc::new(SystemClock), is_open: true };
    let routes = Routes::default().with(SERVICE, Upstream::local(inner));
    for (name, service) in [
        ("service alone", CallService::new(inner)),
        ("behind the layers", gateway(&IngressStack::new(limits, observe), routes, identity)),
    ] {
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
