use std::fs::{self, File};

use super::*;

/// Sets the time of a file that was just written back.
fn set_back(file: &File, by: Duration) {
    let written = file.metadata().unwrap().modified().unwrap();
    file.set_modified(written - by).unwrap();
}

/// A place in a directory.
struct World {
    folder: tempfile::TempDir,
    place: Repository,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Repository::create(folder.path().to_str().unwrap(), "a", None).await.unwrap();
        Self { folder, place }
    }

    fn has(&self, path: &str) -> bool {
        self.folder.path().join(path).exists()
    }

    /// Sets the time of a file back.
    fn age(&self, path: &str, by: Duration) {
        let file = File::options().append(true).open(self.folder.path().join(path)).unwrap();
        set_back(&file, by);
    }

    async fn begin(&self, kind: &str, id: &str) -> Result<Path, CliError> {
        let other = if kind == RUNNING { PRUNING } else { RUNNING };
        self.place.enter(kind, other, id).await
    }
}

#[tokio::test]
async fn one_kind_of_work_excludes_the_other_and_not_itself() {
    let world = World::new().await;
    let first = world.begin(RUNNING, "one").await.unwrap();
    let second = world.begin(RUNNING, "two").await.unwrap();
    for _ in 0..2 {
        let error = world.begin(PRUNING, "three").await.unwrap_err();
        assert!(matches!(error, CliError::Source { busy: true, .. }), "{error}");
        assert!(error.to_string().contains("the target is in use, try again later"), "{error}");
        assert!(!world.has("pruning/three"), "it left again");
    }
    world.place.leave(&first).await.unwrap();
    assert!(world.begin(PRUNING, "three").await.is_err(), "the second is there");
    world.place.leave(&second).await.unwrap();
    let prune = world.begin(PRUNING, "three").await.unwrap();
    assert!(world.begin(RUNNING, "four").await.is_err());
    world.place.leave(&prune).await.unwrap();
    world.begin(RUNNING, "four").await.unwrap();
}

#[tokio::test]
async fn an_entry_counts_for_a_day_by_the_clock_of_the_place() {
    let world = World::new().await;
    world.begin(RUNNING, "killed").await.unwrap();
    world.age("running/killed", ENTRY_LASTS - Duration::from_secs(60));
    assert!(world.begin(PRUNING, "early").await.is_err());
    world.age("running/killed", ENTRY_LASTS + Duration::from_secs(60));
    let entry = world.begin(PRUNING, "late").await.unwrap();
    let written = world.place.written_at(&entry).await.unwrap();
    let path = world.folder.path().join("pruning/late");
    let file = fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(written, DateTime::<Utc>::from(file));
    assert!(world.place.written_at(&Path::from("pruning/none")).await.is_err());
}

#[tokio::test]
async fn who_may_not_delete_leaves_by_another_entry_which_a_prune_removes() {
    let world = World::new().await;
    let entry = world.begin(RUNNING, "one").await.unwrap();
    // A directory that is not empty is not deleted as a file is, as where a place refuses.
    let file = world.folder.path().join("running/one");
    fs::remove_file(&file).unwrap();
    fs::create_dir_all(file.join("kept")).unwrap();
    world.place.leave(&entry).await.unwrap();
    assert!(world.has("ended/one"));
    fs::remove_dir_all(&file).unwrap();
    fs::write(&file, "one").unwrap();

    let prune = world.begin(PRUNING, "two").await.unwrap();
    world.place.forget_ended().await.unwrap();
    assert!(!world.has("ended/one") && !world.has("running/one"));
    world.place.leave(&prune).await.unwrap();
    assert!(!world.has("pruning/two"));
    world.place.forget_ended().await.unwrap();
}

#[tokio::test]
async fn leaving_twice_is_no_error() {
    let world = World::new().await;
    let entry = world.begin(RUNNING, "one").await.unwrap();
    world.place.leave(&entry).await.unwrap();
    world.place.leave(&entry).await.unwrap();
    assert!(!world.has("ended/one"), "there was nothing to delete");
}

#[tokio::test]
async fn nothing_that_is_there_is_written_again() {
    let world = World::new().await;
    world.place.put("changes/a/b", b"first".to_vec()).await.unwrap();
    world.place.put("changes/a/b", b"second".to_vec()).await.unwrap();
    assert_eq!(fs::read(world.folder.path().join("changes/a/b")).unwrap(), b"first");
    world.place.sync().await.unwrap();
    // What was synced is not synced again, also where it was deleted since.
    fs::remove_dir_all(world.folder.path().join("changes")).unwrap();
    world.place.sync().await.unwrap();
    for wrong in ["a//b", "a/../b"] {
        assert!(world.place.put(wrong, Vec::new()).await.is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn backups_and_prunes_exclude_each_other_until_they_end() {
    let World { folder: _folder, place } = World::new().await;
    let first = place.enter(RUNNING, PRUNING, "a").await.unwrap();
    place.enter(RUNNING, PRUNING, "b").await.unwrap();
    let busy = place.enter(PRUNING, RUNNING, "c").await.unwrap_err().to_string();
    assert!(busy.contains("is in use"), "{busy}");
    place.leave(&first).await.unwrap();
    assert!(place.enter(PRUNING, RUNNING, "d").await.is_err(), "`b` is at work");
    // As where deletes are refused.
    place.put("ended/b", b"b".to_vec()).await.unwrap();
    let prune = place.enter(PRUNING, RUNNING, "e").await.unwrap();
    assert!(place.enter(RUNNING, PRUNING, "f").await.is_err());
    place.leave(&prune).await.unwrap();
    place.forget_ended().await.unwrap();
    assert!(place.list(RUNNING).await.unwrap().is_empty());
    place.enter(RUNNING, PRUNING, "f").await.unwrap();
}

fn make_old(path: &std::path::Path, age: Duration) {
    set_back(&File::options().write(true).open(path).unwrap(), age);
}

#[tokio::test]
async fn an_entry_of_a_process_that_was_killed_ends_after_a_day() {
    let World { folder, place } = World::new().await;
    place.enter(RUNNING, PRUNING, "a").await.unwrap();
    let minute = Duration::from_secs(60);
    make_old(&folder.path().join("running/a"), ENTRY_LASTS - minute);
    assert!(place.enter(PRUNING, RUNNING, "b").await.is_err());
    assert!(place.list(PRUNING).await.unwrap().is_empty(), "it left again");
    make_old(&folder.path().join("running/a"), ENTRY_LASTS + minute);
    let entry = place.enter(PRUNING, RUNNING, "c").await.unwrap();
    assert_eq!(entry.as_ref(), "pruning/c");
}

#[tokio::test]
async fn an_entry_that_continues_has_the_age_of_its_first_one() {
    let World { folder, place } = World::new().await;
    let entry = place.enter(RUNNING, PRUNING, "a").await.unwrap();
    make_old(&folder.path().join("running/a"), Duration::from_secs(3600));
    let first = place.written_at(&entry).await.unwrap();
    let again = place.enter(RUNNING, PRUNING, "a").await.unwrap();
    assert_eq!(place.written_at(&again).await.unwrap(), first);
    place.leave(&again).await.unwrap();
    assert!(place.written_at(&again).await.is_err());
    place.leave(&again).await.unwrap();
}
