//! Key sets that a gateway fetches from their issuers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::Instant,
};
use trestle_tests::{HANG, RestRequest, RestResponse, Server, TokenIssuer, exchange, metric};

const GOOD: &str = "https://login.example.com";
const REDIRECTED: &str = "https://redirected.example.com";
const REFUSED: &str = "https://refused.example.com";
const KEY: &str = "a2V5IG9mIGFuIGFjY291bnQgb2YgdGhpcnR5LXR3byBieXRlcw==";

/// The address of a server that sends `response` to every request, and the number of its requests.
async fn canned(response: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/keys", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut request = vec![0; 8192];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    (address, requests)
}

/// A server with an issuer for each URL, none of which it waits for at its start.
fn server(issuers: &[(&str, &str)]) -> Server {
    let mut settings = vec![("TRESTLE__ACCOUNTS__ACME__KEY1".to_owned(), KEY.to_owned())];
    for (index, (issuer, url)) in issuers.iter().enumerate() {
        let key = |name: &str| format!("TRESTLE__GATEWAY__ISSUERS__I{index}__{name}");
        let values = [
            ("ISSUER", *issuer),
            ("AUDIENCE", "trestle"),
            ("ACCOUNTS", "acme"),
            ("JWKS_URL", *url),
        ];
        settings.extend(values.map(|(name, value)| (key(name), value.to_owned())));
    }
    let settings: Vec<_> = settings.iter().map(|(key, value)| (&**key, &**value)).collect();
    Server::start(&["--ephemeral"], &settings)
}

async fn list(blobs: &str, token: &str) -> RestResponse {
    let request = RestRequest::blob("GET", "").at("/acme?comp=list").scheme(None);
    exchange(blobs, request.with("authorization", &format!("Bearer {token}"))).await
}

/// Calls until `is_done`.
async fn until<T>(call: impl AsyncFn() -> T, is_done: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + HANG;
    loop {
        let found = call().await;
        if is_done(&found) {
            return found;
        }
        assert!(Instant::now() < deadline, "not in time");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_set_is_fetched_after_the_start_and_a_failure_is_counted_and_opens_nothing() {
    let (good, other) = (TokenIssuer::new(GOOD), TokenIssuer::new(REDIRECTED));
    let of = |issuer: &TokenIssuer| {
        let set = issuer.jwks();
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{set}", set.len())
    };
    let (url, requests) = canned(of(&good)).await;
    let (target, followed) = canned(of(&other)).await;
    let redirect = format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
    let (redirect, _) = canned(redirect).await;
    let server =
        server(&[(GOOD, &url), (REDIRECTED, &redirect), (REFUSED, "http://127.0.0.1:1/keys")]);
    let blobs = server.address("azure_blob");
    let token = good.token("reader", 600);

    let listed = until(async || list(&blobs, &token).await, |answer| answer.status == 200).await;

    assert_eq!(listed.header("content-type"), "application/xml");
    let forged = TokenIssuer::new(GOOD).token("reader", 600);
    assert_eq!(list(&blobs, &forged).await.failure(), (401, "InvalidAuthenticationInfo"));
    let series = |result: &str| {
        format!(
            "trestle_config_reloads_total{{trestle_reload_result=\"{result}\",\
             trestle_reload_subject=\"key-sets\""
        )
    };
    let is_counted = |page: &String| metric(page, &series("failed")) >= Some(2.0);
    let page = until(async || server.page("/metrics").await, is_counted).await;
    assert_eq!(metric(&page, &series("applied")), Some(1.0));
    for (issuer, name) in [(other, REDIRECTED), (TokenIssuer::new(REFUSED), REFUSED)] {
        let rejected = list(&blobs, &issuer.token("owner", 600)).await;
        assert_eq!(rejected.failure(), (401, "InvalidAuthenticationInfo"), "{name}");
        assert!(rejected.text().contains("were not fetched yet"), "{rejected:?}");
    }
    assert_eq!(followed.load(Ordering::Relaxed), 0, "no redirect is followed");
    assert_eq!(requests.load(Ordering::Relaxed), 1, "one request is enough for ten minutes");
}
