//! GOAWAY drain with clients of tonic: they fail calls themselves when they receive GOAWAY, unless they
//! are idle at that moment.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};
use tonic_health::pb::{
    HealthCheckRequest, health_client::HealthClient, health_server::HealthServer,
};
use tower::{Service as _, service_fn};
use trestle_rpc::layer::{CallService, Request};
use trestle_runtime::serve::{Bounds, Drained, serve};

use crate::listening::{BOUNDS, listen};

/// Connections of a client.
const CONNECTIONS: usize = 4;
/// Callers that share one.
const CALLERS: usize = 8;
/// When a rejected caller retries.
const BACK_OFF: Duration = Duration::from_millis(500);
/// More than any of the waits here should take.
const SOON: Duration = Duration::from_secs(120);

struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<Drained>,
}

/// A server whose calls take up to three milliseconds, and those for the service `gate` until it is
/// opened.
async fn server(bounds: Bounds, gate: Arc<Notify>) -> Server {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status("gate", tonic_health::ServingStatus::Serving).await;
    let health: HealthServer<_> = health;
    let number = Arc::new(AtomicU64::new(0));
    let service = CallService::new(service_fn(move |request: Request| {
        let (mut health, gate) = (health.clone(), Arc::clone(&gate));
        let pause = Duration::from_millis(number.fetch_add(1, Ordering::Relaxed) % 4);
        async move {
            if request.headers().contains_key("gated") {
                gate.notified().await;
            }
            tokio::time::sleep(pause).await;
            health.call(request).await
        }
    }));
    let (listener, address) = listen(64, bounds).await;
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, service, stop.clone()));
    Server { address, stop, serving }
}

fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy()
}

async fn call(channel: &Channel) -> Result<(), Status> {
    let mut client = HealthClient::new(channel.clone());
    let answer = client.check(HealthCheckRequest::default());
    let answer = tokio::time::timeout(SOON, answer).await.expect("every call is answered");
    answer.map(|_| ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_fails_calls_only_as_unavailable() {
    for _ in 0..8 {
        let server = server(BOUNDS, Arc::default()).await;
        let answered = AtomicUsize::new(0);
        let channels: Vec<_> = (0..CONNECTIONS).map(|_| channel(server.address)).collect();
        let callers = (0..CONNECTIONS * CALLERS).map(|caller| {
            let (channel, answered) = (&channels[caller % CONNECTIONS], &answered);
            async move {
                while call(channel).await.inspect_err(unavailable).is_ok() {
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                // Retries once, when the listener is closed.
                tokio::time::sleep(BACK_OFF).await;
                call(channel).await.expect_err("the listener is closed")
            }
        });
        let end = async {
            let load = async {
                while answered.load(Ordering::Relaxed) <= CONNECTIONS * CALLERS {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(SOON, load).await.expect("the callers are active");
            server.stop.cancel();
        };

        let (last, ()) = tokio::join!(join_all(callers), end);

        last.iter().for_each(unavailable);
        assert_eq!(server.serving.await.unwrap(), Drained::Clean);
    }
}

fn unavailable(status: &Status) {
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_connections_fail_no_call_of_a_client_that_retries_once() {
    // Long enough that the next connection has not reached its maximum age at the retry.
    let bounds = Bounds { age_max: 3 * BACK_OFF, ..BOUNDS };
    let server = server(bounds, Arc::default()).await;
    let (until, rejected) = (Instant::now() + 10 * BACK_OFF, AtomicUsize::new(0));
    let channels: Vec<_> = (0..CONNECTIONS).map(|_| channel(server.address)).collect();
    let callers = (0..CONNECTIONS * CALLERS).map(|caller| {
        let (channel, rejected) = (&channels[caller % CONNECTIONS], &rejected);
        async move {
            while Instant::now() < until {
                if let Err(status) = call(channel).await {
                    unavailable(&status);
                    rejected.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(BACK_OFF).await;
                    call(channel).await.expect("a new connection");
                }
            }
        }
    });

    join_all(callers).await;

    assert!(rejected.into_inner() > CONNECTIONS, "connections grew old");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_call_finishes_on_a_draining_connection_and_does_not_delay_the_others() {
    let gate = Arc::new(Notify::new());
    let server = server(BOUNDS, Arc::clone(&gate)).await;
    let channel = channel(server.address);
    call(&channel).await.unwrap();
    let lasting = tokio::spawn({
        let mut client = HealthClient::new(channel.clone());
        let mut request = tonic::Request::new(HealthCheckRequest::default());
        request.metadata_mut().insert("gated", "yes".parse().unwrap());
        async move { client.check(request).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;

    server.stop.cancel();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let rejected = call(&channel).await.unwrap_err();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    gate.notify_waiters();

    unavailable(&rejected);
    assert!(rejected.message().contains("nothing was done"), "{rejected:?}");
    lasting.await.unwrap().expect("accepted before the close");
    assert_eq!(server.serving.await.unwrap(), Drained::Clean);
}
