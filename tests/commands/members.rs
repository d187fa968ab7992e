//! Several servers on one database at a time: tables in each of them.

use std::time::{Duration, Instant};

use serde_json::Value;
use tonic::Code;
use trestle_kv_postgres::testing::PostgresServer;
use trestle_proto::table::v1::WriteMode;
use trestle_tests::{HANG, Server, Table, entity, int, metric};

/// Starts a server with some roles over a database.
fn start(url: &str, roles: &str) -> Server {
    Server::start(&["--roles", roles], &[("TRESTLE__STORAGE__ENGINE", url)])
}

/// What a server knows of the processes of its database.
async fn known(server: &Server) -> Value {
    let page = server.page("/members").await;
    let body = page.split_once("\r\n\r\n").expect("a body").1;
    serde_json::from_str(body).expect("JSON")
}

/// The jobs in the background that a server does.
pub(crate) async fn jobs(server: &Server) -> Vec<String> {
    let page = known(server).await;
    let own = page["members"].as_array().expect("a list").iter().find(|it| it["this"] == true);
    let jobs = own.expect("its own row")["jobs"].as_array().expect("a list");
    jobs.iter().map(|job| job.as_str().unwrap().to_owned()).collect()
}

/// The roles of the processes that a server knows, once there are as many.
pub(crate) async fn members(server: &Server, count: usize) -> Vec<String> {
    let deadline = Instant::now() + HANG;
    loop {
        let page = known(server).await;
        let rows = page["members"].as_array().expect("a list");
        if rows.len() == count {
            return rows.iter().map(|row| row["roles"].as_str().unwrap().to_owned()).collect();
        }
        assert!(Instant::now() < deadline, "{page}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_has_the_tables_that_another_one_writes() {
    let Some(postgres) = PostgresServer::start(&["fsync=on"]).await else { return };
    let url = postgres.url(&postgres.database().await);
    // The order of roles does not matter.
    let (first, second) = (start(&url, "gateway,table"), start(&url, "table,gateway"));
    let queues = start(&url, "queue");
    let mut roles = members(&first, 3).await;
    roles.sort();
    assert_eq!(roles, ["gateway,table", "gateway,table", "queue"]);
    let shared = metric(&first.page("/metrics").await, "trestle_store_processes");
    assert_eq!(shared, Some(2.0), "that serve tables");

    let [one, other] = [&first, &second].map(|server| Table::over(&server.channel(), "orders"));
    let world = |server: &Server| Table::over(&server.channel(), "orders").client();
    let create = || trestle_proto::table::v1::CreateTableRequest {
        table: Some(trestle_proto::table::v1::Table {
            name: "orders".to_owned(),
            ..Default::default()
        }),
    };
    world(&first).create_table(create()).await.unwrap();
    assert_eq!(
        world(&second).create_table(create()).await.unwrap_err().code(),
        Code::AlreadyExists
    );

    // A write that one of them has acknowledged is there for the other, and its etag counts.
    let inserted = one.insert(entity("p", "r", [int("v", 1)])).await.unwrap();
    assert_eq!(other.get("p", "r").await.unwrap().etag, inserted.etag);
    let changed =
        other.update(entity("p", "r", [int("v", 2)]), WriteMode::Merge, Some(&inserted.etag));
    let changed = changed.await.unwrap();
    let stale = one.update(entity("p", "r", [int("v", 3)]), WriteMode::Merge, Some(&inserted.etag));
    assert_eq!(stale.await.unwrap_err().code, Code::Aborted);
    assert_eq!(one.get("p", "r").await.unwrap().etag, changed.etag);

    // A table that one of them deletes is gone for the other, and a new one is empty.
    let delete = || trestle_proto::table::v1::DeleteTableRequest { table: "orders".to_owned() };
    world(&second).delete_table(delete()).await.unwrap();
    assert_eq!(one.get("p", "r").await.unwrap_err().code, Code::NotFound);
    world(&first).create_table(create()).await.unwrap();
    assert_eq!(other.rows("").await.unwrap(), [""; 0]);

    // Neither waits for a server that is gone.
    second.kill();
    one.insert(entity("p", "after", [int("v", 4)])).await.unwrap();
    assert_eq!(queues.terminate(), Some(0));
    assert_eq!(members(&first, 1).await, ["gateway,table"]);
    assert_eq!(first.terminate(), Some(0));
}
