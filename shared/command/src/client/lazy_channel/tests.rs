//! When a connection is opened, and what its errors become.

use tokio::{io::AsyncReadExt as _, net::TcpListener};
use tonic_health::pb::health_client::HealthClient;

use super::*;
use crate::{credentials::CredentialArgs, errors::CliError};

fn lazy(port: u16, within: Duration) -> LazyChannel {
    let endpoint = format!("http://127.0.0.1:{port}");
    let options = Endpoint::from_shared(endpoint.clone()).unwrap();
    let credentials = CredentialArgs::default().credentials().unwrap();
    let target = ConnectTarget { endpoint, options, within };
    LazyChannel::new(target, CallMetadata { credentials, timeout: within })
}

async fn call(channel: &LazyChannel) -> Status {
    let request = HealthCheckRequest::default();
    HealthClient::new(channel.clone()).check(request).await.unwrap_err()
}

#[tokio::test]
async fn a_connection_is_tried_once_at_the_first_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let channel = lazy(listener.local_addr().unwrap().port(), Duration::from_millis(200));
    let accepted = tokio::spawn(async move {
        let mut accepted = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            accepted += 1;
            tokio::spawn(
                async move { while stream.read(&mut [0; 99]).await.is_ok_and(|n| n > 0) {} },
            );
            if accepted == 2 {
                break;
            }
        }
    });

    let (first, second) = (call(&channel).await, call(&channel).await);

    assert!(!accepted.is_finished(), "one connection for both calls");
    for status in [first, second] {
        let found = NotConnected::of(&status).expect("no answer");
        assert_eq!(found.cause, NO_ANSWER);
        assert!(matches!(CliError::from(status), CliError::Connect { .. }));
    }
}

#[tokio::test]
async fn a_refused_connection_is_the_error_of_the_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);

    let status = call(&lazy(port, Duration::from_secs(5))).await;

    let found = NotConnected::of(&status).expect("no connection");
    assert_eq!(
        (found.endpoint.as_str(), found.cause.as_str()),
        (&*format!("http://127.0.0.1:{port}"), "Connection refused")
    );
}
