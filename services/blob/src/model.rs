//! Any sequence of operations on blobs, with faults of the object store, against a plain model.

mod interleaved;

use std::{collections::BTreeMap, sync::Arc, time::Duration};
use trestle_model::read_grace::READ_GRACE;

use bytes::Bytes;
use proptest::prelude::*;
use trestle_model::time::Ticks;

use trestle_objects::faulty::{FaultyObjects, ObjectFault};

use crate::{
    blobs::{BlobChange, BlobKey, BlobState, DeleteScope, StateName},
    conditions::Conditions,
    error::BlobError,
    find::FindBlobs,
    fixture::{BlobFixture, account, sample},
    names::BlobName,
    objects::Objects,
    record::{BlobRecord, Retention},
    sweep::ORPHAN_GRACE,
    tags::expression::TagFilter,
};

/// A step: what is done, to which blob, with which data, and the faults of the calls that it makes.
#[derive(Debug, Clone)]
struct Step {
    operation: u8,
    blob: usize,
    length: usize,
    faults: Vec<ObjectFault>,
}

const STEPS_MAX: usize = 40;
/// Longer than all steps, and shorter than staged blocks are kept.
const KEPT_FOR: Duration = Duration::from_secs(5 * 24 * 3600);
/// Length of page blobs: several chunks.
const PAGES_BYTES: usize = 4 * 64 * 1024;
const IDS: [&str; 3] = ["A", "B", "C"];
const LENGTHS: [usize; 5] = [0, 100, 40_000, 100_000, 4_200_000];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fault = prop_oneof![
        4 => Just(ObjectFault::None),
        1 => Just(ObjectFault::Failed),
        1 => Just(ObjectFault::Unacknowledged),
        1 => Just(ObjectFault::Damaged),
        1 => Just(ObjectFault::Slow),
    ];
    let faults = prop::collection::vec(fault, 0..3);
    let step = (0_u8..25, 0_usize..2, 0_usize..LENGTHS.len(), faults);
    let step = step.prop_map(|(operation, blob, length, faults)| Step {
        operation,
        blob,
        length: LENGTHS[length],
        faults,
    });
    prop::collection::vec(step, 1..STEPS_MAX)
}

/// Data that was uploaded, with a number of its own.
#[derive(Debug, Clone)]
struct ModelPiece {
    number: usize,
    data: Bytes,
}

/// The content of a state: data of one upload, or blocks.
#[derive(Debug, Clone)]
enum ModelContent {
    Whole(ModelPiece),
    Blocks(BTreeMap<&'static str, ModelPiece>),
    /// An append blob that was created by the step of this number.
    Appended(usize, Vec<ModelPiece>),
    /// A page blob.
    Paged(Vec<u8>),
}

impl ModelContent {
    fn bytes(&self) -> Bytes {
        match self {
            Self::Whole(piece) => piece.data.clone(),
            Self::Paged(data) => data.clone().into(),
            Self::Appended(_, pieces) => {
                pieces.iter().map(|piece| piece.data.as_ref()).collect::<Vec<_>>().concat().into()
            }
            Self::Blocks(blocks) => {
                blocks.values().map(|piece| piece.data.as_ref()).collect::<Vec<_>>().concat().into()
            }
        }
    }

    /// The content with bytes of its own.
    fn copied(self, number: usize) -> Self {
        let copied = |number, piece: ModelPiece| ModelPiece { number, ..piece };
        match self {
            Self::Whole(piece) => Self::Whole(copied(number, piece)),
            Self::Paged(data) => Self::Paged(data),
            Self::Appended(..) => {
                Self::Appended(number, vec![ModelPiece { number, data: self.bytes() }])
            }
            Self::Blocks(blocks) => {
                let blocks = blocks.into_iter().zip(1..);
                let copy = |((id, piece), index)| (id, copied(number + index * STEPS_MAX, piece));
                Self::Blocks(blocks.map(copy).collect())
            }
        }
    }

    /// What of it is in objects.
    fn pieces(&self) -> Vec<&ModelPiece> {
        match self {
            Self::Whole(piece) if piece.data.len() <= 32 * 1024 => Vec::new(),
            Self::Whole(piece) => vec![piece],
            Self::Paged(_) => Vec::new(),
            Self::Appended(_, pieces) => {
                pieces.iter().filter(|piece| piece.data.len() > 32 * 1024).collect()
            }
            Self::Blocks(blocks) => blocks.values().collect(),
        }
    }
}

/// A blob by the model: its content, its staged blocks by id, and its snapshots.
#[derive(Debug, Clone, Default)]
struct ModelBlob {
    content: Option<ModelContent>,
    staged: BTreeMap<&'static str, ModelPiece>,
    snapshots: BTreeMap<Ticks, ModelContent>,
    /// The version of the content.
    etag: Option<Ticks>,
    /// Whether what is deleted or overwritten is kept.
    is_kept: bool,
    /// Whether it is kept as a version.
    has_versions: bool,
    /// The id of the version that the content is.
    version: Option<Ticks>,
    /// The previous versions.
    versions: BTreeMap<Ticks, ModelContent>,
    /// The deleted blob with the version of its content.
    deleted: Option<(Ticks, ModelContent)>,
    /// What was overwritten, and deleted snapshots.
    deleted_past: BTreeMap<Ticks, ModelContent>,
    /// Everything that was appended, by the step that created the blob: snapshots keep all of it.
    appended: BTreeMap<usize, Vec<ModelPiece>>,
}

impl ModelBlob {
    fn block(&self, id: &str) -> Option<&ModelPiece> {
        let committed = match &self.content {
            Some(ModelContent::Blocks(blocks)) => blocks.get(id),
            _ => None,
        };
        self.staged.get(id).or(committed)
    }

    fn set(&mut self, content: ModelContent, record: &BlobRecord) {
        self.deleted_past.extend(self.deleted.take());
        self.keep_version();
        self.version = record.version;
        let before = self.etag.replace(record.etag.0).zip(self.content.replace(content));
        self.deleted_past.extend(before.filter(|_| self.is_kept));
        self.staged.clear();
    }

    /// The content becomes a previous version.
    fn keep_version(&mut self) {
        let version = self.version.zip(self.content.clone()).filter(|_| self.has_versions);
        self.versions.extend(version);
    }

    fn delete(&mut self) {
        self.delete_snapshots();
        self.keep_version();
        let before = self.etag.take().zip(self.content.take());
        if let Some(before) = before.filter(|_| self.is_kept) {
            self.deleted = Some(before);
        }
        self.staged.clear();
    }

    fn delete_snapshots(&mut self) {
        let snapshots = std::mem::take(&mut self.snapshots);
        self.deleted_past.extend(snapshots.into_iter().filter(|_| self.is_kept));
    }

    fn undelete(&mut self) {
        if let Some((etag, content)) = self.deleted.take() {
            if let ModelContent::Appended(..) | ModelContent::Paged(_) = content {
                // Only a block blob has staged blocks.
                self.staged.clear();
            }
            (self.etag, self.content) = (Some(etag), Some(content));
        }
        self.snapshots.append(&mut self.deleted_past);
    }
}

/// Runs a step, and applies it to the model where it succeeds.
async fn run(
    fixture: &BlobFixture,
    key: &BlobKey,
    model: &mut ModelBlob,
    (number, step): (usize, &Step),
) -> Result<(), BlobError> {
    let data = sample(step.length + 1);
    let piece = ModelPiece { number, data: data.clone() };
    match step.operation {
        0 | 1 => {
            let put = fixture.put_with(key, data, crate::blobs::PutCommand::default()).await?;
            model.set(ModelContent::Whole(piece), &put);
        }
        2 | 3 => {
            let id = IDS[step.length % IDS.len()];
            fixture.stage(key, id, data).await?;
            model.staged.insert(id, piece);
        }
        4 => {
            // Some lists drop a block.
            let listed =
                |id: &&str| model.block(id).is_some() && (*id != "B" || step.length > 1000);
            let ids: Vec<&'static str> = IDS.into_iter().filter(listed).collect();
            let record = fixture.commit(key, &ids).await?;
            let blocks = ids.iter().filter_map(|id| Some((*id, model.block(id)?.clone())));
            let blocks = blocks.collect();
            model.set(ModelContent::Blocks(blocks), &record);
        }
        5 => {
            fixture.delete(key).await?;
            assert!(model.snapshots.is_empty(), "a blob with snapshots is not deleted alone");
            model.delete();
        }
        17 => {
            let restored = fixture.undelete(key).await;
            let is_found = model.content.is_some() || model.deleted.is_some();
            assert_eq!(restored.is_ok(), is_found, "{restored:?}");
            restored?;
            model.undelete();
        }
        20 => {
            let tags = vec![("n".to_owned(), number.to_string())];
            let required = (Conditions::default(), None);
            fixture.blobs.change(key.clone(), BlobChange::Tags(tags), required).await?;
        }
        7..=12 | 18 | 19 => run_on_history(fixture, key, model, (number, step)).await?,
        21..=24 => run_on_pages(fixture, key, model, (number, step)).await?,
        13 | 14 => {
            let command = crate::blobs::PutCommand::default();
            let record = fixture.create_append(key, command).await?;
            model.set(ModelContent::Appended(number, Vec::new()), &record);
        }
        15 | 16 => {
            model.etag = Some(fixture.append(key, data).await?.record.etag.0);
            match &mut model.content {
                Some(ModelContent::Appended(created, pieces)) => {
                    pieces.push(piece);
                    model.appended.insert(*created, pieces.clone());
                }
                other => panic!("it is an append blob: {other:?}"),
            }
        }
        _ => {
            let read = fixture.read(key).await?;
            let expected = model.content.as_ref().map(ModelContent::bytes);
            assert_eq!(Some(read), expected, "a read that succeeds is right");
        }
    }
    Ok(())
}

/// Runs a step that creates a page blob, or changes some of its pages.
async fn run_on_pages(
    fixture: &BlobFixture,
    key: &BlobKey,
    model: &mut ModelBlob,
    (number, step): (usize, &Step),
) -> Result<(), BlobError> {
    if step.operation == 21 {
        let record = fixture.create_pages(key, PAGES_BYTES as u64).await?;
        model.set(ModelContent::Paged(vec![0; PAGES_BYTES]), &record);
        return Ok(());
    }
    let first = (number * 7919 + step.length) % (PAGES_BYTES / 512);
    let pages = (first * 512)..PAGES_BYTES.min((first + 1 + step.length % 300) * 512);
    let fill = if step.operation == 24 { 0 } else { u8::try_from(number + 1).expect("few") };
    let record = match fill {
        0 => fixture.clear_pages(key, pages.start as u64..pages.end as u64).await?,
        _ => fixture.write_pages(key, pages.start as u64, vec![fill; pages.len()]).await?,
    };
    model.etag = Some(record.etag.0);
    match &mut model.content {
        Some(ModelContent::Paged(data)) => data[pages].fill(fill),
        other => panic!("it is a page blob: {other:?}"),
    }
    Ok(())
}

/// Runs a step that makes, copies or deletes snapshots, or lets time pass.
async fn run_on_history(
    fixture: &BlobFixture,
    key: &BlobKey,
    model: &mut ModelBlob,
    (number, step): (usize, &Step),
) -> Result<(), BlobError> {
    match step.operation {
        7 | 8 => {
            let at = fixture.snapshot(key).await?;
            let content = model.content.clone().expect("a blob that has a snapshot has content");
            model.snapshots.insert(at, content);
        }
        9 => {
            let Some(at) = model.snapshots.keys().nth(step.length % 2).copied() else {
                return Ok(());
            };
            fixture.delete_scope(key, DeleteScope::Snapshot(at)).await?;
            let deleted = model.snapshots.remove_entry(&at).filter(|_| model.is_kept);
            model.deleted_past.extend(deleted);
        }
        10 if step.length < 1000 => {
            fixture.delete_scope(key, DeleteScope::WithSnapshots).await?;
            model.delete();
        }
        10 => {
            fixture.delete_scope(key, DeleteScope::SnapshotsOnly).await?;
            model.delete_snapshots();
        }
        18 => {
            let record = fixture.set_metadata(key, "b").await?;
            model.keep_version();
            (model.etag, model.version) = (Some(record.etag.0), record.version);
        }
        19 => {
            let Some(id) = model.versions.keys().nth(step.length % 3).copied() else {
                return Ok(());
            };
            fixture.delete_scope(key, DeleteScope::Version(id)).await?;
            model.versions.remove(&id);
        }
        12 => {
            let at = model.snapshots.keys().nth(step.length % 2).copied();
            let state = at.map_or(BlobState::Current, BlobState::Past);
            let record = fixture.copy((key, state), key).await?;
            let content = at.map_or(model.content.as_ref(), |at| model.snapshots.get(&at));
            let content = content.expect("a source has content").clone();
            model.set(content.copied(number), &record);
        }
        _ => {
            fixture.advance(READ_GRACE / 2);
            fixture.sweeper.tick().await?;
        }
    }
    Ok(())
}

/// Every state reads as the model has it.
async fn check(fixture: &BlobFixture, key: &BlobKey, model: &ModelBlob) {
    match &model.content {
        Some(content) => assert_eq!(fixture.read(key).await.expect("read"), content.bytes()),
        None => assert!(fixture.read(key).await.is_err()),
    }
    for (at, content) in &model.snapshots {
        let read = fixture.read_snapshot(key, *at).await.expect("read");
        assert_eq!(read, content.bytes(), "the snapshot");
    }
    for (id, content) in &model.versions {
        let read = fixture.read_state((key, StateName::Version(*id)), None).await.expect("read");
        assert_eq!(read, content.bytes(), "the version");
    }
}

/// The index has the tags of the blobs that exist, and no others.
async fn check_index(fixture: &BlobFixture, keys: &[BlobKey]) {
    let text = "n >= ''".to_owned();
    let filter = TagFilter::parse(&text).expect("a filter");
    let (container, page_token) = (None, String::new());
    let request = FindBlobs { filter, text, container, page_size: 10, page_token };
    let found = fixture.blobs.find(&account(), &request).await.expect("found").blobs;
    let mut expected = Vec::new();
    for key in keys {
        let required = (&Conditions::default(), None);
        let tags = fixture.blobs.get((key, BlobState::Current), required).await;
        let tags = tags.map(|found| found.record.tags).unwrap_or_default();
        expected.extend(tags.into_iter().map(|tag| (key.name.clone(), vec![tag])));
    }
    let mut found: Vec<_> = found.into_iter().map(|it| (it.name, it.tags)).collect();
    found.sort_unstable_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
    assert_eq!(found, expected);
}

/// The objects that the states and the staged blocks of the model take, those of a shared content once.
fn objects_of(model: &ModelBlob) -> usize {
    let past = model.snapshots.values().chain(model.versions.values());
    let states = model.content.iter().chain(past);
    let whole = states.clone().filter_map(|content| match content {
        ModelContent::Appended(created, _) => model.appended.get(created),
        _ => None,
    });
    let later: Vec<_> = whole.map(|it| ModelContent::Appended(0, it.clone())).collect();
    let pieces = states.chain(&later).flat_map(ModelContent::pieces).chain(model.staged.values());
    let pieces: BTreeMap<_, _> = pieces.map(|piece| (piece.number, piece.data.len())).collect();
    pieces.values().map(|length| length.div_ceil(4 * 1024 * 1024)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]
    #[test]
    fn faults_of_the_object_store_publish_nothing_wrong_and_leave_nothing(steps in steps(), keeps in 0_u8..3) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let store = Arc::new(FaultyObjects::default());
            let fixture = BlobFixture::on(Objects::of(Arc::clone(&store) as _));
            let container = fixture.container("logs").await.id;
            let name = |name: usize| BlobName::stored(format!("b{name}"));
            let keys = [0, 1].map(|number| BlobKey { container, name: name(number) });
            let (is_kept, has_versions) = (keeps == 1, keeps == 2);
            let model = ModelBlob { is_kept, has_versions, ..ModelBlob::default() };
            let mut models = [model.clone(), model];
            let deleted_for = Some(KEPT_FOR).filter(|_| is_kept);
            fixture.keep(Retention { deleted_for, versions: has_versions, ..Retention::default() });

            for (number, step) in steps.iter().enumerate() {
                let (key, model) = (&keys[step.blob], &mut models[step.blob]);
                store.plan(step.faults.iter().copied());
                // A failed step leaves the model as it was.
                let _ = run(&fixture, key, model, (number, step)).await;
                store.plan([]);
                for (key, model) in keys.iter().zip(&models) {
                    check(&fixture, key, model).await;
                }
                check_index(&fixture, &keys).await;
            }
            fixture.advance(KEPT_FOR);
            fixture.sweep().await;
            fixture.advance(READ_GRACE + Duration::from_secs(1));
            fixture.sweep().await;
            fixture.advance(ORPHAN_GRACE);
            fixture.sweep().await;
            let expected: usize = models.iter().map(objects_of).sum();
            assert_eq!(fixture.objects().await, expected);
        });
    }
}
