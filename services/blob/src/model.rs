//! Any sequence of operations on blobs, with faults of the object store, against a plain model.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use proptest::prelude::*;

use crate::{
    blobs::BlobKey,
    error::BlobError,
    faulty::{FaultyObjects, ObjectFault},
    fixture::{BlobFixture, sample},
    names::BlobName,
    objects::Objects,
    sweep::{ORPHAN_GRACE, READ_GRACE},
};

/// A step: what is done, to which blob, with which data, and the faults of the calls that it makes.
#[derive(Debug, Clone)]
struct Step {
    operation: u8,
    blob: usize,
    length: usize,
    faults: Vec<ObjectFault>,
}

const IDS: [&str; 3] = ["A", "B", "C"];
const LENGTHS: [usize; 5] = [0, 100, 40_000, 100_000, 4_200_000];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fault = prop_oneof![
        4 => Just(ObjectFault::None),
        1 => Just(ObjectFault::Failed),
        1 => Just(ObjectFault::Unacknowledged),
        1 => Just(ObjectFault::Damaged),
    ];
    let faults = prop::collection::vec(fault, 0..3);
    let step = (0_u8..10, 0_usize..2, 0_usize..LENGTHS.len(), faults);
    let step = step.prop_map(|(operation, blob, length, faults)| Step {
        operation,
        blob,
        length: LENGTHS[length],
        faults,
    });
    prop::collection::vec(step, 1..25)
}

/// A blob by the model: its content, and its staged blocks by id.
#[derive(Debug, Clone, Default)]
struct ModelBlob {
    content: Option<Bytes>,
    committed: BTreeMap<&'static str, Bytes>,
    staged: BTreeMap<&'static str, Bytes>,
    /// The blocks of an append blob.
    appended: Option<Vec<Bytes>>,
}

/// Runs a step, and applies it to the model where it succeeds.
async fn run(
    fixture: &BlobFixture,
    key: &BlobKey,
    model: &mut ModelBlob,
    step: &Step,
) -> Result<(), BlobError> {
    let data = sample(step.length + 1);
    match step.operation {
        0 | 1 => {
            let command = crate::blobs::PutCommand::default();
            fixture.put_with(key, data.clone(), command).await?;
            *model = ModelBlob { content: Some(data), ..ModelBlob::default() };
        }
        2 | 3 => {
            let id = IDS[step.length % IDS.len()];
            fixture.stage(key, id, data.clone()).await?;
            model.staged.insert(id, data);
        }
        4 => {
            // Some lists drop a block.
            let known = |id: &&str| {
                let is_known = model.staged.contains_key(id) || model.committed.contains_key(id);
                is_known && (*id != "B" || step.length > 1000)
            };
            let ids: Vec<&'static str> = IDS.into_iter().filter(known).collect();
            fixture.commit(key, &ids).await?;
            let latest = |id: &&'static str| {
                let data = model.staged.get(id).or_else(|| model.committed.get(id));
                (*id, data.cloned().unwrap_or_default())
            };
            let committed: BTreeMap<_, _> = ids.iter().map(latest).collect();
            let content = ids.iter().map(|id| committed[id].as_ref()).collect::<Vec<_>>().concat();
            let content = Some(content.into());
            *model = ModelBlob { content, committed, ..ModelBlob::default() };
        }
        5 => {
            fixture.delete(key).await?;
            *model = ModelBlob::default();
        }
        6 => {
            fixture.create_append(key, crate::blobs::PutCommand::default()).await?;
            let (content, appended) = (Some(Bytes::new()), Some(Vec::new()));
            *model = ModelBlob { content, appended, ..ModelBlob::default() };
        }
        7 | 8 => {
            fixture.append(key, data.clone()).await?;
            let blocks = model.appended.as_mut().expect("it is an append blob");
            blocks.push(data);
            model.content = Some(blocks.concat().into());
        }
        _ => {
            let read = fixture.read(key).await?;
            assert_eq!(Some(&read), model.content.as_ref(), "a read that succeeds is right");
        }
    }
    Ok(())
}

/// The objects that the contents and the staged blocks of the model take.
fn objects_of(model: &ModelBlob) -> usize {
    let extents = |data: &Bytes| data.len().div_ceil(4 * 1024 * 1024);
    let is_whole = model.committed.is_empty() && model.appended.is_none();
    let is_large = |data: &&Bytes| data.len() > 32 * 1024;
    let whole = model.content.as_ref().filter(is_large).filter(|_| is_whole);
    let appended = model.appended.iter().flatten().filter(is_large);
    let blocks = model.committed.values().chain(model.staged.values());
    whole.into_iter().chain(appended).chain(blocks).map(extents).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]
    #[test]
    fn faults_of_the_object_store_publish_nothing_wrong_and_leave_nothing(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let store = Arc::new(FaultyObjects::default());
            let fixture = BlobFixture::on(Objects::of(Arc::clone(&store) as _));
            let container = fixture.container("logs").await.id;
            let name = |name: usize| BlobName::stored(format!("b{name}"));
            let keys = [0, 1].map(|number| BlobKey { container, name: name(number) });
            let mut models = [ModelBlob::default(), ModelBlob::default()];

            for step in &steps {
                let (key, model) = (&keys[step.blob], &mut models[step.blob]);
                store.plan(step.faults.iter().copied());
                // A failed step leaves the model as it was.
                let _ = run(&fixture, key, model, step).await;
                store.plan([]);
                for (key, model) in keys.iter().zip(&models) {
                    match &model.content {
                        Some(content) => assert_eq!(&fixture.read(key).await.expect("read"), content),
                        None => assert!(fixture.read(key).await.is_err()),
                    }
                }
            }
            fixture.advance(READ_GRACE + Duration::from_secs(1));
            fixture.sweep().await;
            fixture.advance(ORPHAN_GRACE);
            fixture.sweep().await;
            let expected: usize = models.iter().map(objects_of).sum();
            assert_eq!(fixture.objects().await, expected);
        });
    }
}
