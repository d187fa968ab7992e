//! Backups of random stores: what is restored, and what is shown, is what there was at the instant.

mod hostile;
mod windows;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use bytes::Bytes;
use clap::Parser as _;
use object_store::GetOptions;
use proptest::prelude::*;
use trestle_command::flags::ClientFlags;
use trestle_kv::{Change, ChangeSpec, Domain, Engine, Entry, Keyspace, Span, Writes, key_domain};
use trestle_kv_fjall::{FjallEngine, FjallOptions, LoggedChange};
use trestle_model::time::Ticks;

use super::*;
use crate::{mount::MountedBackup, names::PartName, repository::Repository};

/// The kind of rows that name an object: their value is its path.
const NAMES_OBJECT: u8 = 7;
/// The kind of rows that no restored store has.
const LEFT_OUT: u8 = 8;

type Rows = BTreeMap<Bytes, Bytes>;

#[derive(clap::Parser)]
struct Line {
    #[command(subcommand)]
    command: BackupCommand,
}

pub(crate) fn rules() -> StoreRules {
    let keyspace = |name, kinds| Keyspace { name, kinds, domain: key_domain };
    StoreRules {
        keyspaces: vec![keyspace("first", 1..=4), keyspace("second", 5..=9)],
        objects_of: |row| {
            let path = String::from_utf8_lossy(&row.value).into_owned();
            let names = row.key.first() == Some(&NAMES_OBJECT);
            let length = path.rsplit_once('-').and_then(|(_, length)| length.parse().ok());
            let name = ObjectName { area: ObjectAreaName::Blobs, path };
            let object = NamedObject { name, bytes: length.unwrap_or_default() };
            Ok(names.then_some(object).into_iter().collect())
        },
        restored: |row| Ok(Some(row).filter(|row| row.key.first() != Some(&LEFT_OUT))),
        store_id: |data_dir| {
            let path = data_dir.join("store-id");
            if !path.exists() {
                fs::write(&path, data_dir.display().to_string())?;
            }
            fs::read_to_string(path)
        },
        engine_dir: "kv",
    }
}

/// A data directory beside a target.
struct World {
    folder: tempfile::TempDir,
    /// What the store has, and its objects by their paths.
    rows: Rows,
    objects: BTreeMap<String, Bytes>,
    key: Option<(String, String)>,
    /// The changes that were committed, each with its version.
    log: Vec<(Ticks, LoggedChange)>,
}

/// What was there at the instant of a backup.
struct Made {
    id: String,
    rows: Rows,
    objects: BTreeMap<String, Bytes>,
}

impl World {
    async fn new(is_encrypted: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (rows, objects) = (Rows::new(), BTreeMap::new());
        let mut world = Self { folder, rows, objects, key: None, log: Vec::new() };
        if is_encrypted {
            let (secret, public) = (world.path("secret"), world.path("public"));
            world.run(&["keygen", &secret]).await.unwrap();
            let text = fs::read_to_string(&secret).unwrap();
            let (_, key) = text.lines().next().unwrap().rsplit_once(' ').unwrap();
            fs::write(&public, key).unwrap();
            world.key = Some((secret, public));
        }
        fs::create_dir_all(world.path("data/blob")).unwrap();
        world
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    async fn run(&self, args: &[&str]) -> Result<(), CliError> {
        let line = Line::try_parse_from([&["backup"], args].concat()).unwrap();
        let mut output = ClientFlags::default().output();
        output.quiet = true;
        run(line.command, rules(), &output).await
    }

    /// With the key, if there is one.
    async fn read(&self, args: &[&str]) -> Result<(), CliError> {
        let key = self.key.as_ref().map(|(secret, _)| ["--decrypt", secret]);
        self.run(&[args, key.as_ref().map_or(&[][..], |key| key)].concat()).await
    }

    /// Writes rows, deletes others, and adds an object for each row that names one.
    async fn change(&mut self, puts: &[(u8, u8, u16)], deletes: &[(u8, u8)]) {
        let engine = self.open("data");
        let mut writes = Vec::new();
        for (kind, number, length) in puts {
            let key = Bytes::from(vec![*kind, *number]);
            let value = match *kind {
                NAMES_OBJECT => {
                    let path = format!("{number:02x}-{length}");
                    let content = Bytes::from(vec![*number; usize::from(*length)]);
                    fs::write(self.path(&format!("data/blob/{path}")), &content).unwrap();
                    self.objects.insert(path.clone(), content);
                    Bytes::from(path)
                }
                _ => Bytes::from(vec![*number; usize::from(*length)]),
            };
            self.rows.insert(key.clone(), value.clone());
            writes.push((key, Some(value)));
        }
        for (kind, number) in deletes {
            let key = Bytes::from(vec![*kind, *number]);
            self.rows.remove(&key);
            writes.push((key, None));
        }
        for (key, value) in writes {
            let spec = ChangeSpec::new(Domain::of_key(&key, key_domain));
            let logged = match value.clone() {
                Some(value) => LoggedChange::Put(Entry { key: key.clone(), value }),
                None => LoggedChange::Delete(key.clone()),
            };
            let change = Change::new(spec, move |_, _| {
                let mut writes = Writes::new();
                match &value {
                    Some(value) => writes.put(key.clone(), value.clone()),
                    None => writes.delete(key.clone()),
                };
                writes
            });
            let version = engine.commit(change).await.unwrap();
            self.log.push((version.ticks(), logged));
        }
    }

    fn open(&self, data_dir: &str) -> FjallEngine {
        let path = self.folder.path().join(data_dir).join("kv");
        fs::create_dir_all(&path).unwrap();
        let options =
            FjallOptions { min_free_bytes: 64 << 20, ..FjallOptions::new(path, rules().keyspaces) };
        FjallEngine::open(options).unwrap()
    }

    async fn create(&self) -> Result<(), CliError> {
        let (target, data) = (self.path("target"), self.path("data"));
        let key = self.key.as_ref().map(|(_, public)| ["--encrypt", public]);
        let args = ["create", &target, "--data-dir", &data, "--max-rate", "0"];
        self.run(&[&args[..], key.as_ref().map_or(&[][..], |key| key)].concat()).await
    }

    async fn made(&self) -> Made {
        self.create().await.unwrap();
        let repository = Repository::open(&self.path("target"), None).await.unwrap();
        let id = repository.id(None).await.unwrap();
        self.now(id)
    }

    /// What there is now.
    fn now(&self, id: String) -> Made {
        let named = |path: &String| self.rows.values().any(|value| value == path.as_bytes());
        let objects = self.objects.iter().filter(|(path, _)| named(path));
        let objects = objects.map(|(path, content)| (path.clone(), content.clone())).collect();
        Made { id, rows: self.rows.clone(), objects }
    }

    async fn mount(&self, id: &str) -> MountedBackup {
        self.try_mount(["--backup-id", id]).await.unwrap()
    }

    async fn try_mount(&self, which: [&str; 2]) -> Result<MountedBackup, CliError> {
        #[derive(clap::Parser)]
        struct Mount {
            #[command(flatten)]
            args: MountArgs,
        }
        let target = self.path("target");
        let key = self.key.as_ref().map(|(secret, _)| ["--decrypt", secret]);
        let args = ["serve", "--backup", &target];
        let args = [&args[..], &which, key.as_ref().map_or(&[][..], |key| key)].concat();
        // What the flags of `serve` have.
        let command = <Mount as clap::CommandFactory>::command()
            .arg(clap::Arg::new("data_dir").long("data-dir"))
            .arg(clap::Arg::new("ephemeral").long("ephemeral"));
        let matches = command.try_get_matches_from(args).unwrap();
        let mount = <Mount as clap::FromArgMatches>::from_arg_matches(&matches).unwrap();
        Ok(mount.args.open(rules()).await?.unwrap())
    }

    /// The names of the parts at the target.
    async fn parts(&self) -> BTreeSet<PartName> {
        let repository = Repository::open(&self.path("target"), None).await.unwrap();
        let parts = repository.list("parts").await.unwrap();
        parts.iter().map(|part| PartName::of_path(part.location.as_ref()).unwrap()).collect()
    }

    async fn check(&self, made: &Made, index: usize) {
        let (target, copy) = (self.path("target"), format!("copy-{index}"));
        let data = self.path(&copy);
        self.read(&["restore", &target, "--id", &made.id, "--data-dir", &data]).await.unwrap();
        let expected = self.check_restored(made, &copy).await;

        self.check_shown(&self.mount(&made.id).await, made, &expected).await;
    }

    /// Compares a backup that is shown with what there was, and with the rows that a restored store has.
    async fn check_shown(&self, mounted: &MountedBackup, made: &Made, expected: &Rows) {
        assert_eq!(&all(&mounted.engine).await, expected);
        for (path, content) in &made.objects {
            let path = object_store::path::Path::from(path.as_str());
            let found = mounted.objects.blobs.store.get_opts(&path, GetOptions::default());
            assert_eq!(found.await.unwrap().bytes().await.unwrap(), content);
        }
    }

    /// Compares a restored directory with what there was. Returns the rows that it has.
    async fn check_restored(&self, made: &Made, copy: &str) -> Rows {
        let expected: Rows = made
            .rows
            .iter()
            .filter(|(key, _)| key[0] != LEFT_OUT)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        assert_eq!(all(&self.open(copy)).await, expected);
        let restored: BTreeMap<_, _> = fs::read_dir(self.path(&format!("{copy}/blob")))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, Bytes::from(fs::read(path).unwrap()))
            })
            .collect();
        assert_eq!(restored, made.objects);
        expected
    }
}

/// Every row of an engine.
async fn all(engine: &dyn Engine) -> Rows {
    let mut rows = Rows::new();
    for kind in 1..=9 {
        let span = Span::prefix(&[kind]);
        let scan = engine.scan(&span, engine.limits().scan).await.unwrap();
        assert!(!scan.more);
        rows.extend(scan.entries.into_iter().map(|row| (row.key, row.value)));
    }
    rows
}

fn puts() -> impl Strategy<Value = Vec<(u8, u8, u16)>> {
    proptest::collection::vec((1_u8..=9, 0_u8..20, 0_u16..2000), 0..30)
}

fn deletes() -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::vec((1_u8..=9, 0_u8..20), 0..15)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 20, ..ProptestConfig::default() })]
    #[test]
    fn every_backup_has_what_there_was_at_its_instant_and_pruning_leaves_the_others(
        changes in proptest::collection::vec((puts(), deletes()), 1..4),
        is_encrypted in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let (mut world, mut made) = (World::new(is_encrypted).await, Vec::new());
            for (puts, deletes) in &changes {
                world.change(puts, deletes).await;
                made.push(world.made().await);
            }
            let target = world.path("target");
            world.read(&["verify", &target, "--all"]).await.unwrap();
            for (index, made) in made.iter().enumerate() {
                world.check(made, index).await;
            }
            // The same again sends nothing.
            let parts = world.parts().await;
            world.made().await;
            assert_eq!(world.parts().await, parts);

            world.run(&["prune", &target, "--keep-last", "1"]).await.unwrap();
            world.read(&["verify", &target, "--all"]).await.unwrap();
            let last = Made { id: String::new(), ..made.pop().unwrap() };
            let repository = Repository::open(&target, None).await.unwrap();
            let ids = repository.backups().await.unwrap();
            assert_eq!(ids.len(), 1);
            world.check(&Made { id: ids[0].clone(), ..last }, 99).await;
            // What is left is what the last backup names, and no more.
            let manifest = repository.manifest(&ids[0]).await.unwrap();
            let mut named = BTreeSet::new();
            for at in manifest.lists() {
                named.extend([at.list, at.parts]);
                named.extend(verify::part_names(&repository, at).await.unwrap().unwrap());
            }
            assert_eq!(world.parts().await, named);
        });
    }
}

#[tokio::test]
async fn a_row_whose_object_is_missing_or_cut_short_is_damage_and_the_rest_is_backed_up() {
    let mut world = World::new(true).await;
    let objects = [(NAMES_OBJECT, 1, 10), (NAMES_OBJECT, 2, 20), (NAMES_OBJECT, 3, 30)];
    world.change(&[&objects[..], &[(1, 1, 5)]].concat(), &[]).await;
    fs::remove_file(world.path("data/blob/01-10")).unwrap();
    fs::write(world.path("data/blob/03-30"), [3; 29]).unwrap();
    assert!(matches!(world.create().await, Err(CliError::Rejected)));
    let target = world.path("target");
    let repository = Repository::open(&target, None).await.unwrap();
    let id = repository.id(None).await.unwrap();
    let manifest = repository.manifest(&id).await.unwrap();
    assert_eq!((manifest.damage.count, manifest.objects.count, manifest.rows()), (2, 1, 4));
    world.run(&["list", &target]).await.unwrap();
    world.run(&["show", &target]).await.unwrap();
    world.read(&["show", &target]).await.unwrap();
    world.read(&["verify", &target]).await.unwrap();
    let other = World::new(true).await;
    let (secret, _) = other.key.as_ref().unwrap();
    let error = world.run(&["show", &target, "--decrypt", secret]).await.unwrap_err().to_string();
    assert!(error.contains("encrypted for other keys"), "{error}");

    fs::remove_file(world.path("data/blob/02-20")).unwrap();
    let partly = world.create().await;
    assert!(matches!(partly, Err(CliError::Rejected)), "rows are backed up: {partly:?}");
    fs::remove_file(world.path("data/blob/03-30")).unwrap();
    let error = world.create().await.unwrap_err().to_string();
    assert!(error.contains("every object of the data directory is missing"), "{error}");
}

#[tokio::test]
async fn a_target_that_lost_its_backups_is_an_error_until_it_is_begun_anew() {
    let mut world = World::new(false).await;
    world.change(&[(1, 1, 5)], &[]).await;
    world.create().await.unwrap();
    let (target, away) = (world.path("target"), world.path("away"));
    fs::rename(&target, &away).unwrap();
    // With nothing in its place, and with an empty directory.
    assert!(world.create().await.is_err());
    fs::create_dir(&target).unwrap();
    let error = world.create().await.unwrap_err().to_string();
    assert!(error.contains("is it mounted?") && error.contains("backup-targets"), "{error}");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "nothing is made there");
    fs::remove_dir(&target).unwrap();
    fs::rename(&away, &target).unwrap();
    world.create().await.unwrap();

    fs::rename(&target, &away).unwrap();
    fs::remove_file(world.path("data/backup-targets")).unwrap();
    let made = world.made().await;
    world.check(&made, 0).await;
}
