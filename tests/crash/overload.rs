//! Five times as many callers as a server bears: it answers or turns away, in bounded memory, and
//! serves everybody afterwards. How much it still gets done is measured by the bench `overload`.

use std::{fs, time::Duration};

use futures::future::join_all;
use tonic::{Code, transport::Channel};
use tonic_types::StatusExt as _;
use trestle_proto::table::v1::{
    CreateTableRequest, Entity, QueryEntitiesRequest, UpsertEntityRequest, WriteMode,
    table_service_client::TableServiceClient, value::Kind,
};
use trestle_tests::{Server, entity, prop};

/// Calls that the server takes at a time.
const CALLS_MAX: usize = 16;
const CALLERS: usize = 5 * CALLS_MAX;
/// Calls of each caller under overload.
const CALLS: usize = 12;
/// Most memory that the overload may cost, debug build and allocator included.
const GROWTH_MIB_MAX: f64 = 256.0;
const TABLE: &str = "Overload";

type Client = TableServiceClient<Channel>;

/// Memory that a process has resident, in MiB.
fn resident_mib(server: &Server) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// A row of its own for each caller, of 180 KB: what is stored does not grow.
fn row(caller: usize) -> Entity {
    let binary = |name: &str| prop(name, Kind::BinaryValue(vec![7; 60_000].into()));
    entity("p", &format!("{caller:04}"), [binary("a"), binary("b"), binary("c")])
}

async fn upsert(client: &mut Client, caller: usize) -> Result<(), tonic::Status> {
    let request = UpsertEntityRequest {
        table: TABLE.to_owned(),
        entity: Some(row(caller)),
        mode: WriteMode::Replace.into(),
    };
    client.upsert_entity(request).await.map(drop)
}

/// One call: a large write, or a read of pages of up to 3.5 MB.
async fn call(client: &mut Client, caller: usize, count: usize) -> Result<(), tonic::Status> {
    if count.is_multiple_of(2) {
        return upsert(client, caller).await;
    }
    let request = QueryEntitiesRequest { table: TABLE.to_owned(), ..Default::default() };
    client.query_entities(request).await.map(drop)
}

/// What a turned-away client is told to wait.
fn advice(status: &tonic::Status) -> Option<Duration> {
    status.get_error_details().retry_info()?.retry_delay
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overload_is_turned_away_with_advice_in_bounded_memory_and_leaves_nothing_behind() {
    let (calls_max, bytes_max) = (CALLS_MAX.to_string(), (16 << 20).to_string());
    let limits = [
        ("TRESTLE__LIMITS__CALLS_MAX", calls_max.as_str()),
        ("TRESTLE__LIMITS__BODY_BYTES_MAX", bytes_max.as_str()),
    ];
    let server = Server::start(&["--ephemeral"], &limits);
    let clients: Vec<Client> = (0..CALLERS)
        .map(|_| Client::new(server.channel()).max_decoding_message_size(16 << 20))
        .collect();
    let name = CreateTableRequest { table: TABLE.to_owned() };
    clients[0].clone().create_table(name).await.unwrap();
    for caller in 0..CALLERS {
        upsert(&mut clients[0].clone(), caller).await.unwrap();
    }
    call(&mut clients[0].clone(), 0, 1).await.unwrap();
    let before = resident_mib(&server);

    let callers = clients.iter().cloned().enumerate().map(|(caller, mut client)| async move {
        let mut outcomes = Vec::new();
        for count in 0..CALLS {
            outcomes.push(call(&mut client, caller, count).await);
        }
        outcomes
    });
    let outcomes = join_all(callers).await.concat();
    let grown = resident_mib(&server) - before;

    let refusals: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    println!("calls: {}, refused: {}, grown: {grown:.0} MiB", outcomes.len(), refusals.len());
    assert!(!refusals.is_empty() && refusals.len() < outcomes.len());
    for refusal in refusals {
        assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal:?}");
        assert!(advice(refusal).is_some_and(|wait| !wait.is_zero()), "{refusal:?}");
    }
    assert!(grown < GROWTH_MIB_MAX, "{grown}");

    // With back-off, as the contract asks, everybody gets through.
    let patient = clients.into_iter().enumerate().map(|(caller, mut client)| async move {
        for attempt in 1..50 {
            match upsert(&mut client, caller).await {
                Ok(()) => return true,
                Err(status) => {
                    let wait = advice(&status).expect("turned away without advice");
                    tokio::time::sleep(wait * attempt).await;
                }
            }
        }
        false
    });
    assert!(join_all(patient).await.iter().all(|is_done| *is_done));
}
