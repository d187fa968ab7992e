//! Processes that serve one database, and copies of it, on the objects of one store.

use std::sync::Mutex;

use object_store::{ObjectStoreExt as _, memory::InMemory, path::Path as ObjectPath};

use super::*;

const URL: &str = "s3://bucket/prod";

/// The row of a database.
#[derive(Debug, Default)]
struct RowInMemory {
    text: Mutex<Option<String>>,
    /// Others that start before the next replacement, and replace the row first.
    others: tokio::sync::Mutex<Option<(Arc<RowInMemory>, Arc<InMemory>)>>,
}

#[async_trait::async_trait]
impl BindingRecord for RowInMemory {
    async fn read(&self) -> Result<Option<String>, OpenObjectsError> {
        Ok(self.text.lock().unwrap().clone())
    }

    async fn replace(&self, found: Option<&str>, text: &str) -> Result<bool, OpenObjectsError> {
        let other = self.others.lock().await.take();
        if let Some((row, store)) = other {
            start(&row, &store).await?;
        }
        let mut stored = self.text.lock().unwrap();
        if stored.as_deref() != found {
            return Ok(false);
        }
        *stored = Some(text.to_owned());
        Ok(true)
    }
}

impl RowInMemory {
    /// That of a copy of the database.
    fn copied(&self) -> Arc<Self> {
        Arc::new(Self { text: Mutex::new(self.text.lock().unwrap().clone()), ..Self::default() })
    }
}

async fn start(
    row: &Arc<RowInMemory>,
    store: &Arc<InMemory>,
) -> Result<ObjectStorage, OpenObjectsError> {
    ObjectStorage::shared(Arc::clone(store) as _, Arc::clone(row) as _, &URL.parse().unwrap()).await
}

async fn lost(storage: &ObjectStorage) -> Option<String> {
    let owner = storage.owner.as_ref().unwrap();
    owner.check().await.unwrap();
    owner.lost().map(str::to_owned)
}

#[tokio::test]
async fn processes_of_one_database_own_its_objects_together_by_numbers_of_their_own() {
    let (row, store) = (Arc::<RowInMemory>::default(), Arc::new(InMemory::new()));
    let mut processes = Vec::new();
    for number in 1..=70 {
        let process = start(&row, &store).await.unwrap();
        assert_eq!(process.blobs.start, number);
        processes.push(process);
    }

    for process in &processes {
        assert_eq!(lost(process).await, None, "start {}", process.blobs.start);
        let (start, path) = (process.blobs.start, process.blobs.start.to_string());
        process.blobs.put(&path, "text".into()).await.unwrap();
        // What one has written another one deletes.
        let other = &processes[usize::try_from(start).unwrap() * 7 % processes.len()];
        other.blobs.delete(&path).await.unwrap();
        assert!(store.head(&ObjectPath::from(path)).await.is_err());
    }
}

#[tokio::test]
async fn a_start_goes_on_where_others_of_its_database_come_between() {
    let (row, store) = (Arc::<RowInMemory>::default(), Arc::new(InMemory::new()));
    let first = start(&row, &store).await.unwrap();
    *row.others.lock().await = Some((Arc::clone(&row), Arc::clone(&store)));

    let last = start(&row, &store).await.unwrap();

    assert_eq!(last.blobs.start, 3, "the second came between");
    assert_eq!((lost(&first).await, lost(&last).await), (None, None));
}

#[tokio::test]
async fn many_processes_start_at_a_time() {
    let (row, store) = (Arc::<RowInMemory>::default(), Arc::new(InMemory::new()));
    let starts = (0..8).map(|_| start(&row, &store));

    let started = futures::future::join_all(starts).await;

    let mut numbers = Vec::new();
    for process in started {
        let process = process.unwrap();
        assert_eq!(lost(&process).await, None);
        numbers.push(process.blobs.start);
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 8);
}

#[tokio::test]
async fn processes_of_a_database_stop_once_a_copy_of_it_uses_their_objects() {
    let (row, store) = (Arc::<RowInMemory>::default(), Arc::new(InMemory::new()));
    let (one, two) = (start(&row, &store).await.unwrap(), start(&row, &store).await.unwrap());
    one.blobs.put("1", "of both".into()).await.unwrap();
    let copied = row.copied();

    let copy = start(&copied, &store).await.unwrap();

    for process in [&one, &two] {
        let reason = lost(process).await.expect("it stops");
        assert!(reason.contains("start=`3`"), "{reason}");
        assert!(process.blobs.delete("1").await.is_err());
        assert!(process.blobs.put("2", "late".into()).await.is_err());
    }
    assert_eq!(lost(&copy).await, None);
    assert!(store.head(&ObjectPath::from("1")).await.is_ok());
    let again = start(&row, &store).await.map(drop);
    assert!(matches!(again, Err(OpenObjectsError::Copied { there: 3, here: 2, .. })), "{again:?}");
    start(&copied, &store).await.unwrap();
}

#[tokio::test]
async fn the_objects_of_a_database_stay_where_they_are_and_belong_to_no_other() {
    let (row, store) = (Arc::<RowInMemory>::default(), Arc::new(InMemory::new()));
    start(&row, &store).await.unwrap();

    let other = start(&Arc::default(), &store).await.map(drop);
    assert!(matches!(other, Err(OpenObjectsError::Claimed { .. })), "{other:?}");

    let url = "s3://bucket/other".parse().unwrap();
    let moved = ObjectStorage::shared(Arc::clone(&store) as _, Arc::clone(&row) as _, &url).await;
    let Err(OpenObjectsError::Elsewhere { found }) = moved.map(drop) else {
        panic!("it has two places");
    };
    assert_eq!(found, URL);
}
