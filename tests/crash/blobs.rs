//! `kill -9` at random instants while blobs are written, committed from blocks, copied, appended to, compacted, and
//! deleted.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use trestle_proto::blob::v1::{UploadFinish, WriteBlobRequest};
use trestle_tests::{CallError, Container, Server};

use crate::{
    appends::AppendWriter,
    kills::{lengthened, seed},
    rest_blobs::RestBlobs,
    start,
};

/// Kills of a run.
const KILLS: usize = 10;
/// Writers, each with one blob: every second one over REST.
const WRITERS: u64 = 6;
/// The container of the writers.
pub(crate) const CONTAINER: &str = "crash";
/// Fewer acknowledged writes in all than this would make the test mean little: it continues until then.
const ACKNOWLEDGED_MIN: u64 = 200;
/// Fewer acknowledged appends would not be compacted.
const APPENDED_MIN: u64 = 280;
/// A machine that is this slow is not working.
const KILLS_MAX: usize = 10 * KILLS;

/// Content by its number: none for an absent blob.
type State = Option<u64>;

/// Writes one blob, over and over.
pub(crate) struct BlobWriter {
    name: String,
    uses_rest: bool,
    next: u64,
    acknowledged: State,
    in_flight: State,
    /// Acknowledged writes.
    pub(crate) count: u64,
}

/// Content that is recognised by its number: small, of one object, or of several.
fn content(number: u64) -> Bytes {
    let length = [100, 50_000, 400_000, 5_000_000][usize::try_from(number % 4).unwrap()];
    let stamp = number.to_be_bytes();
    stamp.iter().copied().cycle().take(length).collect::<Vec<_>>().into()
}

/// Writes a blob with several messages.
async fn send(container: &Container, blob: &str, data: &Bytes) -> Result<(), CallError> {
    let mut pieces = data.chunks(1_000_000).map(|piece| data.slice_ref(piece));
    let first = WriteBlobRequest {
        spec: Some(container.spec(blob)),
        data: pieces.next().unwrap_or_default(),
        finish: None,
    };
    let more = |data| WriteBlobRequest { data, ..Default::default() };
    let end = WriteBlobRequest { finish: Some(UploadFinish::default()), ..Default::default() };
    let messages = std::iter::once(first).chain(pieces.map(more)).chain([end]).collect();
    container.send(messages).await.map(drop)
}

impl BlobWriter {
    /// Writes until a call fails.
    async fn run(&mut self, clients: &Clients) -> CallError {
        let never = AtomicBool::new(false);
        self.run_until(clients, &never).await.expect("it goes on until an error")
    }

    /// Writes until a call fails, or until `is_over`; a write that ends after that counts as in flight.
    pub(crate) async fn run_until(
        &mut self,
        clients: &Clients,
        is_over: &AtomicBool,
    ) -> Option<CallError> {
        loop {
            let number = self.next;
            self.next += 1;
            let is_delete = number % 7 == 6 && self.acknowledged.is_some();
            self.in_flight = (!is_delete).then_some(number);
            let written = match self.uses_rest {
                true => self.write_over_rest(&clients.rest, number, is_delete).await,
                false => self.write(&clients.grpc, number, is_delete).await,
            };
            if written.is_err() || is_over.load(Ordering::SeqCst) {
                return written.err();
            }
            self.acknowledged = self.in_flight;
            self.count += 1;
        }
    }

    async fn write(
        &self,
        container: &Container,
        number: u64,
        is_delete: bool,
    ) -> Result<(), CallError> {
        let data = content(number);
        if is_delete {
            return container.delete(&self.name).await;
        }
        if number % 5 == 4 {
            let source = format!("{}-source", self.name);
            send(container, &source, &data).await?;
            return container.copy(container.copying(&source, &self.name)).await.map(drop);
        }
        if number.is_multiple_of(3) {
            let middle = data.len() / 2;
            container.stage(&self.name, "A", data.slice(..middle)).await?;
            container.stage(&self.name, "B", data.slice(middle..)).await?;
            return container.commit(&self.name, &["A", "B"]).await.map(drop);
        }
        send(container, &self.name, &data).await
    }

    async fn write_over_rest(
        &self,
        rest: &RestBlobs,
        number: u64,
        is_delete: bool,
    ) -> Result<(), CallError> {
        let data = content(number);
        if is_delete {
            return rest.delete(&self.name).await;
        }
        if number % 5 == 4 {
            let source = format!("{}-source", self.name);
            rest.write(&source, &data).await?;
            return rest.copy(&source, &self.name).await;
        }
        if number.is_multiple_of(3) {
            let (first, second) = data.split_at(data.len() / 2);
            rest.stage(&self.name, "QQ==", first).await?;
            rest.stage(&self.name, "Qg==", second).await?;
            return rest.commit(&self.name, &["QQ==", "Qg=="]).await;
        }
        rest.write(&self.name, &data).await
    }

    /// Verifies that the blob is as the last write left it, or the one that was in flight.
    pub(crate) async fn verify(&mut self, clients: &Clients) {
        let read = match self.uses_rest {
            true => clients.rest.read(&self.name).await,
            false => clients.grpc.read(&self.name).await.map(|read| read.data),
        };
        let found = match read {
            Ok(data) => {
                let possible = [self.acknowledged, self.in_flight].into_iter().flatten();
                let number = possible.into_iter().find(|number| data == content(*number));
                assert!(number.is_some(), "{}: neither the last content nor the next", self.name);
                number
            }
            Err(error) => {
                let absent = ["BLOB_NOT_FOUND", "BlobNotFound"];
                assert!(absent.contains(&&*error.reason), "{}: {error:?}", self.name);
                None
            }
        };
        let possible = [self.acknowledged, self.in_flight];
        assert!(possible.contains(&found), "{}: {found:?} of {possible:?}", self.name);
        (self.acknowledged, self.in_flight) = (found, found);
    }
}

/// The container of the writers, by each protocol.
pub(crate) struct Clients {
    pub(crate) grpc: Container,
    rest: RestBlobs,
}

impl Clients {
    pub(crate) fn of(server: &Server) -> Self {
        Self { grpc: container(server), rest: RestBlobs::of(server) }
    }
}

/// The container of the writers.
pub(crate) fn container(server: &Server) -> Container {
    Container::over(&server.channel(), CONTAINER)
}

/// The writers, each with a blob of its own that is absent.
pub(crate) fn writers() -> Vec<BlobWriter> {
    let writer = |number: u64| BlobWriter {
        name: format!("w{number}/blob"),
        uses_rest: number % 2 == 1,
        next: number,
        acknowledged: None,
        in_flight: None,
        count: 0,
    };
    (0..WRITERS).map(writer).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_blobs_survive_random_kills_and_are_whole() {
    let seed = seed();
    println!("to repeat: CRASH_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let data = tempfile::tempdir().unwrap();
    let mut server = start(&data, &[]);
    container(&server).create().await.unwrap();
    let (mut writers, mut appends) = (writers(), AppendWriter::new("appended"));
    let never = AtomicBool::new(false);

    let mut kills = 0;
    while kills < KILLS
        || writers.iter().map(|it| it.count).sum::<u64>() < ACKNOWLEDGED_MIN
        || appends.count < APPENDED_MIN
    {
        assert!(kills < KILLS_MAX, "too few acknowledged writes");
        let clients = Clients::of(&server);
        let after = Duration::from_micros(random.random_range(1_000..900_000));
        let after = lengthened(after, kills / KILLS);
        let (mut errors, last, ()) = tokio::join!(
            join_all(writers.iter_mut().map(|writer| writer.run(&clients))),
            appends.run_until(&clients.grpc, &never),
            async {
                tokio::time::sleep(after).await;
                server.kill();
            }
        );
        errors.extend(last);
        for error in errors {
            assert_eq!(error.reason, "", "the server rejected: {error:?}");
        }
        server = start(&data, &[]);
        let clients = Clients::of(&server);
        join_all(writers.iter_mut().map(|writer| writer.verify(&clients))).await;
        appends.verify(&clients.grpc).await;
        kills += 1;
    }

    let acknowledged: u64 = writers.iter().map(|writer| writer.count).sum();
    let appended = appends.count;
    println!("{kills} kills, {acknowledged} acknowledged writes of blobs and {appended} appends");
    assert_eq!(server.terminate(), Some(0));
}
