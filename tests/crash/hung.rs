//! A hung role process (SIGSTOP): its connections stay open and silent. The gateway's health checks time
//! out, and calls fail over or fail fast; no call outlasts its deadline.

use std::{
    fs,
    time::{Duration, Instant},
};

use futures::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use tonic::{Code, Request};
use trestle_proto::table::v1::{ListTablesRequest, table_service_client::TableServiceClient};
use trestle_tests::{HANG, Server};

use crate::restarts::free_address;

/// The deadline of a call.
const LIMIT: Duration = Duration::from_secs(2);
/// Calls at a time, so that every connection of the gateway gets some.
const CALLS: usize = 64;

fn send(server: &Server, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(server.pid()).expect("a pid")).expect("not zero");
    kill_process(pid, signal).expect("the process exists");
}

/// Stops a process, and waits until each of its threads is.
async fn stop(server: &Server) {
    send(server, Signal::STOP);
    let is_stopped = || {
        let threads =
            fs::read_dir(format!("/proc/{}/task", server.pid())).expect("the directory exists");
        let mut states = threads.map(|thread| {
            let path = thread.expect("a thread").path().join("status");
            fs::read_to_string(path).expect("it has a state")
        });
        states.all(|status| status.contains("State:\tT"))
    };
    while !is_stopped() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn gateway(address: &str, connections: &str) -> Server {
    let endpoint = format!("http://{address}");
    let settings = [
        ("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str()),
        ("TRESTLE__GATEWAY__CONNECTIONS", connections),
        ("TRESTLE__GATEWAY__WAIT_MS", "0"),
    ];
    Server::start(&["--roles", "gateway"], &settings)
}

/// Outcomes of concurrent calls, each within its deadline.
async fn calls(gateway: &Server, count: usize) -> Vec<Code> {
    let client = TableServiceClient::new(gateway.channel());
    let call = |mut client: TableServiceClient<_>| async move {
        let mut request = Request::new(ListTablesRequest::default());
        request.set_timeout(LIMIT);
        let ended = tokio::time::timeout(HANG, client.list_tables(request)).await;
        match ended.expect("a call outlasted its deadline") {
            Ok(_) => Code::Ok,
            Err(status) => status.code(),
        }
    };
    join_all((0..count).map(|_| call(client.clone()))).await
}

/// Whether a call ended because its deadline passed: as the gateway reports it, or as the client does,
/// whose clock may be first.
fn is_late(code: Code) -> bool {
    matches!(code, Code::DeadlineExceeded | Code::Cancelled)
}

/// Repeats calls until all of them end with a code.
async fn until(gateway: &Server, count: usize, expected: Code) {
    let began = Instant::now();
    loop {
        let codes = calls(gateway, count).await;
        if codes.iter().all(|code| *code == expected) {
            return;
        }
        assert!(began.elapsed() < HANG, "{codes:?}, not {expected:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_fail_over_from_a_hung_process() {
    let address = free_address();
    let shared = [("TRESTLE__SERVER__REUSE_PORT", "true")];
    let process = || Server::start_at(&address, &["--roles", "table", "--ephemeral"], &shared);
    let (hung, _serving) = (process(), process());
    // Enough for both processes to get some.
    let gateway = gateway(&address, "16");
    until(&gateway, CALLS, Code::Ok).await;

    stop(&hung).await;

    let codes = calls(&gateway, CALLS).await;
    assert!(codes.contains(&Code::Ok), "the other process serves");
    assert!(codes.iter().any(|code| is_late(*code)), "the stopped process had connections");
    until(&gateway, CALLS, Code::Ok).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_fail_fast_while_the_only_process_is_hung() {
    let table = Server::start(&["--roles", "table", "--ephemeral"], &[]);
    let gateway = gateway(&table.address("grpc"), "2");
    until(&gateway, 1, Code::Ok).await;

    stop(&table).await;
    let codes = calls(&gateway, 1).await;
    assert!(codes.iter().all(|code| is_late(*code)), "{codes:?}");
    until(&gateway, 1, Code::Unavailable).await;

    send(&table, Signal::CONT);
    until(&gateway, 1, Code::Ok).await;
}
