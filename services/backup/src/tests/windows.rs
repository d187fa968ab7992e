//! Restores to an instant: what is restored is what there was then.

use prost::Message as _;
use trestle_kv::Entry;
use trestle_kv_fjall::LoggedChange;
use trestle_model::time::Ticks;

use super::*;
use crate::{
    coverage::{Coverage, NotRestorable},
    lists::{Listed as _, ObjectRef},
    manifest::time_text,
    sealed::Recipients,
    window::{ChangeWindow, WindowCutter, WindowName},
};

/// A store whose changes are at the target as windows, one for each call of `change`.
struct Followed {
    world: World,
    windows: Vec<WindowName>,
    to: Ticks,
    /// The rows and the objects that there were at instants.
    made: Vec<(Ticks, Made)>,
}

fn name_of(path: &str) -> ObjectName {
    ObjectName { area: ObjectAreaName::Blobs, path: path.to_owned() }
}

impl Followed {
    async fn new(is_encrypted: bool) -> Self {
        let world = World::new(is_encrypted).await;
        let next =
            changes::NextWindow { seq: 0, position: String::new(), skip: 0, newest: 0, at: 0 };
        let shipped = ShippedChanges {
            line: "line".to_owned(),
            earlier: Vec::new(),
            run: 0,
            claim: None,
            epoch: 0,
            next,
            writing: None,
        };
        let folder = changes::ChangesFolder::lock(Path::new(&world.path("data"))).unwrap();
        folder.note(&shipped).unwrap();
        Self { world, windows: Vec::new(), to: Ticks::MIN, made: Vec::new() }
    }

    fn put(&self, path: &str, plain: &[u8], is_sealed: bool) {
        let mut part = packed::pack(path, plain, 3);
        if let Some((_, public)) = self.world.key.as_ref().filter(|_| is_sealed) {
            part = Recipients::read(Path::new(public)).unwrap().seal(&part).unwrap();
        }
        let file = self.world.path(&format!("target/{path}"));
        fs::create_dir_all(Path::new(&file).parent().unwrap()).unwrap();
        fs::write(file, part).unwrap();
    }

    /// An object of the store, with its piece at the target.
    fn object(&self, path: &str) -> ObjectRef {
        let parts = names::tests::name(path.as_bytes());
        let content = &self.world.objects[path];
        self.put(&parts.piece(0).path(), content, true);
        ObjectRef::new(&name_of(path), content.len() as u64, parts)
    }

    /// Writes the next window, which ends at an instant after its last version.
    fn window(
        &mut self,
        groups: Vec<window::WindowGroup>,
        objects: Vec<ObjectRef>,
        to: Ticks,
    ) -> Ticks {
        let parts: Vec<_> = objects.iter().flat_map(|object| object.parts().unwrap()).collect();
        let name = WindowName {
            line: "line".to_owned(),
            seq: self.windows.len() as u64,
            from: self.to,
            to,
            at: to.max(self.windows.last().map_or(to, |last| last.at)).plus(1),
            parts: parts.len() as u64,
        };
        let plain = ChangeWindow { groups, objects }.encode_to_vec();
        self.put(&name.path(), &plain, true);
        if !parts.is_empty() {
            let names: Vec<u8> = parts.iter().flat_map(|part| part.bytes().to_vec()).collect();
            self.put(&name.parts_path(), &names, false);
        }
        self.to = to;
        self.windows.push(name.clone());
        name.at
    }

    /// Changes the store and writes what was changed. Remembers what there is afterwards, by the end of the window.
    async fn change(&mut self, puts: &[(u8, u8, u16)], deletes: &[(u8, u8)]) -> Ticks {
        let logged = self.world.log.len();
        self.world.change(puts, deletes).await;
        let (mut cutter, mut objects) = (WindowCutter::default(), Vec::new());
        let logged = self.world.log.split_off(logged);
        for (version, change) in &logged {
            if let LoggedChange::Put(row) = change
                && row.key[0] == NAMES_OBJECT
            {
                objects.push(self.object(std::str::from_utf8(&row.value).unwrap()));
            }
            assert!(cutter.push(*version, [change.clone()]).is_empty());
        }
        let to = logged.last().map_or(self.to, |(version, _)| *version);
        let at = self.window(cutter.cut(), objects, to);
        let made = self.world.now(String::new());
        self.made.push((at, made));
        at
    }

    async fn restore(&self, to: &str, copy: &str) -> Result<(), CliError> {
        let (target, data) = (self.world.path("target"), self.world.path(copy));
        self.world.read(&["restore", &target, "--to", to, "--data-dir", &data]).await
    }

    async fn error(&self, to: &str) -> String {
        let _ = fs::remove_dir_all(self.world.path("failed"));
        let error = self.restore(to, "failed").await.unwrap_err().to_string();
        let data = self.world.path("failed");
        let shown = self.world.try_mount(["--backup-to", to]).await.err().unwrap().to_string();
        assert_eq!(shown, error);
        let is_open = Path::new(&data).exists() && !Path::new(&data).join(RESTORING).exists();
        assert!(!is_open, "{error}");
        error
    }
}

#[tokio::test]
async fn every_instant_after_a_backup_is_restored_as_it_was() {
    for is_encrypted in [false, true] {
        let mut store = Followed::new(is_encrypted).await;
        store.change(&[(1, 1, 5), (6, 2, 7)], &[]).await;
        store.world.made().await;
        store.change(&[(NAMES_OBJECT, 3, 9), (NAMES_OBJECT, 4, 9)], &[]).await;
        let earlier = std::mem::take(&mut store.made).pop().unwrap();
        store.world.made().await;
        store.window(Vec::new(), Vec::new(), store.to);
        store.restore(&time_text(earlier.0), "earlier").await.unwrap();
        store.world.check_restored(&earlier.1, "earlier").await;
        store.change(&[(1, 1, 9), (LEFT_OUT, 1, 9), (NAMES_OBJECT, 5, 20)], &[(6, 2)]).await;
        store.change(&[(6, 2, 1)], &[(NAMES_OBJECT, 4), (1, 1)]).await;
        store.change(&[(1, 3, 3)], &[(NAMES_OBJECT, 5)]).await;
        for (index, (at, made)) in store.made.iter().enumerate() {
            let copy = format!("copy-{index}");
            store.restore(&time_text(*at), &copy).await.unwrap();
            let rows = store.world.check_restored(made, &copy).await;
            let shown = store.world.try_mount(["--backup-to", &time_text(*at)]).await.unwrap();
            assert_eq!((shown.instant.as_str(), shown.engine.now()), (&*time_text(*at), *at));
            store.world.check_shown(&shown, made, &rows).await;
        }
        store.restore("latest", "latest").await.unwrap();
        store.world.check_restored(&store.made.last().unwrap().1, "latest").await;
        let target = store.world.path("target");
        store.world.run(&["list", &target]).await.unwrap();
        store.world.run(&["show", &target]).await.unwrap();
    }
}

#[tokio::test]
async fn versions_of_a_restored_store_go_on_after_the_instant() {
    let mut store = Followed::new(false).await;
    store.change(&[(1, 1, 5)], &[]).await;
    store.world.made().await;
    let at = store.change(&[(1, 2, 5)], &[]).await;
    // As if the store that was lost had a clock that was far ahead.
    let ahead = at.after(std::time::Duration::from_secs(3600));
    let mut cutter = WindowCutter::default();
    let row = Entry { key: vec![1, 3].into(), value: Bytes::new() };
    cutter.push(ahead, [LoggedChange::Put(row)]);
    store.window(cutter.cut(), Vec::new(), ahead);
    store.restore("latest", "copy").await.unwrap();
    let engine = store.world.open("copy");
    assert!(engine.now() > ahead);
    assert_eq!(all(&engine).await.len(), 3);
}

#[tokio::test]
async fn an_instant_before_the_first_backup_in_a_gap_or_after_the_end_is_an_error() {
    let mut store = Followed::new(false).await;
    let early = store.change(&[(1, 1, 5)], &[]).await;
    store.world.made().await;
    let at = store.change(&[(1, 2, 5)], &[]).await;
    let end = store.change(&[(1, 3, 5)], &[]).await;
    for to in [early.before(std::time::Duration::from_secs(9)), end.plus(1)] {
        let to = time_text(to);
        let error = store.error(&to).await;
        assert!(error.contains(&format!("to=`{to}`")), "{error}");
        assert!(error.contains(&format!("to {}", time_text(end))), "{error}");
    }
    fs::remove_file(store.world.path(&format!("target/{}", store.windows[2].path()))).unwrap();
    let error = store.error(&time_text(end)).await;
    assert!(error.contains(&format!("to {}", time_text(at))), "{error}");
    store.restore(&time_text(at), "copy").await.unwrap();
    store.world.check_restored(&store.made[1].1, "copy").await;

    fs::remove_dir_all(store.world.path("target/changes")).unwrap();
    let error = store.error("latest").await;
    assert!(error.contains(&NotRestorable::NoRange.to_string()), "{error}");
}

#[tokio::test]
async fn a_window_that_is_changed_or_foreign_is_named_with_the_last_instant_before_it() {
    let mut store = Followed::new(true).await;
    store.change(&[(1, 1, 5)], &[]).await;
    store.world.made().await;
    let at = store.change(&[(1, 2, 5)], &[]).await;
    let end = store.change(&[(1, 3, 5)], &[]).await;
    let path = store.windows[2].path();
    let file = store.world.path(&format!("target/{path}"));
    let whole = fs::read(&file).unwrap();
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    let other = fs::read(store.world.path(&format!("target/{}", store.windows[1].path()))).unwrap();
    let plain = packed::pack(&path, &ChangeWindow::default().encode_to_vec(), 0);
    for (bytes, rule) in [
        (changed, "it was changed since it was written"),
        (other, "it was changed since it was written"),
        (plain, "it is not encrypted, and the backup is"),
    ] {
        fs::write(&file, bytes).unwrap();
        let error = store.error(&time_text(end)).await;
        assert!(error.contains(&path) && error.contains(rule), "{error}");
        assert!(error.ends_with(&format!("before it is {}", time_text(at))), "{error}");
    }
    // It is not needed for an instant before it.
    store.restore(&time_text(at), "copy").await.unwrap();
    store.world.check_restored(&store.made[1].1, "copy").await;
    fs::write(&file, whole).unwrap();
    store.restore(&time_text(end), "whole").await.unwrap();
}

#[tokio::test]
async fn an_object_that_only_rows_name_is_damage_and_the_rest_is_restored() {
    let mut store = Followed::new(false).await;
    store.change(&[(1, 1, 5)], &[]).await;
    store.world.made().await;
    store.change(&[(NAMES_OBJECT, 1, 8)], &[]).await;
    let row = Entry { key: vec![NAMES_OBJECT, 2].into(), value: Bytes::from_static(b"lost") };
    let (mut cutter, to) = (WindowCutter::default(), store.to.plus(10));
    cutter.push(to, [LoggedChange::Put(row)]);
    store.window(cutter.cut(), Vec::new(), to);
    assert!(matches!(store.restore("latest", "copy").await, Err(CliError::Rejected)));
    assert_eq!(all(&store.world.open("copy")).await.len(), 3);
    assert_eq!(fs::read(store.world.path("copy/blob/01-8")).unwrap(), [1; 8]);
}

#[tokio::test]
async fn an_object_of_another_length_than_its_row_tells_is_damage_and_the_rest_is_restored() {
    let mut store = Followed::new(false).await;
    store.change(&[(1, 1, 5)], &[]).await;
    store.world.made().await;
    store.change(&[(NAMES_OBJECT, 1, 8)], &[]).await;
    let value = Bytes::from_static(b"02-9");
    let row = Entry { key: vec![NAMES_OBJECT, 2].into(), value };
    let name = ObjectName { area: ObjectAreaName::Blobs, path: "02-9".to_owned() };
    // Its pieces are whole: those of the other object.
    let object = ObjectRef::new(&name, 8, names::tests::name(b"01-8"));
    let (mut cutter, to) = (WindowCutter::default(), store.to.plus(10));
    cutter.push(to, [LoggedChange::Put(row)]);
    store.window(cutter.cut(), vec![object], to);
    assert!(matches!(store.restore("latest", "copy").await, Err(CliError::Rejected)));
    assert_eq!(all(&store.world.open("copy")).await.len(), 3);
    assert_eq!(fs::read(store.world.path("copy/blob/01-8")).unwrap(), [1; 8]);
    assert!(!Path::new(&store.world.path("copy/blob/02-9")).exists());
}

#[tokio::test]
async fn an_object_with_a_damaged_part_is_left_out_and_the_rest_is_restored() {
    for is_encrypted in [false, true] {
        let mut store = Followed::new(is_encrypted).await;
        store.world.change(&[(2, 2, 2)], &[]).await;
        store.world.made().await;
        store.change(&[(1, 1, 5), (NAMES_OBJECT, 1, 8), (NAMES_OBJECT, 2, 9)], &[]).await;
        let made = store.world.made().await;
        store.change(&[(NAMES_OBJECT, 3, 7)], &[]).await;
        let piece = names::tests::name(b"03-7").piece(0).path();
        fs::write(store.world.path(&format!("target/{piece}")), "damaged").unwrap();
        assert!(matches!(store.restore("latest", "latest").await, Err(CliError::Rejected)));
        assert_eq!(all(&store.world.open("latest")).await.len(), 5);
        assert_eq!(fs::read(store.world.path("latest/blob/02-9")).unwrap(), [2; 9]);
        assert!(!Path::new(&store.world.path("latest/blob/03-7")).exists());
        assert!(!Path::new(&store.world.path("latest/RESTORING")).exists());

        // And one of the backup.
        let target = store.world.path("target");
        let keys = store.world.key.as_ref().map(|(secret, _)| secret.into());
        let keys = sealed::Identities::read_if_named(keys).await.unwrap();
        let repository = Repository::open(&target, keys).await.unwrap();
        let manifest = repository.open_backup(Some(&made.id), &rules().keyspaces).await.unwrap();
        let objects: Vec<ObjectRef> =
            verify::entries(&repository, &manifest.objects.lists).await.unwrap();
        let object = objects.iter().find(|object| object.path == "01-8").unwrap();
        let part = object.parts().unwrap().remove(0).path();
        fs::remove_file(store.world.path(&format!("target/{part}"))).unwrap();
        let verified = verify::piece(&repository, object, (0, 0)).await.unwrap().unwrap_err();
        assert_eq!(verified.reason, "it is missing: it is of object `blob/01-8`");
        let data = store.world.path("base");
        let restored = ["restore", &target, "--id", &made.id, "--data-dir", &data];
        assert!(matches!(store.world.read(&restored).await, Err(CliError::Rejected)));
        assert_eq!(all(&store.world.open("base")).await.len(), 4);
        assert_eq!(fs::read(store.world.path("base/blob/02-9")).unwrap(), [2; 9]);
        assert!(!Path::new(&store.world.path("base/blob/01-8")).exists());
    }
}

#[tokio::test]
async fn a_window_is_what_its_name_promises() {
    let mut store = Followed::new(false).await;
    store.change(&[(1, 1, 5)], &[]).await;
    let repository = Repository::create(&store.world.path("target"), "a", None).await;
    drop(repository);
    let name = store.windows[0].clone();
    let path = store.world.path(&format!("target/{}", name.path()));
    let plain = packed::unpack(&name.path(), &fs::read(path).unwrap()).unwrap();
    let whole = ChangeWindow::decode(&*plain).unwrap();
    assert_eq!(whole.check(&name), Ok(()));
    let changed = |change: fn(&mut ChangeWindow)| {
        let mut window = whole.clone();
        change(&mut window);
        window.check(&name).unwrap_err()
    };
    assert!(changed(|it| it.groups[0].version += 1).contains("after its name"));
    assert!(changed(|it| it.groups[0].version = 0).contains("do not ascend"));
    assert!(changed(|it| it.groups[0].is_continued = true).contains("as whole"));
    assert!(changed(|it| it.groups.extend(it.groups.clone())).contains("do not ascend"));
    let object = |it: &mut ChangeWindow| {
        it.objects.push(ObjectRef::new(&name_of("a"), 1, names::tests::name(b"a")));
    };
    assert!(changed(object).contains("another number of pieces"));
}

#[tokio::test]
async fn a_backup_without_its_newest_version_is_restored_and_leads_nowhere() {
    let mut store = Followed::new(false).await;
    store.change(&[(1, 1, 5)], &[]).await;
    let made = store.world.made().await;
    store.change(&[(1, 2, 5)], &[]).await;
    let target = store.world.path("target");
    let repository = Repository::open(&target, None).await.unwrap();
    let path = repository::manifest_path(&made.id);
    let file = store.world.path(&format!("target/{path}"));
    let manifest = packed::unpack(&path, &fs::read(&file).unwrap()).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert!(manifest["newest"].as_u64().unwrap() <= manifest["at"].as_u64().unwrap());
    manifest.as_object_mut().unwrap().remove("newest");
    fs::write(&file, packed::pack(&path, &serde_json::to_vec(&manifest).unwrap(), 0)).unwrap();
    let coverage = Coverage::new(repository.windows().await.unwrap());
    let manifest = repository.manifest(&made.id).await.unwrap();
    assert_eq!((manifest.newest, coverage.until_text(&manifest)), (None, None));
    store.error("latest").await;
    store.world.check(&made, 0).await;
}

/// Sets the time of every file of the target below a folder to long ago.
fn age(folder: &Path) {
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => age(&path),
            false => fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap(),
        }
    }
}

impl Followed {
    fn age(&self) {
        for folder in ["target/changes", "target/parts"] {
            age(Path::new(&self.world.path(folder)));
        }
    }

    async fn prune(&self, rest: &[&str]) -> Result<(), CliError> {
        let target = self.world.path("target");
        self.world.run(&[&["prune", &target, "--keep-last", "1"], rest].concat()).await
    }

    fn has(&self, window: usize) -> bool {
        Path::new(&self.world.path(&format!("target/{}", self.windows[window].path()))).exists()
    }

    /// Whether the piece of an object is at the target.
    fn has_piece(&self, path: &str) -> bool {
        let piece = names::tests::name(path.as_bytes()).piece(0).path();
        Path::new(&self.world.path(&format!("target/{piece}"))).exists()
    }
}

#[tokio::test]
async fn a_prune_deletes_the_windows_before_kept_backups_and_the_parts_that_only_they_name() {
    let mut store = Followed::new(false).await;
    store.change(&[(1, 1, 5)], &[]).await;
    store.world.made().await;
    store.change(&[(NAMES_OBJECT, 1, 8)], &[]).await;
    store.change(&[(1, 2, 1)], &[(NAMES_OBJECT, 1)]).await;
    store.world.made().await;
    store.change(&[(NAMES_OBJECT, 2, 8)], &[]).await;
    store.change(&[(1, 2, 2)], &[(NAMES_OBJECT, 2)]).await;
    let all = |store: &Followed| (0..5).map(|index| store.has(index)).collect::<Vec<_>>();
    // Young ones stay, and so do parts that nothing names yet.
    store.prune(&["--dry-run"]).await.unwrap();
    store.prune(&[]).await.unwrap();
    assert!(all(&store) == [true; 5] && store.has_piece("01-8"));

    store.age();
    store.prune(&["--dry-run"]).await.unwrap();
    assert!(all(&store) == [true; 5] && store.has_piece("01-8"), "a dry run deletes nothing");
    store.prune(&[]).await.unwrap();
    assert_eq!(all(&store), [false, false, true, true, true]);
    assert!(!store.has_piece("01-8") && store.has_piece("02-8"));
    let names = store.world.path(&format!("target/{}", store.windows[1].parts_path()));
    assert!(!Path::new(&names).exists());
    for (index, (at, made)) in store.made.iter().enumerate().skip(3) {
        let copy = format!("copy-{index}");
        store.restore(&time_text(*at), &copy).await.unwrap();
        store.world.check_restored(made, &copy).await;
    }
}

#[tokio::test]
async fn a_kept_window_without_the_names_of_its_parts_stops_a_prune() {
    let mut store = Followed::new(false).await;
    store.change(&[(1, 1, 5)], &[]).await;
    store.world.made().await;
    store.change(&[(NAMES_OBJECT, 1, 8)], &[]).await;
    let path = store.windows[1].parts_path();
    store.put(&path, &[7; 64], false);
    store.age();
    let error = store.prune(&[]).await.unwrap_err().to_string();
    assert!(error.contains("another number of names"), "{error}");
    fs::remove_file(store.world.path(&format!("target/{path}"))).unwrap();
    let error = store.prune(&[]).await.unwrap_err().to_string();
    assert!(error.contains(&path) && error.contains("it is missing"), "{error}");
    assert!(store.has(0) && store.has_piece("01-8"), "nothing was deleted");
}

impl Followed {
    async fn is_verified(&self, rest: &[&str]) -> bool {
        let target = self.world.path("target");
        match self.world.read(&[&["verify", &target], rest].concat()).await {
            Ok(()) => true,
            Err(CliError::Rejected) => false,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn verify_reads_the_windows_after_a_backup_and_the_pieces_of_their_objects() {
    for is_encrypted in [false, true] {
        let mut store = Followed::new(is_encrypted).await;
        store.change(&[(1, 1, 5)], &[]).await;
        let first = store.world.made().await;
        store.change(&[(NAMES_OBJECT, 1, 8), (1, 1, 2)], &[]).await;
        store.world.made().await;
        store.change(&[(1, 2, 1)], &[]).await;
        assert!(store.is_verified(&[]).await && store.is_verified(&["--all"]).await);
        let piece = names::tests::name(b"01-8").piece(0).path();
        let (window, last) = (store.windows[1].clone(), store.windows[2].path());
        for path in [window.path(), window.parts_path(), piece, last] {
            let file = store.world.path(&format!("target/{path}"));
            let whole = fs::read(&file).unwrap();
            fs::write(&file, &whole[..whole.len() - 1]).unwrap();
            assert!(!store.is_verified(&["--all"]).await, "{path}");
            assert!(!store.is_verified(&["--id", &first.id]).await, "{path}");
            fs::write(&file, whole).unwrap();
        }
        // Names of other pieces, as many as there should be: a prune would keep those.
        let file = store.world.path(&format!("target/{}", window.parts_path()));
        let whole = fs::read(&file).unwrap();
        store.put(&window.parts_path(), &[7; 32], false);
        assert!(!store.is_verified(&["--all"]).await);
        fs::write(&file, whole).unwrap();
        assert!(store.is_verified(&["--all"]).await);
    }
}
