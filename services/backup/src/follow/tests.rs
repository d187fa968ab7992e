//! A follower beside an engine whose changes it sends to a directory.

mod copies;
mod model;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use prost::Message as _;
use trestle_command::flags::ClientFlags;
use trestle_kv::{Change, ChangeSpec, Domain, Engine as _, Entry, Lock, Writes, key_domain};
use trestle_kv_fjall::{FjallEngine, FjallOptions, LoggedChange, drop_links};

use super::*;
use crate::{
    changes::{CHANGES as FOLDER, ShippedChanges},
    repository::Repository,
    rules::DataDirectory,
    tests::rules,
    window::{CHANGES, ChangeWindow, WindowName},
};

type Rows = BTreeMap<Bytes, Bytes>;

/// An engine, and the files by which it hands its changes over.
struct World {
    folder: tempfile::TempDir,
    engine: Option<FjallEngine>,
    rows: Rows,
    epoch: u64,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("data/blob")).unwrap();
        let mut world = Self { folder, engine: None, rows: Rows::new(), epoch: 0 };
        world.open();
        world
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("target")
    }

    fn open(&mut self) {
        self.engine = None;
        let options = FjallOptions {
            marks_groups: true,
            memtable_bytes: 64 * 1024,
            min_free_bytes: 0,
            ..FjallOptions::new(self.data().join("kv"), rules().keyspaces)
        };
        self.engine = Some(FjallEngine::open(options).unwrap());
        self.note();
    }

    /// What the server does twice a second.
    fn note(&self) -> ChangesEnd {
        let log = self.engine.as_ref().unwrap().change_log();
        let end = log.link(&self.data().join(FOLDER)).unwrap();
        let end = ChangesEnd {
            position: end.position.to_string(),
            newest: end.newest.get(),
            now: end.now.get(),
            epoch: self.epoch,
        };
        end.write(&self.data()).unwrap();
        end
    }

    async fn put(&mut self, kind: u8, number: u8, value: impl Into<Bytes>) {
        let (key, value) = (Bytes::from(vec![kind, number]), value.into());
        self.rows.insert(key.clone(), value.clone());
        self.commit(key, Some(value)).await;
    }

    async fn delete(&mut self, kind: u8, number: u8) {
        let key = Bytes::from(vec![kind, number]);
        self.rows.remove(&key);
        self.commit(key, None).await;
    }

    async fn commit(&self, key: Bytes, value: Option<Bytes>) {
        let spec = ChangeSpec::new(Domain::of_key(&key, key_domain));
        let change = Change::new(spec, move |_, _| {
            let mut writes = Writes::new();
            match &value {
                Some(value) => writes.put(key.clone(), value.clone()),
                None => writes.delete(key.clone()),
            };
            writes
        });
        self.engine.as_ref().unwrap().commit(change).await.unwrap();
    }

    async fn follow(&self) -> ChangeFollower {
        self.try_follow().await.unwrap()
    }

    async fn try_follow(&self) -> Result<ChangeFollower, CliError> {
        let store = DataDirectory { path: self.data(), rules: rules() };
        let folder = ChangesFolder::lock(&store.path)?;
        let target = self.target();
        let sender = WindowSender::open(&store, target.to_str().unwrap(), None).await?;
        ChangeFollower::begin(folder, sender, &mut output()).await
    }

    /// Notes the end, and has a follower send all before it.
    async fn send(&self, follower: &mut ChangeFollower) {
        self.note();
        // Changes wait for others only by the clock.
        follower.step(&mut output()).await.unwrap();
        follower.gathers_since = None;
        follower.step(&mut output()).await.unwrap();
        assert!(follower.cutter.is_empty());
    }

    /// The windows at the target in their order, by line.
    async fn windows(&self) -> BTreeMap<String, Vec<(WindowName, ChangeWindow)>> {
        let repository = Repository::open(self.target().to_str().unwrap(), None).await.unwrap();
        let found = repository.list(CHANGES).await.unwrap();
        let mut names: Vec<_> =
            found.iter().filter_map(|it| WindowName::of_path(it.location.as_ref())).collect();
        names.sort();
        let mut lines = BTreeMap::<_, Vec<_>>::new();
        for name in names {
            let plain = repository.read_sealed(&name.path()).await.unwrap();
            let window = ChangeWindow::decode(&*plain).unwrap();
            lines.entry(name.line.clone()).or_default().push((name, window));
        }
        lines
    }

    /// The rows after the changes of the one line that there is, whose windows follow each other.
    async fn sent(&self) -> Rows {
        let lines = self.windows().await;
        assert_eq!(lines.len(), 1);
        let mut rows = Rows::new();
        let (mut to, mut versions) = (None, Vec::new());
        for (seq, (name, window)) in lines.into_values().flatten().enumerate() {
            assert_eq!((name.seq, to.unwrap_or(name.from)), (seq as u64, name.from));
            to = Some(name.to);
            for group in window.groups {
                versions.push((group.version, group.is_continued));
                group.changes.into_iter().for_each(|change| apply(&mut rows, change.into()));
            }
        }
        let is_next = |pair: &[(u64, bool)]| match pair {
            [(before, true), (after, _)] => before == after,
            [(before, false), (after, _)] => before < after,
            _ => unreachable!(),
        };
        assert!(versions.windows(2).all(is_next), "every group is there once: {versions:?}");
        rows
    }
}

fn output() -> Output {
    let mut args = ClientFlags::default().output();
    args.quiet = true;
    Output::standard(&args)
}

fn apply(rows: &mut Rows, change: LoggedChange) {
    match change {
        LoggedChange::Put(Entry { key, value }) => drop(rows.insert(key, value)),
        LoggedChange::Delete(key) => drop(rows.remove(&key)),
        LoggedChange::Discard(span) => rows.retain(|key, _| *key < span.start || *key >= span.end),
    }
}

#[tokio::test]
async fn every_change_is_sent_once_also_over_ends_of_the_command_and_of_the_store() {
    let mut world = World::new();
    world.put(1, 0, "before the line").await;
    let base = world.rows.clone();
    world.note();
    let mut follower = world.follow().await;
    for round in 0..12_u8 {
        world.put(1, round, vec![round; 20_000]).await;
        world.put(6, round % 3, format!("{round}")).await;
        world.delete(1, round.wrapping_sub(5)).await;
        if round % 4 != 3 {
            world.send(&mut follower).await;
        }
        if round % 3 == 0 {
            drop(follower);
            if round % 2 == 0 {
                world.open();
            }
            follower = world.follow().await;
        }
    }
    world.send(&mut follower).await;
    let mut expected = base;
    expected.retain(|key, _| !world.rows.contains_key(key) && key[1] == 0);
    let mut sent = world.sent().await;
    sent.retain(|key, _| !expected.contains_key(key));
    let mut rows = world.rows.clone();
    rows.retain(|key, _| !expected.contains_key(key));
    assert_eq!(sent, rows);
}

/// The note of a line, to put it back.
fn line_of(data: &Path) -> Vec<u8> {
    fs::read(data.join(FOLDER).join("LINE")).unwrap()
}

/// Puts it back, as the note of the last command.
fn put_line(data: &Path, mut shipped: ShippedChanges) {
    let last: ShippedChanges = serde_json::from_slice(&line_of(data)).unwrap();
    (shipped.run, shipped.claim) = (last.run, last.claim);
    fs::write(data.join(FOLDER).join("LINE"), serde_json::to_vec(&shipped).unwrap()).unwrap();
}

#[tokio::test]
async fn a_window_that_was_written_and_not_noted_is_not_written_again() {
    let mut world = World::new();
    let mut follower = world.follow().await;
    let before = line_of(&world.data());
    world.put(1, 1, "a").await;
    world.send(&mut follower).await;
    let after: ShippedChanges = serde_json::from_slice(&line_of(&world.data())).unwrap();
    drop(follower);

    // As it was when the window was written, and after that.
    let window = world.windows().await.into_values().flatten().next_back().unwrap().0;
    let mut during: ShippedChanges = serde_json::from_slice(&before).unwrap();
    let path = window.path();
    during.writing = Some(crate::changes::WritingWindow { path, next: after.next.clone() });
    put_line(&world.data(), during.clone());
    let mut follower = world.follow().await;
    assert_eq!(follower.line.next(), &after.next);
    world.put(1, 2, "b").await;
    world.send(&mut follower).await;
    assert_eq!(world.sent().await, world.rows);
    drop(follower);

    // And where it was not written.
    fs::remove_file(world.target().join(window.path())).unwrap();
    let last = world.windows().await.into_values().flatten().next_back().unwrap().0;
    fs::remove_file(world.target().join(last.path())).unwrap();
    put_line(&world.data(), during);
    let mut follower = world.follow().await;
    world.send(&mut follower).await;
    assert_eq!(world.sent().await, world.rows);
}

#[tokio::test]
async fn a_copy_of_the_data_directory_begins_a_line_of_its_own() {
    let mut world = World::new();
    let mut follower = world.follow().await;
    let copied = line_of(&world.data());
    world.put(1, 1, "a").await;
    world.send(&mut follower).await;
    drop(follower);
    fs::write(world.data().join(FOLDER).join("LINE"), copied).unwrap();
    let follower = world.follow().await;
    let lines = world.windows().await;
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[follower.line.id()].len(), 1, "it begins at the end of what is committed");
}

#[tokio::test]
async fn a_line_whose_windows_are_missing_at_the_target_ends() {
    let mut world = World::new();
    let mut follower = world.follow().await;
    let first = follower.line.id().to_owned();
    for number in 0..3 {
        world.put(1, number, "a").await;
        world.send(&mut follower).await;
    }
    let windows = follower.sender.windows_of(&first, 0).await.unwrap();
    assert_eq!(follower.sender.needed(windows, (&first, 4)).await.unwrap(), Some(0));
    let path = world.windows().await[&first][1].0.path();
    fs::remove_file(world.target().join(path)).unwrap();
    // As if the last look was long ago.
    follower.checked = Instant::now().checked_sub(CHECKS_EVERY).unwrap();
    follower.step(&mut output()).await.unwrap();
    assert_ne!(follower.line.id(), first);
    let second = follower.line.id().to_owned();
    drop(follower);
    assert_eq!(world.follow().await.line.id(), second, "it goes on after a restart");
    let path = world.windows().await[&second][0].0.path();
    fs::remove_file(world.target().join(path)).unwrap();
    assert_ne!(world.follow().await.line.id(), second, "and not where it is not whole");
}

#[tokio::test]
async fn what_the_server_gave_up_is_a_gap_and_the_line_after_it_goes_on() {
    let mut world = World::new();
    let mut follower = world.follow().await;
    let first = follower.line.id().to_owned();
    world.put(1, 1, "a").await;
    world.epoch += 1;
    world.note();
    follower.step(&mut output()).await.unwrap();
    let second = follower.line.id().to_owned();
    assert_ne!(first, second);
    world.put(1, 2, "b").await;
    world.send(&mut follower).await;
    let lines = world.windows().await;
    assert_eq!(lines[&first].len(), 1, "an empty one");
    let groups: usize = lines[&second].iter().map(|(_, window)| window.groups.len()).sum();
    assert_eq!(groups, 1, "the change behind the gap");
}

#[tokio::test]
async fn journals_that_are_no_longer_linked_are_a_gap() {
    let mut world = World::new();
    drop(world.follow().await);
    // Until a second journal is begun; the database compresses values.
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()
    };
    for number in 0..24 {
        let value: Vec<u8> = (0..512 * 1024).flat_map(|_| noise()).collect();
        world.put(1, number, value).await;
    }
    let end = world.note();
    drop_links(&world.data().join(FOLDER), end.position().unwrap()).unwrap();
    let mut follower = world.follow().await;
    world.put(1, 1, "after").await;
    world.send(&mut follower).await;
    assert_eq!(world.windows().await.len(), 2);
    assert_eq!(world.windows().await[follower.line.id()].len(), 2);
}

#[tokio::test]
async fn a_change_of_many_megabytes_goes_over_windows_and_a_resumed_command_goes_on_within_it() {
    let mut world = World::new();
    let mut follower = world.follow().await;
    let key = |number: u8| Bytes::from(vec![1, number]);
    let value = |number: u8| Bytes::from(vec![number; 3 * 1024 * 1024]);
    let mut spec = ChangeSpec::new(Domain::of_key(&key(0), key_domain));
    for number in 1..9 {
        spec.also(Domain::of_key(&key(number), key_domain), Lock::Exclusive);
    }
    let change = Change::new(spec, move |_, _| {
        let mut writes = Writes::new();
        for number in 0..9 {
            writes.put(key(number), value(number));
        }
        writes
    });
    world.engine.as_ref().unwrap().commit(change).await.unwrap();
    world.rows.extend((0..9).map(|number| (key(number), value(number))));
    world.send(&mut follower).await;
    drop(follower);
    let windows: Vec<_> = world.windows().await.into_values().flatten().collect();
    assert!(windows.len() > 4);
    assert_eq!(world.sent().await, world.rows);

    // As if it had been killed behind the third.
    for (name, _) in &windows[3..] {
        fs::remove_file(world.target().join(name.path())).unwrap();
    }
    let mut noted: ShippedChanges = serde_json::from_slice(&line_of(&world.data())).unwrap();
    let [_, second, third] = [1, 2, 3].map(|index: usize| &windows[index - 1]);
    let changes = [second, third].map(|(_, window)| window.groups[0].changes.len() as u64);
    let start = windows[0].0.clone();
    noted.next.seq = 3;
    noted.next.skip = changes.iter().sum();
    (noted.next.newest, noted.next.at) = (start.to.get(), start.at.get());
    noted.next.position = world.first_position();
    let text = serde_json::to_vec(&noted).unwrap();
    fs::write(world.data().join(FOLDER).join("LINE"), text).unwrap();
    let mut follower = world.follow().await;
    world.send(&mut follower).await;
    assert_eq!(world.sent().await, world.rows);
}

impl World {
    /// The position of the first group of the store.
    fn first_position(&self) -> String {
        let end = self.note();
        let (journal, _) = end.position.split_once(':').unwrap();
        format!("{journal}:0:{:016x}", 0)
    }
}

#[tokio::test]
async fn objects_are_sent_before_the_window_that_names_them() {
    let mut world = World::new();
    let mut follower = world.follow().await;
    fs::write(world.data().join("blob/one-7"), "content").unwrap();
    world.put(7, 1, "one-7").await;
    world.put(7, 2, "missing").await;
    world.note();
    follower.step(&mut output()).await.unwrap();
    follower.gathers_since = None;
    follower.caught_up(&world.note()).await.unwrap();
    assert_eq!(
        follower.sender.missing(),
        [("blob/missing".to_owned(), "it is missing".to_owned())]
    );
    let (name, window) = world.windows().await.into_values().flatten().next_back().unwrap();
    let paths: Vec<_> = window.objects.iter().map(|object| object.path.as_str()).collect();
    assert_eq!((name.parts, paths), (1, vec!["one-7"]));
    let repository = Repository::open(world.target().to_str().unwrap(), None).await.unwrap();
    let names = repository.read(&name.parts_path()).await.unwrap();
    let names = crate::lists::part_names(&names).unwrap();
    assert_eq!(repository.read(&names[0].path()).await.unwrap(), b"content");
}

#[tokio::test(start_paused = true)]
async fn a_second_server_is_refused_while_the_first_sends() {
    let mut first = World::new();
    let follower = std::sync::Mutex::new(Some(first.follow().await));
    let second = World::new();
    fs::copy(first.data().join("store-id"), second.data().join("store-id")).unwrap();
    std::os::unix::fs::symlink(first.target(), second.target()).unwrap();
    first.put(1, 1, "a").await;
    let (refused, ()) = tokio::join!(second.try_follow(), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut follower = follower.lock().unwrap().take().unwrap();
        first.send(&mut follower).await;
    });
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("another server sends its changes to the target"), "{error}");
    assert_eq!(first.windows().await.len(), 1, "the second wrote nothing");
    let _follower = second.follow().await;
    assert_eq!(first.windows().await.len(), 2, "the first is silent");
}
