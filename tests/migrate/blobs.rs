//! Blobs of a workspace, and of an account that is another server: whole, damaged, changed, and killed on the way.

use std::{fs, os::unix::fs::symlink, path::Path, process::Stdio, time::Instant};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use trestle_identity::account::DEVELOPMENT_KEY;
use trestle_proto::blob::v1::{
    AccessTier, Blob, BlobType, Container, GetContainerRequest, ListBlobsRequest,
    ListPageRangesRequest, PublicAccess, blob_service_client::BlobServiceClient, listed_blob::Item,
};
use trestle_tests::{HANG, Server};

use crate::{
    blob_workspace::{BLOBS_FILE, BlobWorkspace, EXTENT},
    command::{run, start, succeeds, trestle},
};

/// A blob of more than one window.
const LARGE: usize = 9 * 1024 * 1024 + 7;
/// Enough blobs for three batches.
pub(crate) const MANY: usize = 1200;

fn large() -> Vec<u8> {
    (0..LARGE).map(|at| u8::try_from(at.wrapping_mul(31) >> 7 & 0xFF).unwrap()).collect()
}

/// One container with a blob of every type.
pub(crate) fn every_type() -> BlobWorkspace {
    let mut blobs = BlobWorkspace::default();
    let policy =
        r#"{"id":"p1","accessPolicy":{"start":"2026-01-01T00:00:00.0000000Z","permission":"rl"}}"#;
    blobs.container(
        "docs",
        &format!(
            r#""metadata":{{"Owner":"me"}},"properties":{{"publicAccess":"blob"}},"containerAcl":[{policy}]"#
        ),
    );
    let snapshot = "2026-11-28T12:23:38.3530000Z";
    let cool = r#","accessTier":"Cool","accessTierInferred":false"#;
    blobs.block("a/ü 1.txt", snapshot, b"before", [cool, ""]);
    let md5: Vec<_> = "6e809cbda0732ac4845916a59016f954".as_bytes().chunks(2).collect();
    let md5: Vec<_> = md5
        .iter()
        .enumerate()
        .map(|(at, hex)| {
            let byte = u8::from_str_radix(str::from_utf8(hex).unwrap(), 16).unwrap();
            format!(r#""{at}":{byte}"#)
        })
        .collect();
    let properties = format!(
        r#","cacheControl":"no-cache","contentMD5":{{{}}},"accessTier":"Hot","accessTierInferred":true"#,
        md5.join(",")
    );
    let tags = r#","metadata":{"K":"v"},"blobTags":{"blobTagSet":[{"key":"t","value":"1"}]}"#;
    blobs.block("a/ü 1.txt", "", b"hello2", [&properties, tags]);
    blobs.block("archived", "", b"cold", [r#","accessTier":"Archive""#, ""]);
    blobs.block("empty", "", b"", ["", ""]);
    blobs.block("large", "", &large(), ["", ""]);
    blobs.append("log", &[b"one", b"two!"], "");
    blobs.append("sealed", &[b"x"], r#","isSealed":true"#);
    blobs.pages("disk", 1 << 20, &[(512, &[1; 1024]), (4096, &[2; 512])]);
    blobs
}

pub(crate) fn written(blobs: &BlobWorkspace) -> TempDir {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("ws")).unwrap();
    blobs.write(&directory.path().join("ws"));
    directory
}

pub(crate) fn path(directory: &TempDir) -> String {
    directory.path().join("ws").to_str().unwrap().to_owned()
}

/// The connection string of the account of a server.
fn connection(server: &Server) -> String {
    let address = server.address("azure_blob");
    format!(
        "AccountName=devstoreaccount1;AccountKey={DEVELOPMENT_KEY};\
         BlobEndpoint=http://{address}/devstoreaccount1"
    )
}

/// The lines of a result.
pub(crate) fn lines(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a server has of each blob, without what every write makes anew, and its container.
pub(crate) async fn described(server: &Server, include_snapshots: bool) -> (Container, Vec<Blob>) {
    let mut client = BlobServiceClient::connect(server.endpoint()).await.unwrap();
    let request = ListBlobsRequest {
        container: "docs".to_owned(),
        include_metadata: true,
        include_tags: true,
        include_snapshots,
        ..Default::default()
    };
    let page = client.list_blobs(request).await.unwrap().into_inner();
    let blobs = page.items.into_iter().filter_map(|listed| match listed.item? {
        Item::Blob(blob) => Some(Blob {
            etag: String::new(),
            last_modified: None,
            create_time: None,
            access_tier_change_time: None,
            snapshot: if blob.snapshot.is_empty() { "" } else { "some" }.to_owned(),
            ..blob
        }),
        Item::Prefix(_) => None,
    });
    let request = GetContainerRequest { container: "docs".to_owned(), ..Default::default() };
    let container = client.get_container(request).await.unwrap().into_inner().container.unwrap();
    let container =
        Container { etag: String::new(), last_modified: None, create_time: None, ..container };
    (container, blobs.collect())
}

/// Checks that a server has the blobs of [`every_type`].
pub(crate) async fn check(server: &Server, directory: &Path, snapshots: bool) {
    let content = |name: &str| succeeds(server, &["blob", "cat", &format!("docs/{name}")]);
    assert_eq!((content("a/ü 1.txt").as_str(), content("empty").as_str()), ("hello2", ""));
    assert_eq!((content("log").as_str(), content("sealed").as_str()), ("onetwo!", "x"));
    for (name, expected) in [("large", large()), ("disk", disk())] {
        let file = directory.join(name);
        let _ = fs::remove_file(&file);
        let from = format!("blob://docs/{name}");
        succeeds(server, &["blob", "cp", &from, file.to_str().unwrap()]);
        assert!(fs::read(&file).unwrap() == expected, "{name}");
    }
    let (container, blobs) = described(server, snapshots).await;
    assert_eq!(container.metadata["Owner"], "me");
    assert_eq!(container.public_access(), PublicAccess::Blob);
    let policies = succeeds(server, &["blob", "container", "policy", "list", "docs", "--json"]);
    assert!(policies.contains("p1") && policies.contains("rl"), "{policies}");
    let named = |name: &str| blobs.iter().rfind(|blob| blob.name == name).unwrap();
    let text = named("a/ü 1.txt");
    let properties = text.properties.clone().unwrap();
    assert_eq!(properties.content_type, "text/plain");
    assert_eq!(properties.cache_control, "no-cache");
    assert_eq!((text.metadata["K"].as_str(), text.tags["t"].as_str()), ("v", "1"));
    assert_eq!(text.access_tier(), AccessTier::Hot);
    assert!(named("sealed").is_sealed && !named("log").is_sealed);
    assert_eq!((named("log").r#type(), named("disk").r#type()), (BlobType::Append, BlobType::Page));
    assert_eq!(named("disk").sequence_number, 7);
    let ranges = page_ranges(server).await;
    assert_eq!(ranges, [(512, 1024), (4096, 512)]);
    let past: Vec<_> = blobs.iter().filter(|blob| !blob.snapshot.is_empty()).collect();
    assert_eq!(past.len(), usize::from(snapshots), "{past:?}");
    assert!(past.iter().all(|past| past.size == 6 && past.access_tier() == AccessTier::Cool));
}

async fn page_ranges(server: &Server) -> Vec<(u64, u64)> {
    let mut client = BlobServiceClient::connect(server.endpoint()).await.unwrap();
    let (container, blob) = ("docs".to_owned(), "disk".to_owned());
    let request = ListPageRangesRequest { container, blob, ..Default::default() };
    let ranges = client.list_page_ranges(request).await.unwrap().into_inner().ranges;
    ranges.into_iter().map(|range| (range.offset, range.length)).collect()
}

fn disk() -> Vec<u8> {
    let mut disk = vec![0; 1 << 20];
    disk[512..1536].fill(1);
    disk[4096..4608].fill(2);
    disk
}

#[tokio::test]
async fn blobs_of_every_type_are_copied_from_a_workspace_and_on_from_that_account() {
    let (first_data, second_data) = (tempdir().unwrap(), tempdir().unwrap());
    let (first, second) = (start(&first_data), start(&second_data));
    let directory = written(&every_type());

    let import = ["import", "azurite", &path(&directory), "--snapshots", "--json"];
    let output = succeeds(&first, &import);

    let found = lines(&output);
    let bytes = 6 + 6 + 4 + LARGE + 7 + 1 + (1 << 20);
    let summary = serde_json::json!({
        "tables": 0, "queues": 0, "containers": 1, "blobs": 8, "bytes": bytes, "not_copied": 0,
        "match": true,
    });
    assert_eq!(found.last(), Some(&summary), "{output}");
    assert_eq!(found[0]["container"], "docs", "{output}");
    assert_eq!(found[0]["digest_written"], found[0]["digest_target"], "{output}");
    check(&first, directory.path(), true).await;
    let (_, blobs) = described(&first, true).await;
    let archived = blobs.iter().find(|blob| blob.name == "archived").unwrap();
    assert_eq!(archived.access_tier(), AccessTier::Archive);

    // An archived blob cannot be read.
    succeeds(&first, &["blob", "rm", "docs/archived"]);
    let (connection, checkpoint) = (connection(&first), directory.path().join("checkpoint"));
    let checkpoint = format!("--checkpoint={}", checkpoint.display());
    let import = ["import", "azure", &connection, &checkpoint, "--snapshots"];
    let output = succeeds(&second, &import);

    let last = output.lines().last().unwrap();
    assert!(last.starts_with("copied 0 tables, 0 queues, 1 container, 7 blobs ("), "{output}");
    check(&second, directory.path(), true).await;
    assert_eq!(described(&first, true).await, described(&second, true).await);
}

#[tokio::test]
async fn an_existing_container_is_filled_only_with_into_existing() {
    let data = tempdir().unwrap();
    let (server, directory) = (start(&data), written(&every_type()));
    let file = directory.path().join("file");
    fs::write(&file, "mine").unwrap();
    succeeds(&server, &["blob", "container", "create", "docs"]);
    succeeds(&server, &["blob", "cp", file.to_str().unwrap(), "blob://docs/a/ü 1.txt"]);
    let import = ["import", "azurite", &path(&directory)];

    let ended = run(&server, &import);

    assert_eq!(ended.code, Some(2), "{ended:?}");
    let rule = "targets are not empty: container `docs`; nothing was copied";
    assert!(ended.errors.contains(rule), "{ended:?}");
    assert_eq!(succeeds(&server, &["blob", "cat", "docs/a/ü 1.txt"]), "mine");
    let ended = run(&server, &[&import[..], &["--skip-blobs"]].concat());
    let rule = "the folder is not an Azurite workspace";
    assert!(ended.code == Some(2) && ended.errors.contains(rule), "{ended:?}");

    succeeds(&server, &[&import[..], &["--into-existing"]].concat());
    check(&server, directory.path(), false).await;
}

#[test]
fn a_blob_that_was_written_beside_the_import_is_a_difference() {
    let data = tempdir().unwrap();
    let (server, directory) = (start(&data), written(&every_type()));
    let file = directory.path().join("file");
    fs::write(&file, "mine").unwrap();
    succeeds(&server, &["blob", "container", "create", "docs"]);
    succeeds(&server, &["blob", "cp", file.to_str().unwrap(), "blob://docs/other"]);

    let ended = run(&server, &["import", "azurite", &path(&directory), "--into-existing"]);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("queues and containers that differ: 1,"), "{ended:?}");
}

#[test]
fn blobs_that_cannot_be_copied_are_named_and_the_others_are_copied() {
    let mut blobs = every_type();
    let place = |id: &str, offset: usize| {
        format!(r#""persistency":{{"id":"{id}","offset":{offset},"count":5}}"#)
    };
    let properties = r#""contentLength":5,"blobType":"BlockBlob""#;
    blobs.state("absent", "", properties, &place("absent", 0));
    blobs.state("outside", "", properties, &place("../secret", 0));
    blobs.state("past", "", properties, &place(EXTENT, LARGE * 2));
    blobs.state("short", "", &properties.replace('5', "6"), &place(EXTENT, 0));
    blobs.block("flipped", "", b"hello", [r#","contentMD5":"XUFAKrxLKna5cZ2REBfFkA==""#, ""]);
    blobs.block("labelled", "", b"hello", ["", r#","metadata":{"a b":"x"}"#]);
    blobs.raw(r#"{"name":7}"#);
    blobs.raw(r#"{"accountName":"devstoreaccount1","containerName":"docs","name":"bare"}"#);
    let (data, directory) = (tempdir().unwrap(), written(&blobs));
    let server = start(&data);

    let ended = run(&server, &["import", "azurite", &path(&directory), "--snapshots"]);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    let blob = |name: &str| format!("container `docs`, blob `{name}`: ");
    for (which, why) in [
        (blob("absent"), "its content is missing: file=`absent` does not exist"),
        (blob("outside"), "its content is in a file with a name that Azurite does not use"),
        (blob("past"), "ends before it"),
        (blob("short"), "has 5 bytes of content, and contentLength=6"),
        (blob("flipped"), "the source states the MD5 5d41402abc4b2a76b9719d911017c590"),
        (blob("labelled"), "metadata"),
        (blob("bare"), "is not a blob: missing field `properties`"),
        ("blobs, document 15: ".to_owned(), "is not a blob"),
    ] {
        let line = ended.output.lines().find(|line| line.contains(&format!("not copied: {which}")));
        let line = line.unwrap_or_else(|| panic!("{which}: {ended:?}"));
        assert!(line.contains(why), "{why}: {line}");
    }
    let last = ended.output.lines().last().unwrap();
    assert!(last.contains("1 container, 8 blobs ("), "{last}");
    assert_eq!(lines(&succeeds(&server, &["blob", "ls", "docs", "--json"])).len(), 7);
}

#[test]
fn rejects_damaged_databases_of_blobs_before_anything_is_written() {
    let data = tempdir().unwrap();
    let server = start(&data);
    let cut = |text: String| text[..text.len() * 2 / 3].to_owned();
    let foreign = |_: String| "[1]".to_owned();
    type Damage<'a> = (&'a str, &'a str, &'a dyn Fn(String) -> String);
    let damages: [Damage<'_>; 5] = [
        (BLOBS_FILE, BLOBS_FILE, &cut),
        (BLOBS_FILE, BLOBS_FILE, &foreign),
        (BLOBS_FILE, "$CONTAINERS_COLLECTION$", &|text| {
            text.replace(r#""name":"docs","metadata""#, r#""name":5,"metadata""#)
        }),
        ("__azurite_db_blob_extent__.json", "__azurite_db_blob_extent__.json", &cut),
        ("__azurite_db_blob_extent__.json", "$EXTENTS_COLLECTION$", &|text| {
            text.replace(r#""path""#, r#""place""#)
        }),
    ];
    for (file, named, damage) in damages {
        let directory = written(&every_type());
        let database = directory.path().join("ws").join(file);
        let text = fs::read_to_string(&database).unwrap();
        fs::write(&database, damage(text)).unwrap();

        let ended = run(&server, &["import", "azurite", &path(&directory)]);

        assert_eq!(ended.code, Some(2), "{file}: {ended:?}");
        assert!(ended.errors.contains(named), "{file}: {ended:?}");
        assert_eq!(succeeds(&server, &["blob", "container", "list", "--json"]), "", "{file}");
    }
}

#[test]
fn follows_no_link_to_contents_outside_of_the_workspace() {
    for name in ["__blobstorage__".to_owned(), format!("__blobstorage__/{EXTENT}")] {
        let (data, directory) = (tempdir().unwrap(), written(&every_type()));
        let server = start(&data);
        let (original, path_of) =
            (directory.path().join("original"), directory.path().join("ws").join(&name));
        fs::rename(&path_of, &original).unwrap();
        symlink(&original, &path_of).unwrap();

        let ended = run(&server, &["import", "azurite", &path(&directory)]);

        assert_eq!(ended.code, Some(1), "{name}: {ended:?}");
        let why = "must be a regular file: ";
        let line = ended.output.lines().find(|line| line.contains("blob `a/ü 1.txt`")).unwrap();
        assert!(line.contains(why), "{name}: {line}");
        let left = succeeds(&server, &["blob", "ls", "docs", "--json"]);
        assert!(left.lines().count() == 1 && left.contains("\"empty\""), "{name}: {left}");
    }
    let (data, directory) = (tempdir().unwrap(), written(&every_type()));
    let (server, database) = (start(&data), directory.path().join("ws").join(BLOBS_FILE));
    let original = directory.path().join("original");
    fs::rename(&database, &original).unwrap();
    symlink(&original, &database).unwrap();
    let ended = run(&server, &["import", "azurite", &path(&directory)]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.errors.contains("must be a regular file: it is a link"), "{ended:?}");
}

pub(crate) fn many() -> BlobWorkspace {
    let mut blobs = BlobWorkspace::default();
    blobs.container("docs", "");
    for number in 0..MANY {
        let (name, text) = (format!("{number:05}"), format!("text {number}"));
        if number % 10 == 0 {
            blobs.block(&name, "2026-11-28T12:23:38.3530000Z", b"before", ["", ""]);
        }
        blobs.block(&name, "", text.as_bytes(), ["", ""]);
    }
    blobs
}

/// Kills an import once its checkpoint has blobs of the batch in progress, or a position after a batch.
fn kill_after_progress(
    server: &Server,
    args: &[&str],
    checkpoint: &Path,
    is_reached: &dyn Fn(&Value) -> bool,
) {
    let mut import = trestle(server, args);
    let mut import = import.stdout(Stdio::null()).spawn().expect("the client runs");
    let started = Instant::now();
    loop {
        let text = fs::read_to_string(checkpoint).unwrap_or_default();
        let state: Value = serde_json::from_str(&text).unwrap_or_default();
        if is_reached(&state["state"]["containers"]["docs"]) {
            break;
        }
        assert!(started.elapsed() < HANG, "no progress: {text}");
        let ended = import.try_wait().expect("the client is ours");
        assert!(ended.is_none(), "the import ended before it was killed: {ended:?}");
    }
    import.kill().expect("the client is killed");
    import.wait().expect("the client is ours");
}

#[tokio::test]
async fn a_killed_import_resumes_and_copies_each_blob_and_snapshot_once() {
    let (data, second_data, directory) = (tempdir().unwrap(), tempdir().unwrap(), written(&many()));
    let (server, second) = (start(&data), start(&second_data));
    let checkpoint = directory.path().join("ws.trestle-import");
    let ws = path(&directory);
    let resume = ["import", "azurite", &ws, "--snapshots", "--resume", "--json"];
    let is_begun = |docs: &Value| docs["done"].as_array().is_some_and(|done| !done.is_empty());
    let is_past_a_batch = |docs: &Value| docs["position"] != "Start" && is_begun(docs);

    let import = ["import", "azurite", &ws, "--snapshots"];
    kill_after_progress(&server, &import, &checkpoint, &is_begun);
    kill_after_progress(&server, &resume, &checkpoint, &is_past_a_batch);
    let output = succeeds(&server, &resume);

    let copied = MANY + MANY / 10;
    let found = lines(&output);
    assert_eq!(found.last().unwrap()["blobs"], copied, "{output}");
    assert_eq!(found[0]["read"], copied, "{output}");
    let (_, blobs) = described(&server, true).await;
    assert_eq!(blobs.len(), copied);

    let (connection, checkpoint) = (connection(&server), directory.path().join("checkpoint"));
    let given = format!("--checkpoint={}", checkpoint.display());
    let import = ["import", "azure", &connection, &given, "--snapshots"];
    let resume = [&import[..], &["--resume", "--json"]].concat();
    kill_after_progress(&second, &import, &checkpoint, &is_begun);
    kill_after_progress(&second, &resume, &checkpoint, &is_past_a_batch);
    let output = succeeds(&second, &resume);
    assert_eq!(lines(&output).last().unwrap()["blobs"], copied, "{output}");
    assert_eq!(described(&second, true).await.1, blobs);
}
