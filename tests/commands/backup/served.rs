//! What clients see of a backup that a server shows: every form of content, and no write.

use trestle_proto::{
    blob::v1 as blob,
    table::v1::{CreateTableRequest, DeleteTableRequest, Entity, WriteMode},
};
use trestle_tests::{
    CallError, Container, Queue, Table, data, delete_op, entity, insert_op, int, receipt_of,
    seconds, string, text, text_of, without_expiry,
};

use super::*;

/// The rows of each of two partitions: several chunks, with long values.
const ROWS: i32 = 120;
/// Bytes of a large value.
const VALUE_BYTES: usize = 30_000;
const FORMS: [&str; 5] = ["inline", "whole", "blocks", "appended", "pages"];

fn creation(table: &str) -> CreateTableRequest {
    let table = trestle_proto::table::v1::Table { name: table.to_owned(), ..Default::default() };
    CreateTableRequest { table: Some(table) }
}

/// The clients of a server.
struct Clients {
    table: Table,
    queue: Queue,
    container: Container,
}

impl Clients {
    fn of(server: &Server) -> Self {
        let channel = server.channel();
        Self {
            table: Table::over(&channel, "orders"),
            queue: Queue::over(&channel, "jobs"),
            container: Container::over(&channel, "pictures"),
        }
    }

    fn row(partition: &str, number: i32) -> Entity {
        let long = format!("{number:05}").repeat(VALUE_BYTES / 5);
        entity(partition, &format!("{number:05}"), [string("long", &long), int("n", number)])
    }

    async fn fill(&self) {
        let request = creation(&self.table.name());
        self.table.client().create_table(request).await.unwrap();
        for partition in ["a", "b"] {
            for numbers in (0..ROWS).collect::<Vec<_>>().chunks(40) {
                let rows = numbers.iter().map(|number| insert_op(Self::row(partition, *number)));
                self.table.batch(rows.collect()).await.unwrap();
            }
        }
        let queue =
            trestle_proto::queue::v1::Queue { name: self.queue.name(), ..Default::default() };
        let request = trestle_proto::queue::v1::CreateQueueRequest { queue: Some(queue) };
        self.queue.client().create_queue(request).await.unwrap();
        let messages = [text("held"), text("waiting"), data(vec![7_u8; 40_000])];
        let sent = self.queue.send_all(messages.map(without_expiry).to_vec()).await.unwrap();
        assert!(sent.iter().all(Result::is_ok));
        self.fill_container().await;
        // Its visibility timeout is not over at the instant of the backup.
        let held = self.queue.receive(1, seconds(15)).await.unwrap();
        assert_eq!(held.len(), 1);
    }

    /// Waits until the visibility timeout of the message that is held is over.
    async fn wait_for_held(&self) {
        let until = std::time::Instant::now() + trestle_tests::HANG;
        while self.queue.peek(32).await.unwrap().len() < 3 {
            assert!(std::time::Instant::now() < until, "the message stays invisible");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }

    fn content(name: &str) -> Vec<u8> {
        let length = match name {
            "inline" | "appended" => 20,
            "pages" => 1024,
            _ => 70_000,
        };
        name.bytes().cycle().take(length).collect()
    }

    async fn fill_container(&self) {
        let container = &self.container;
        container.create().await.unwrap();
        container.write("inline", Self::content("inline")).await.unwrap();
        container.write("whole", "older").await.unwrap();
        container.snapshot("whole").await.unwrap();
        container.write("whole", Self::content("whole")).await.unwrap();
        let blocks = Self::content("blocks");
        container.stage("blocks", "A", blocks[..40_000].to_vec()).await.unwrap();
        container.stage("blocks", "B", blocks[40_000..].to_vec()).await.unwrap();
        container.commit("blocks", &["A", "B"]).await.unwrap();
        container.create_append("appended").await.unwrap();
        let appended = Self::content("appended");
        for part in [&appended[..7], &appended[7..]] {
            container.append(container.appending("appended"), part.to_vec()).await.unwrap();
        }
        container.create_pages("pages", 2048).await.unwrap();
        let message = self.pages(512);
        container.client().write_pages(tokio_stream::iter([message])).await.unwrap();
    }

    fn pages(&self, offset: u64) -> blob::WritePagesRequest {
        let spec = blob::WritePagesSpec {
            container: self.container.name(),
            blob: "pages".to_owned(),
            offset,
            ..Default::default()
        };
        let (spec, finish) = (Some(spec), Some(blob::UploadFinish::default()));
        blob::WritePagesRequest { spec, data: Self::content("pages").into(), finish }
    }

    /// Reads everything, in each direction and by pages.
    async fn check(&self) {
        let names: Vec<_> = (0..ROWS).map(|number| format!("{number:05}")).collect();
        for partition in ["a", "b"] {
            let filter = format!("PartitionKey eq '{partition}'");
            assert_eq!(self.table.rows(&filter).await.unwrap(), names);
            let some = format!("{filter} and n ge 100 and RowKey lt '00110'");
            assert_eq!(self.table.rows(&some).await.unwrap(), names[100..110]);
            for number in [0, 17, ROWS - 1] {
                let found = self.table.get(partition, &names[number as usize]).await.unwrap();
                let expected = Self::row(partition, number).properties;
                assert!(found.properties == expected, "{partition} {number}");
            }
        }
        let absent = self.table.get("a", "x").await.unwrap_err();
        assert_eq!(absent.kind().1, "RESOURCE_NOT_FOUND");
        assert!(self.table.rows("PartitionKey eq 'c'").await.unwrap().is_empty());

        let messages = self.queue.peek(32).await.unwrap();
        // Invisible at the instant, and so always.
        assert_eq!(messages.len(), 2);
        assert_eq!(text_of(&messages[0]), "waiting");
        assert_eq!(self.queue.count().await, 3);

        self.check_blobs().await;
    }

    async fn check_blobs(&self) {
        let mut listed = self.container.list("", "").await.unwrap();
        listed.sort();
        let mut forms = FORMS;
        forms.sort_unstable();
        assert_eq!(listed, forms);
        for name in FORMS {
            let mut expected = Self::content(name);
            if name == "pages" {
                expected = [vec![0; 512], expected, vec![0; 512]].concat();
            }
            assert_eq!(self.container.read(name).await.unwrap().data, expected, "{name}");
        }
        let request = blob::ReadBlobRequest {
            range: Some(blob::ByteRange { offset: 39_998, length: Some(4) }),
            ..self.container.reading("blocks")
        };
        let part = self.container.read_with(request).await.unwrap().data;
        assert_eq!(part, Self::content("blocks")[39_998..40_002]);
    }

    /// Every kind of write; what each returned, by its name.
    async fn write(&self) -> Vec<(&'static str, Result<(), CallError>)> {
        let (table, container) = (&self.table, &self.container);
        let row = || Self::row("a", 3);
        let dropped = DeleteTableRequest { table: table.name() };
        let mut outcomes = vec![
            ("insert", table.insert(Self::row("c", 1)).await.map(drop)),
            ("update", table.update(row(), WriteMode::Merge, None).await.map(drop)),
            ("upsert", table.upsert(row(), WriteMode::Replace).await.map(drop)),
            ("delete", table.delete("a", "00001", None).await),
            ("batch", table.batch(vec![delete_op("a", "00002", None)]).await.map(drop)),
            (
                "create table",
                table
                    .client()
                    .create_table(creation("Later"))
                    .await
                    .map(drop)
                    .map_err(CallError::from),
            ),
            (
                "delete table",
                table.client().delete_table(dropped).await.map(drop).map_err(CallError::from),
            ),
        ];
        outcomes.extend(self.write_queue().await);
        let lease = container.acquire_lease("whole").await.map(drop);
        let appended = container.append(container.appending("appended"), "x").await.map(drop);
        let pages = tokio_stream::iter([self.pages(0)]);
        let pages = container.client().write_pages(pages).await.map(drop).map_err(CallError::from);
        outcomes.extend([
            ("small blob", container.write("inline", "x").await.map(drop)),
            ("large blob", container.write("new", vec![1; 70_000]).await.map(drop)),
            ("stage", container.stage("blocks", "C", "x").await.map(drop)),
            ("commit", container.commit("blocks", &["A"]).await.map(drop)),
            ("append blob", container.create_append("later").await.map(drop)),
            ("page blob", container.create_pages("paged", 512).await.map(drop)),
            ("copy", container.copy(container.copying("whole", "copied")).await.map(drop)),
            ("snapshot", container.snapshot("whole").await.map(drop)),
            ("delete blob", container.delete("inline").await),
            ("drop container", container.drop_container().await),
            ("append", appended),
            ("lease", lease),
            ("pages", pages),
        ]);
        outcomes
    }

    async fn write_queue(&self) -> Vec<(&'static str, Result<(), CallError>)> {
        let queue = &self.queue;
        let sent = queue.send(text("x")).await.map(drop);
        let received = queue.receive(1, seconds(30)).await.map(drop);
        vec![
            ("send", sent),
            ("receive", received),
            ("clear", queue.clear().await),
            ("policies", queue.set_policies(Vec::new()).await),
            ("drop queue", queue.drop_queue().await),
        ]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_read_every_form_of_content_and_write_nothing() {
    let backups = Backups::new();
    let server = backups.serve("data");
    Clients::of(&server).fill().await;
    backups.create();
    let target = backups.text("target");
    Clients::of(&server).wait_for_held().await;
    let shown = Server::start(&["--backup", &target], &[]);
    let clients = Clients::of(&shown);
    clients.check().await;
    for (what, outcome) in clients.write().await {
        let error = outcome.expect_err(what);
        let expected = (tonic::Code::PermissionDenied, "INSUFFICIENT_ACCOUNT_PERMISSIONS");
        assert_eq!(error.kind(), expected, "{what}: {error:?}");
        assert_eq!(error.retry_after, None, "{what}");
    }
    clients.check().await;

    // The server goes on, with the same clients.
    let running = Clients::of(&server);
    let received = running.queue.receive(1, seconds(30)).await.unwrap();
    running.queue.delete(receipt_of(&received[0])).await.unwrap();
    for (what, outcome) in running.write().await {
        assert!(outcome.is_ok() || what == "receive", "{what}: {outcome:?}");
    }
    clients.check().await;
    assert_eq!(server.terminate(), Some(0));
    clients.check().await;
    assert_eq!(shown.terminate(), Some(0));
    let verified = backups.backup("verify", &["--all"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let restored = backups.restore("restored", &[]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let restored = backups.serve("restored");
    // Its time goes on, so that the message is visible again.
    Clients::of(&restored).check_blobs().await;
}
