use std::time::Duration;
use trestle_model::read_grace::READ_GRACE;

use trestle_model::time::Ticks;

use crate::{
    blobs::{BlobKey, BlobState, DeleteScope},
    fixture::{BlobFixture, sample},
    sweep::ORPHAN_GRACE,
};

const SECOND: Duration = Duration::from_secs(1);

/// A blob with a content in each of its states.
struct Shared {
    fixture: BlobFixture,
    key: BlobKey,
    rows: usize,
}

impl Shared {
    async fn new() -> Self {
        let fixture = BlobFixture::new();
        let key = fixture.key("a").await;
        let rows = fixture.rows().await;
        Self { fixture, key, rows }
    }

    async fn commit(&self, ids: &[(&'static str, usize)], list: &[&'static str]) {
        for (id, length) in ids {
            self.fixture.stage(&self.key, id, sample(*length)).await.expect("staged");
        }
        self.fixture.commit(&self.key, list).await.expect("committed");
    }

    async fn snapshot(&self) -> Ticks {
        self.fixture.snapshot(&self.key).await.expect("a snapshot")
    }

    async fn delete(&self, scope: DeleteScope) {
        self.fixture.delete_scope(&self.key, scope).await.expect("deleted");
    }

    async fn sweep(&self) {
        self.fixture.advance(READ_GRACE + SECOND);
        self.fixture.sweep().await;
    }

    async fn is_empty(&self) {
        self.fixture.advance(ORPHAN_GRACE + SECOND);
        self.fixture.sweep().await;
        assert_eq!((self.fixture.objects().await, self.fixture.rows().await), (0, self.rows));
    }
}

#[tokio::test]
async fn content_that_a_snapshot_has_remains_until_the_snapshot_is_deleted() {
    let shared = Shared::new().await;
    let data = sample(100_000);
    shared.fixture.put(&shared.key, data.clone()).await;
    let at = shared.snapshot().await;
    shared.fixture.put(&shared.key, "small").await;

    shared.sweep().await;
    assert_eq!(shared.fixture.read_snapshot(&shared.key, at).await.expect("read"), data);
    shared.delete(DeleteScope::Snapshot(at)).await;
    assert_eq!(shared.fixture.objects().await, 1, "a read may be in progress");
    shared.sweep().await;
    assert_eq!(shared.fixture.objects().await, 0);
    assert_eq!(shared.fixture.read(&shared.key).await.expect("read"), "small");
    shared.delete(DeleteScope::Blob).await;
    shared.is_empty().await;
}

#[tokio::test]
async fn each_block_remains_as_long_as_a_state_has_it() {
    let shared = Shared::new().await;
    shared.commit(&[("A", 1), ("B", 2)], &["A", "B"]).await;
    let first = shared.snapshot().await;
    let second = shared.snapshot().await;
    shared.commit(&[("C", 3)], &["B", "C"]).await;
    let third = shared.snapshot().await;
    shared.commit(&[("D", 4)], &["D"]).await;
    let read =
        async |at| shared.fixture.read_snapshot(&shared.key, at).await.map(|it| it.len()).ok();
    shared.sweep().await;
    assert_eq!(
        (read(first).await, read(second).await, read(third).await),
        (Some(3), Some(3), Some(5))
    );
    assert_eq!(shared.fixture.objects().await, 4);

    shared.delete(DeleteScope::Snapshot(second)).await;
    shared.sweep().await;
    assert_eq!((read(first).await, read(third).await), (Some(3), Some(5)));
    shared.delete(DeleteScope::Snapshot(first)).await;
    shared.sweep().await;
    assert_eq!((shared.fixture.objects().await, read(third).await), (3, Some(5)), "without A");
    shared.delete(DeleteScope::SnapshotsOnly).await;
    shared.sweep().await;
    assert_eq!(shared.fixture.objects().await, 1, "D");
    assert_eq!(shared.fixture.read(&shared.key).await.expect("read").len(), 4);
    shared.delete(DeleteScope::Blob).await;
    shared.is_empty().await;
}

#[tokio::test]
async fn the_last_of_several_deleted_states_decides_when_a_read_must_have_ended() {
    let shared = Shared::new().await;
    let data = sample(100_000);
    shared.fixture.put(&shared.key, data.clone()).await;
    let (first, second) = (shared.snapshot().await, shared.snapshot().await);
    shared.delete(DeleteScope::Snapshot(first)).await;
    shared.fixture.advance(READ_GRACE - 10 * SECOND);
    let required = (&crate::conditions::Conditions::default(), None);
    let state = BlobState::Past(second);
    let opened = shared.fixture.blobs.open((shared.key.clone(), state), None, required).await;
    shared.delete(DeleteScope::WithSnapshots).await;

    shared.fixture.advance(20 * SECOND);
    shared.fixture.sweep().await;

    use futures::TryStreamExt as _;
    let pieces = shared.fixture.blobs.clone().bytes(&opened.expect("open"));
    let pieces: Vec<_> = pieces.try_collect().await.expect("within the grace period");
    assert_eq!(pieces.concat(), data);
    shared.sweep().await;
    shared.is_empty().await;
}

#[tokio::test]
async fn a_blob_without_snapshots_leaves_no_rows_that_need_a_comparison() {
    let shared = Shared::new().await;
    let shared_rows = async || {
        let span = crate::keys::every(crate::keys::BlobRow::SharedRetired);
        shared.fixture.blobs.engine.scan(&span, super::STEP).await.expect("read").entries.len()
    };
    shared.fixture.put(&shared.key, sample(100_000)).await;
    shared.commit(&[("A", 1)], &["A"]).await;
    shared.commit(&[("B", 1)], &["A", "B"]).await;
    assert_eq!(shared_rows().await, 0);
    let at = shared.snapshot().await;
    shared.commit(&[("C", 1)], &["C"]).await;
    assert_eq!(shared_rows().await, 1);
    shared.fixture.put(&shared.key, sample(100_000)).await;
    assert_eq!(shared_rows().await, 2, "a list may have blocks that the blob had before");
    shared.fixture.put(&shared.key, sample(100_000)).await;
    assert_eq!(shared_rows().await, 2, "new content shares nothing");
    shared.delete(DeleteScope::Snapshot(at)).await;
    shared.delete(DeleteScope::Blob).await;
    shared.sweep().await;
    shared.is_empty().await;
}

#[tokio::test]
async fn a_deleted_container_leaves_no_snapshots() {
    let fixture = BlobFixture::new();
    let rows = fixture.rows().await;
    let container = fixture.container("logs").await.id;
    let name = crate::names::BlobName::stored("a".to_owned());
    let key = BlobKey { container, name };
    for length in [10, 100_000] {
        fixture.put(&key, sample(length)).await;
        fixture.snapshot(&key).await.expect("a snapshot");
    }
    fixture.stage(&key, "A", "x").await.expect("staged");
    fixture.commit(&key, &["A"]).await.expect("committed");
    fixture.snapshot(&key).await.expect("a snapshot");
    fixture.stage(&key, "B", "x").await.expect("staged");
    fixture.commit(&key, &["B"]).await.expect("committed");
    fixture.drop_container("logs").await;

    fixture.advance(READ_GRACE + SECOND);
    fixture.sweep().await;
    fixture.advance(ORPHAN_GRACE + SECOND);
    fixture.sweep().await;
    assert_eq!((fixture.objects().await, fixture.rows().await), (0, rows));
}

#[tokio::test]
async fn the_pieces_of_an_append_blob_remain_as_long_as_a_snapshot_has_them() {
    let shared = Shared::new().await;
    let (fixture, key) = (&shared.fixture, &shared.key);
    fixture.create_append(key, Default::default()).await.expect("created");
    fixture.append(key, sample(100_000)).await.expect("appended");
    let at = shared.snapshot().await;
    fixture.create_append(key, Default::default()).await.expect("replaced");

    shared.sweep().await;
    assert_eq!(fixture.read_snapshot(key, at).await.expect("read"), sample(100_000));
    shared.delete(DeleteScope::WithSnapshots).await;
    shared.sweep().await;
    shared.is_empty().await;
}
