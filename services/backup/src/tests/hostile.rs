//! Targets that another one can write.

use super::*;
use crate::{lists::ChunkRef, manifest::BackupManifest};

/// A manifest with one change.
fn changed(manifest: &serde_json::Value, change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut manifest = manifest.clone();
    change(&mut manifest);
    serde_json::to_vec(&manifest).unwrap()
}

#[tokio::test]
async fn a_manifest_that_anyone_wrote_is_an_error_and_nothing_is_restored() {
    let mut world = World::new(false).await;
    world.change(&[(1, 1, 5), (6, 2, 7), (NAMES_OBJECT, 3, 9)], &[]).await;
    let made = world.made().await;
    let target = world.path("target");
    let file = world.path(&format!("target/backups/{}.manifest", made.id));
    let path = repository::manifest_path(&made.id);
    let whole = packed::unpack(&path, &fs::read(&file).unwrap()).unwrap();
    let whole: serde_json::Value = serde_json::from_slice(&whole).unwrap();
    let name = "00".repeat(32);
    let changes: [(&str, Vec<u8>); 12] = [
        ("no JSON", b"{".to_vec()),
        ("another format", changed(&whole, |it| it["format"] = 1.into())),
        ("no number", changed(&whole, |it| it["at"] = "x".into())),
        ("no time", changed(&whole, |it| it["at"] = u64::MAX.into())),
        ("another id", changed(&whole, |it| it["id"] = "x".into())),
        ("more rows", changed(&whole, |it| it["keyspaces"][0]["rows"] = u64::MAX.into())),
        ("another keyspace", changed(&whole, |it| it["keyspaces"][0]["name"] = "x".into())),
        ("other kinds", changed(&whole, |it| it["keyspaces"][0]["last_kind"] = 9.into())),
        ("no name", changed(&whole, |it| it["objects"]["lists"][0]["list"] = "../x".into())),
        ("absent", changed(&whole, |it| it["objects"]["lists"][0]["list"] = name.clone().into())),
        (
            "another list",
            changed(&whole, |it| {
                it["keyspaces"][0]["lists"] = it["keyspaces"][1]["lists"].clone();
            }),
        ),
        ("deep", [b"[".repeat(100_000), b"]".repeat(100_000)].concat()),
    ];
    for (what, text) in changes {
        fs::write(&file, packed::pack(&path, &text, 0)).unwrap();
        // What this version has is known to a restore alone.
        let is_of_version = what == "another keyspace" || what == "other kinds";
        assert_eq!(world.run(&["verify", &target]).await.is_err(), !is_of_version, "{what}");
        let data = world.path("restored");
        assert!(world.run(&["restore", &target, "--data-dir", &data]).await.is_err(), "{what}");
        let restored = Path::new(&data);
        assert!(!restored.exists() || restored.join(RESTORING).exists(), "{what}");
        world.run(&["list", &target]).await.unwrap();
    }
}

/// A backup whose manifest is written again.
struct Forged {
    world: World,
    made: Made,
    manifest: BackupManifest,
}

impl Forged {
    async fn new(is_encrypted: bool) -> Self {
        let mut world = World::new(is_encrypted).await;
        world.change(&[(1, 1, 5), (6, 2, 7), (NAMES_OBJECT, 3, 9)], &[]).await;
        let made = world.made().await;
        let repository = Repository::open(&world.path("target"), None).await.unwrap();
        let manifest = repository.manifest(&made.id).await.unwrap();
        Self { world, made, manifest }
    }

    /// Writes the manifest as that of an id.
    fn write(&self, id: &str) {
        let file = self.world.path(&format!("target/backups/{id}.manifest"));
        let manifest = BackupManifest { id: id.to_owned(), ..self.manifest.clone() };
        let text = serde_json::to_vec(&manifest).unwrap();
        fs::write(file, packed::pack(&repository::manifest_path(id), &text, 0)).unwrap();
    }

    fn file_of(&self, name: PartName) -> String {
        self.world.path(&format!("target/{}", name.path()))
    }

    async fn fails(&self, args: &[&str]) -> String {
        let target = self.world.path("target");
        let args = [&[args[0], &target], &args[1..]].concat();
        self.world.read(&args).await.unwrap_err().to_string()
    }

    async fn prune(&self) -> Result<(), CliError> {
        self.world.run(&["prune", &self.world.path("target"), "--keep-last", "1"]).await
    }
}

#[tokio::test]
async fn a_manifest_of_another_store_is_of_no_use_and_stops_a_prune() {
    let mut forged = Forged::new(false).await;
    forged.manifest.store_id = "another".to_owned();
    forged.write("99991129t000000000z-00000000");
    let restored = forged.world.path("restored");
    let error = forged.fails(&["restore", "--data-dir", &restored]).await;
    assert!(error.contains("of another data directory: store_id=`another`"), "{error}");
    assert!(!Path::new(&restored).exists());
    forged.fails(&["verify", "--all"]).await;
    let error = forged.prune().await.unwrap_err().to_string();
    assert!(error.contains("of another data directory"), "{error}");
    forged.world.check(&forged.made, 0).await;
}

#[tokio::test]
async fn a_manifest_of_the_future_replaces_no_backup() {
    let mut forged = Forged::new(false).await;
    forged.manifest.at = Ticks::MAX.get() - 1;
    forged.write("99991129t000000000z-00000000");
    forged.prune().await.unwrap();
    forged.world.check(&forged.made, 0).await;
}

#[tokio::test]
async fn a_list_that_names_no_parts_deletes_none() {
    for index in [0, 1] {
        let mut forged = Forged::new(false).await;
        let name = names::tests::name(b"none");
        let file = forged.file_of(name);
        fs::create_dir_all(Path::new(&file).parent().unwrap()).unwrap();
        fs::write(&file, packed::pack(&name.path(), b"", 0)).unwrap();
        match index {
            0 => forged.manifest.keyspaces[1].lists[0].parts = name,
            _ => forged.manifest.objects.lists[0].parts = name,
        }
        forged.write(&forged.made.id);
        let error = forged.prune().await.unwrap_err().to_string();
        assert!(error.contains("name fewer parts than it has"), "{error}");
        forged.fails(&["verify"]).await;
        forged.world.check(&forged.made, 0).await;
    }
}

#[tokio::test]
async fn a_part_that_is_not_encrypted_is_none_of_an_encrypted_backup() {
    let forged = Forged::new(true).await;
    for at in forged.manifest.lists() {
        let file = forged.file_of(at.list);
        let sealed = fs::read(&file).unwrap();
        let key = sealed::Identities::read(Path::new(&forged.world.path("secret"))).unwrap();
        fs::write(&file, key.open(&sealed).unwrap()).unwrap();
        forged.fails(&["verify"]).await;
        let restored = forged.world.path("restored");
        let error = forged.fails(&["restore", "--data-dir", &restored]).await;
        assert!(error.contains("it is not encrypted, and the backup is"), "{error}");
        fs::write(&file, sealed).unwrap();
    }
    forged.world.check(&forged.made, 0).await;
}

#[tokio::test]
async fn a_backup_whose_lists_are_not_its_own_is_not_shown() {
    type Change = fn(&mut BackupManifest);
    let changes: [(Change, &str); 4] = [
        (|it| it.keyspaces[0].lists = it.keyspaces[1].lists.clone(), "of another keyspace"),
        (|it| it.keyspaces[1].lists = it.keyspaces[1].lists.repeat(2), "not in order"),
        (|it| it.keyspaces[0].rows += 1, "other rows than it counts: found=`1`"),
        (|it| it.objects.lists.clear(), "other objects than it counts"),
    ];
    for (change, expected) in changes {
        let mut forged = Forged::new(false).await;
        change(&mut forged.manifest);
        forged.write(&forged.made.id);
        let error = forged
            .world
            .try_mount(["--backup-id", &forged.made.id])
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(expected), "{error}");
        forged.fails(&["verify"]).await;
    }
}

#[tokio::test]
async fn a_row_of_another_place_is_named_and_not_restored() {
    let forged = Forged::new(false).await;
    let repository = Repository::open(&forged.world.path("target"), None).await.unwrap();
    let list = forged.manifest.keyspaces[0].lists[0].list;
    let chunks: Vec<ChunkRef> = verify::list(&repository, list).await.unwrap().unwrap();
    let other = forged.manifest.keyspaces[1].lists[0].list;
    let others: Vec<ChunkRef> = verify::list(&repository, other).await.unwrap().unwrap();
    let names = [&chunks[0], &others[0]].map(|it| PartName::from_bytes(&it.name).unwrap());
    let plain = packed::unpack(&names[1].path(), &fs::read(forged.file_of(names[1])).unwrap());
    // Written as if it were the other chunk.
    let forged_part = packed::pack(&names[0].path(), &plain.unwrap(), 0);
    fs::write(forged.file_of(names[0]), forged_part).unwrap();
    let restored = forged.world.path("restored");
    let error = forged.fails(&["restore", "--data-dir", &restored]).await;
    assert!(error.contains("other rows than its list names"), "{error}");
    forged.fails(&["verify"]).await;
}
