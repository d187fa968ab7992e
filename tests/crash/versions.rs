//! `kill -9` at random instants while blobs with versions and tags are written, tagged, copied and deleted: versions
//! that were acknowledged stay readable, and the index of tags has exactly the tags of the blobs.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use trestle_proto::blob::v1::{self as proto, Blob, listed_blob::Item};
use trestle_tests::{CallError, Container, Server};

use crate::{blobs::container, kills::seed, start};

/// Kills of a run.
const KILLS: usize = 8;
/// Writers, each with one blob.
const WRITERS: u64 = 4;
/// Fewer acknowledged changes in all than this would make the test mean little: it continues until then.
const ACKNOWLEDGED_MIN: u64 = 200;
/// A machine that is this slow is not working.
const KILLS_MAX: usize = 10 * KILLS;

/// The tag of the writers.
const TAG: &str = "n";

/// Changes one blob, over and over.
struct VersionWriter {
    name: String,
    next: u64,
    /// The content of each version, by its id.
    versions: BTreeMap<String, Vec<u8>>,
    /// The values that the tag of the blob may have; none for an absent blob.
    tags: [Option<String>; 2],
    /// Acknowledged changes.
    count: u64,
}

fn content(number: u64) -> Vec<u8> {
    let length = [10, 40_000, 700_000][usize::try_from(number % 3).unwrap()];
    number.to_be_bytes().into_iter().cycle().take(length).collect()
}

fn tag(number: u64) -> HashMap<String, String> {
    [(TAG.to_owned(), number.to_string())].into()
}

impl VersionWriter {
    fn new(number: u64) -> Self {
        let (name, versions) = (format!("v{number}"), BTreeMap::new());
        Self { name, next: number, versions, tags: [None, None], count: 0 }
    }

    /// Changes the blob until a call fails.
    async fn run(&mut self, container: &Container) -> CallError {
        loop {
            self.next += 1;
            if let Err(error) = self.step(container, self.next).await {
                return error;
            }
            self.count += 1;
        }
    }

    async fn step(&mut self, container: &Container, number: u64) -> Result<(), CallError> {
        let exists = self.tags[0].is_some();
        match number % 5 {
            0 if exists => {
                self.tags[1] = None;
                container.delete(&self.name).await?;
                self.tags[0] = None;
            }
            1 if exists => {
                self.tags[1] = Some(number.to_string());
                let request = proto::SetBlobTagsRequest {
                    container: container.name(),
                    blob: self.name.clone(),
                    tags: tag(number),
                    ..Default::default()
                };
                container.client().set_blob_tags(request).await?;
                self.tags[0] = self.tags[1].clone();
            }
            2 if exists => {
                let before = container.read(&self.name).await?.data;
                let source = proto::BlobSource {
                    container: container.name(),
                    blob: self.name.clone(),
                    ..Default::default()
                };
                let copied = container.copy(proto::CopyBlobRequest {
                    container: container.name(),
                    blob: self.name.clone(),
                    source: Some(source),
                    copy_source_tags: true,
                    ..Default::default()
                });
                self.versions.insert(copied.await?.version_id, before.to_vec());
            }
            _ => {
                self.tags[1] = Some(number.to_string());
                let spec = proto::WriteBlobSpec { tags: tag(number), ..container.spec(&self.name) };
                let written = container.write_with(spec, content(number)).await?;
                self.versions.insert(written.version_id, content(number));
                self.tags[0] = self.tags[1].clone();
            }
        }
        Ok(())
    }

    /// Verifies that every acknowledged version is there, and the tag as the last change left it, or the one in
    /// flight.
    async fn verify(&mut self, container: &Container, states: &[Blob]) {
        let own: Vec<_> = states.iter().filter(|blob| blob.name == self.name).collect();
        for id in self.versions.keys() {
            assert!(own.iter().any(|blob| blob.version_id == *id), "{}: {id} is lost", self.name);
        }
        for blob in &own {
            let request = proto::ReadBlobRequest {
                version_id: blob.version_id.clone(),
                ..container.reading(&self.name)
            };
            let data = container.read_with(request).await.unwrap().data;
            let stored = self.versions.entry(blob.version_id.clone()).or_insert(data.to_vec());
            assert_eq!(*stored, data, "{}: version {}", self.name, blob.version_id);
        }
        let current = own.iter().find(|blob| blob.is_current_version);
        let found = current.map(|blob| blob.tags.get(TAG).cloned().unwrap_or_default());
        assert!(self.tags.contains(&found), "{}: {found:?} of {:?}", self.name, self.tags);
        self.tags = [found.clone(), found];
    }
}

/// Every state of every blob, with its tags.
async fn every_state(container: &Container) -> Vec<Blob> {
    let (mut states, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = proto::ListBlobsRequest {
            container: container.name(),
            include_versions: true,
            include_tags: true,
            page_token,
            ..Default::default()
        };
        let page = container.client().list_blobs(request).await.unwrap().into_inner();
        states.extend(page.items.into_iter().filter_map(|item| match item.item? {
            Item::Blob(blob) => Some(blob),
            Item::Prefix(_) => None,
        }));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return states;
        }
    }
}

/// Verifies that the index has the tags of the blobs, and no other.
async fn verify_index(container: &Container, states: &[Blob]) {
    let request = proto::FindBlobsRequest {
        filter: format!("{TAG} >= ''"),
        container: container.name(),
        ..Default::default()
    };
    let found = container.client().find_blobs(request).await.unwrap().into_inner().blobs;
    let found: BTreeMap<_, _> =
        found.into_iter().map(|it| (it.blob, it.tags[TAG].clone())).collect();
    let current = states.iter().filter(|blob| blob.is_current_version);
    let tagged = current.filter_map(|blob| Some((blob.name.clone(), blob.tags.get(TAG)?.clone())));
    assert_eq!(found, tagged.collect());
}

async fn keep_versions(server: &Server) {
    let request = proto::SetServicePropertiesRequest {
        data_protection: Some(proto::DataProtection {
            is_versioning_enabled: Some(true),
            ..Default::default()
        }),
        ..Default::default()
    };
    container(server).client().set_service_properties(request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_versions_survive_random_kills_and_the_index_is_exact() {
    let seed = seed();
    println!("to repeat: CRASH_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let data = tempfile::tempdir().unwrap();
    let mut server = start(&data, &[]);
    container(&server).create().await.unwrap();
    keep_versions(&server).await;
    let mut writers: Vec<_> = (0..WRITERS).map(VersionWriter::new).collect();
    let mut kills = 0;
    while kills < KILLS || writers.iter().map(|it| it.count).sum::<u64>() < ACKNOWLEDGED_MIN {
        assert!(kills < KILLS_MAX, "too few acknowledged changes");
        let container = container(&server);
        let after = Duration::from_micros(random.random_range(20_000..500_000));
        let (errors, ()) = tokio::join!(
            join_all(writers.iter_mut().map(|writer| writer.run(&container))),
            async {
                tokio::time::sleep(after).await;
                server.kill();
            }
        );
        for error in errors {
            assert_eq!(error.reason, "", "the server rejected: {error:?}");
        }
        server = start(&data, &[]);
        let container = self::container(&server);
        let states = every_state(&container).await;
        verify_index(&container, &states).await;
        join_all(writers.iter_mut().map(|writer| writer.verify(&container, &states))).await;
        kills += 1;
    }
    let versions: usize = writers.iter().map(|writer| writer.versions.len()).sum();
    let changes: u64 = writers.iter().map(|writer| writer.count).sum();
    println!("{kills} kills, {changes} acknowledged changes, {versions} versions");
}
