//! Copies of files and folders.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use trestle_proto::blob::v1::GetBlockListRequest;
use trestle_tests::{Container, Server};

use super::with_container;
use crate::client::{becomes, interrupt, run, spawned, succeeds, wait};

const MIB: usize = 1024 * 1024;

/// Bytes without equal blocks.
fn content(length: usize) -> Vec<u8> {
    (0..length.div_ceil(8)).flat_map(|at| (at * 0x9E37_79B1).to_le_bytes()).take(length).collect()
}

/// The files in a folder by their paths below it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        match path.is_dir() {
            true => found.extend(files(&path).into_iter().map(|(path, it)| (name.join(path), it))),
            false => drop(found.insert(name, fs::read(&path).unwrap())),
        }
    }
    found
}

#[test]
fn a_folder_is_equal_after_a_round_trip() {
    let (server, directory) = (with_container(), tempfile::tempdir().unwrap());
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    fs::create_dir_all(from.join("inner folder")).unwrap();
    let lengths =
        [("empty", 0), ("inner folder/byte", 1), ("inner folder/ü%", 20 * MIB), ("8", 8 * MIB)];
    for (name, length) in lengths {
        fs::write(from.join(name), content(length)).unwrap();
    }
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());

    let up = succeeds(&server, &["blob", "cp", "-r", from, "blob://photos/x"]).output;
    let down = succeeds(&server, &["blob", "cp", "-r", "blob://photos/x/", to]).output;

    assert_eq!(up, "copied 4 files (28.00 MiB)\n");
    assert_eq!(down, up);
    let (sent, received) = (files(Path::new(from)), files(Path::new(to)));
    assert_eq!(received.keys().collect::<Vec<_>>(), sent.keys().collect::<Vec<_>>());
    assert!(received == sent, "the bytes differ");
    let typed = ["--content-type", "image/png"];
    let large = format!("{from}/inner folder/ü%");
    succeeds(&server, &[&["blob", "cp", &large, "blob://photos/"][..], &typed].concat());
    let shown = succeeds(&server, &["blob", "stat", "photos/ü%", "--json"]).output;
    assert!(shown.contains("\"size_bytes\":20971520,"), "{shown}");
    assert!(shown.contains("\"content_type\":\"image/png\""), "{shown}");

    let removed = succeeds(&server, &["blob", "rm", "-r", "photos/x", "--yes"]).output;
    assert_eq!(removed, "deleted 4 blobs\n");
    let left = succeeds(&server, &["blob", "ls", "photos", "--json"]).output;
    assert_eq!(left.lines().count(), 1, "{left}");
}

#[test]
fn blobs_without_a_place_in_the_folder_are_reported_and_the_others_copied() {
    let (server, directory) = (with_container(), tempfile::tempdir().unwrap());
    let (file, to) = (directory.path().join("file"), directory.path().join("to"));
    fs::write(&file, "text").unwrap();
    let (long, longest) = ("n".repeat(256), "n".repeat(255));
    let left_out = ["b/../../file", "d//e", "f", &long];
    let copied = ["a", "d/e", "f/g", "f/h.", &longest];
    for name in left_out.into_iter().chain(copied) {
        let blob = format!("blob://photos/x/{name}");
        succeeds(&server, &["blob", "cp", file.to_str().unwrap(), &blob]);
    }

    let args = ["blob", "cp", "-r", "blob://photos/x", to.to_str().unwrap()];
    let partly = run(&server, &args);

    assert_eq!(partly.code, Some(1), "{partly:?}");
    for name in left_out {
        assert!(partly.errors.contains(&format!("not copied: `x/{name}`: ")), "{name}: {partly:?}");
    }
    assert_eq!(partly.errors.matches("not copied: ").count(), left_out.len(), "{partly:?}");
    assert!(!partly.errors.contains("repeat"), "{partly:?}");
    assert_eq!(partly.output, "copied 5 files (20 B), 4 not copied\n");
    let expected: Vec<_> = copied.iter().map(PathBuf::from).collect();
    assert_eq!(files(&to).into_keys().collect::<Vec<_>>(), expected);
    assert_eq!(files(directory.path()).len(), 1 + copied.len(), "nothing is outside");
}

#[test]
fn links_out_of_a_folder_are_copied_only_where_requested() {
    let (server, directory) = (with_container(), tempfile::tempdir().unwrap());
    let from = directory.path().join("from");
    fs::create_dir(&from).unwrap();
    fs::write(directory.path().join("secret"), "text").unwrap();
    fs::write(from.join("own"), "text").unwrap();
    std::os::unix::fs::symlink("../secret", from.join("link")).unwrap();
    let args = ["blob", "cp", "-r", from.to_str().unwrap(), "blob://photos/x", "--json"];

    let partly = run(&server, &args);
    let followed = succeeds(&server, &[&args[..], &["--follow-links"]].concat());

    assert_eq!(partly.code, Some(1), "{partly:?}");
    assert!(partly.errors.contains("from/link"), "{partly:?}");
    assert!(partly.output.contains("\"files\":1"), "{partly:?}");
    assert!(followed.output.contains("\"files\":2"), "{followed:?}");
}

/// The sum of the samples of a metric whose lines `is_counted` accepts.
fn sum(server: &Server, name: &str, is_counted: impl Fn(&str) -> bool) -> u64 {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let metrics = runtime.block_on(server.page("/metrics"));
    let lines = metrics.lines().filter(|line| line.starts_with(name) && is_counted(line));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// How many calls that stage a block have ended.
fn staged_calls(server: &Server) -> u64 {
    sum(server, "rpc_server_call_duration_seconds_count{", |line| line.contains("StageBlock\""))
}

/// How many calls the server works on.
fn active_calls(server: &Server) -> u64 {
    sum(server, "trestle_rpc_server_active_calls{", |_| true)
}

#[test]
fn a_repeated_copy_sends_only_the_blocks_that_are_missing() {
    const BLOCKS: usize = 8;
    let (server, directory) = (with_container(), tempfile::tempdir().unwrap());
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    fs::write(&from, content(8 * MIB * BLOCKS)).unwrap();
    let up = ["blob", "cp", "--parallel", "1", from.to_str().unwrap(), "blob://photos/large"];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let staged = || {
        let list = runtime.block_on(async {
            let container = Container::over(&server.channel(), "photos");
            let (container, mut client) = (container.name(), container.client());
            let blob = "large".to_owned();
            let request = GetBlockListRequest { container, blob, ..Default::default() };
            client.get_block_list(request).await
        });
        list.map_or(0, |list| list.into_inner().uncommitted.len())
    };

    let copy = spawned(&server, &up);
    assert!(becomes(|| staged() >= 2));
    interrupt(&copy);
    let ended = wait(copy);
    // The call that the interruption cut off may end a moment later, and is counted then.
    assert!(becomes(|| active_calls(&server) == 0));
    let (kept, calls) = (staged(), staged_calls(&server));
    succeeds(&server, &up);

    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.errors.contains("progress: copied 0 files ("), "{ended:?}");
    assert!((2..BLOCKS).contains(&kept), "{kept} blocks");
    assert_eq!(staged_calls(&server) - calls, (BLOCKS - kept) as u64, "{kept} blocks");
    let down = ["blob", "cp", "blob://photos/large", to.to_str().unwrap()];
    succeeds(&server, &down);
    assert!(fs::read(&to).unwrap() == fs::read(&from).unwrap(), "the bytes differ");
}
