//! `backup verify`, and reading the parts of a backup.

mod windows;

use std::collections::HashSet;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use prost::Message as _;
use serde_json::{Value, json};
use trestle_command::{errors::CliError, output::Output};
use trestle_kv::Entry;

use crate::{
    args::VerifyArgs,
    coverage::Coverage,
    lists::{self, ChunkRef, Damage, Listed, ObjectRef},
    manifest::{BackupManifest, KeyspaceRows, ListRef},
    names::PartName,
    pieces::pieces,
    repository::{PartError, Repository, manifest_path},
    rows,
    window::{ChangeWindow, WindowName},
};

/// Parts that are read at a time; each is a few megabytes, twice.
pub(crate) const AT_ONCE: usize = 4;
const UNKNOWN: &str = "it has an unknown area, an impossible length, or no name";
/// What a report on a part shows.
const COLUMNS: [&str; 3] = ["backup", "part", "reason"];

/// A part of a backup that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {reason}")]
pub(crate) struct BadPart {
    /// Its path at the target.
    pub(crate) part: String,
    /// Why.
    pub(crate) reason: String,
}

impl BadPart {
    /// A part, and why.
    pub(crate) fn new(part: &str, reason: &impl ToString) -> Self {
        Self { part: part.to_owned(), reason: reason.to_string() }
    }
}

/// Reads a part. A target that fails is no damage.
async fn part(repository: &Repository, path: &str) -> Result<Result<Vec<u8>, BadPart>, CliError> {
    read(repository, path, repository.read_sealed(path).await)
}

fn read(
    repository: &Repository,
    path: &str,
    read: Result<Vec<u8>, PartError>,
) -> Result<Result<Vec<u8>, BadPart>, CliError> {
    match read {
        Ok(plain) => Ok(Ok(plain)),
        Err(PartError::Store(error)) => Err(repository.failed(&error)),
        Err(error) => Ok(Err(BadPart::new(path, &error))),
    }
}

/// The entries of a list.
pub(crate) async fn list<E: Listed>(
    repository: &Repository,
    name: PartName,
) -> Result<Result<Vec<E>, BadPart>, CliError> {
    let path = name.path();
    let read = part(repository, &path).await?;
    Ok(read.and_then(|plain| {
        lists::entries(&plain).ok_or_else(|| BadPart::new(&path, &"it is no list"))
    }))
}

/// The entries of lists, for a command that cannot do without.
///
/// # Errors
/// A list that cannot be read.
pub(crate) async fn entries<E: Listed>(
    repository: &Repository,
    lists: &[ListRef],
) -> Result<Vec<E>, CliError> {
    let mut entries = Vec::new();
    for at in lists {
        let read = list(repository, at.list).await?;
        entries.extend(read.map_err(|bad| CliError::Source {
            text: format!("the backup cannot be read: {bad}"),
            busy: false,
        })?);
    }
    Ok(entries)
}

/// The names beside a list, which need no key.
pub(crate) async fn part_names(
    repository: &Repository,
    list: ListRef,
) -> Result<Result<Vec<PartName>, BadPart>, CliError> {
    let path = list.parts.path();
    let read = read(repository, &path, repository.read(&path).await)?;
    Ok(read.and_then(|plain| {
        lists::part_names(&plain).ok_or_else(|| BadPart::new(&path, &"it has no names of parts"))
    }))
}

/// A window of changes.
pub(crate) async fn window(
    repository: &Repository,
    name: &WindowName,
) -> Result<Result<ChangeWindow, BadPart>, CliError> {
    let path = name.path();
    let read = part(repository, &path).await?;
    Ok(read.and_then(|plain| {
        let window = ChangeWindow::decode(&*plain);
        let window = window.map_err(|_| BadPart::new(&path, &"it is no window of changes"))?;
        window.check(name).map_err(|rule| BadPart::new(&path, &rule)).map(|()| window)
    }))
}

/// The names of the parts that a window names, which need no key.
pub(crate) async fn window_parts(
    repository: &Repository,
    name: &WindowName,
) -> Result<Result<Vec<PartName>, BadPart>, CliError> {
    let path = name.parts_path();
    let read = read(repository, &path, repository.read(&path).await)?;
    Ok(read.and_then(|plain| {
        let names = lists::part_names(&plain).filter(|names| names.len() as u64 == name.parts);
        names.ok_or_else(|| BadPart::new(&path, &"it has another number of names than its window"))
    }))
}

/// The rows of a chunk.
pub(crate) async fn chunk(
    repository: &Repository,
    chunk: &ChunkRef,
) -> Result<Result<Vec<Entry>, BadPart>, CliError> {
    let Some(name) = PartName::from_bytes(&chunk.name) else {
        return Ok(Err(BadPart::new("a chunk", &"its list has no name of it")));
    };
    let path = name.path();
    let read = part(repository, &path).await?;
    Ok(read.and_then(|plain| {
        let rows = rows::decode(&plain).map(|row| row.map(|(key, value)| Entry { key, value }));
        let rows: Vec<Entry> =
            rows.collect::<Result<_, _>>().map_err(|error| BadPart::new(&path, &error))?;
        let ends = rows.first().map(|row| &row.key).zip(rows.last().map(|row| &row.key));
        match ends == Some((&chunk.first, &chunk.last)) && rows.len() as u64 == chunk.rows {
            true => Ok(rows),
            false => Err(BadPart::new(&path, &"it has other rows than its list names")),
        }
    }))
}

/// The bytes of a piece of an object.
pub(crate) async fn piece(
    repository: &Repository,
    object: &ObjectRef,
    (index, start): (u64, u64),
) -> Result<Result<Vec<u8>, BadPart>, CliError> {
    let parts = object.name().and(PartName::from_bytes(&object.parts));
    let Some(parts) = parts else {
        return Ok(Err(BadPart::new(&object.path, &UNKNOWN)));
    };
    let path = parts.piece(index).path();
    let expected = (object.bytes - start).min(crate::pieces::PIECE_BYTES);
    let read = part(repository, &path).await?;
    let read = read.and_then(|plain| match plain.len() as u64 == expected {
        true => Ok(plain),
        false => Err(BadPart::new(&path, &"it has another length than its list names")),
    });
    Ok(read.map_err(|bad| {
        let reason = format!("{}: it is of object `{}`", bad.reason, object.shown());
        BadPart::new(&bad.part, &reason)
    }))
}

pub(crate) async fn run(args: &VerifyArgs, out: &mut Output) -> Result<(), CliError> {
    let text = args.backup.target.text()?;
    let repository = Repository::open(text, args.key.read().await?).await?;
    let ids = match args.all {
        true => repository.backups().await?,
        false => vec![repository.id(args.backup.id.as_deref()).await?],
    };
    let coverage = Coverage::new(repository.windows().await?);
    let mut run = Verification {
        repository: &repository,
        verified: HashSet::new(),
        verified_windows: HashSet::new(),
        bad: Vec::new(),
    };
    let bar = out.progress(None, 0);
    if let Some((part, reason)) = repository.marker_problem().await? {
        out.records(&[json!({ "backup": "", "part": part, "reason": reason })], &COLUMNS)?;
        run.bad.push(BadPart::new(part, &reason));
    }
    for id in &ids {
        bar.set_message(id.clone());
        let found = run.bad.len();
        match repository.manifest(id).await {
            Ok(manifest) => {
                repository.unlock(&manifest)?;
                run.backup(&manifest).await?;
                run.windows(&coverage, &manifest).await?;
            }
            Err(reason) => run.bad.push(BadPart::new(&manifest_path(id), &reason)),
        }
        let records: Vec<Value> = run
            .bad
            .iter()
            .skip(found)
            .map(|bad| json!({ "backup": id, "part": bad.part, "reason": bad.reason }))
            .collect();
        if !records.is_empty() || out.is_json() {
            bar.suspend(|| out.records(&records, &COLUMNS))?;
        }
    }
    bar.finish_and_clear();
    let (parts, windows) = (run.verified.len(), run.verified_windows.len());
    let is_sound = run.bad.is_empty();
    out.note(&format!(
        "verified: backups=`{}`, windows=`{windows}`, parts=`{parts}`, missing or damaged=`{}`",
        ids.len(),
        run.bad.len()
    ));
    if is_sound { Ok(()) } else { Err(CliError::Rejected) }
}

struct Verification<'a> {
    repository: &'a Repository,
    /// Parts that were read, of every backup so far.
    verified: HashSet<PartName>,
    /// Windows that were read.
    verified_windows: HashSet<WindowName>,
    bad: Vec<BadPart>,
}

impl Verification<'_> {
    async fn backup(&mut self, manifest: &BackupManifest) -> Result<(), CliError> {
        for keyspace in &manifest.keyspaces {
            if self.keyspace(keyspace).await? != keyspace.rows {
                self.differs(manifest, "its lists have other rows than it counts");
            }
        }
        let (mut count, mut bytes) = (0, 0_u64);
        for list in &manifest.objects.lists {
            let objects: Vec<ObjectRef> = self.list(*list).await?;
            count += objects.len() as u64;
            bytes = objects.iter().fold(bytes, |sum, object| sum.saturating_add(object.bytes));
            self.objects(objects).await?;
        }
        let expected = &manifest.objects;
        if (count, bytes) != (expected.count, expected.bytes) {
            self.differs(manifest, "its lists have other objects than it counts");
        }
        for list in &manifest.damage.lists {
            let _: Vec<Damage> = self.list(*list).await?;
        }
        Ok(())
    }

    fn differs(&mut self, manifest: &BackupManifest, reason: &str) {
        self.bad.push(BadPart::new(&manifest_path(&manifest.id), &reason));
    }

    fn note<T>(&mut self, read: Result<T, BadPart>) -> Option<T> {
        read.map_err(|bad| self.bad.push(bad)).ok()
    }

    /// The entries of a list. The names beside it must be those of the parts of its entries: `prune` keeps no others.
    async fn list<E: Listed>(&mut self, at: ListRef) -> Result<Vec<E>, CliError> {
        self.verified.extend([at.list, at.parts]);
        let names = part_names(self.repository, at).await?;
        let names = self.note(names);
        let entries = list::<E>(self.repository, at.list).await?;
        let Some(entries) = self.note(entries) else { return Ok(Vec::new()) };
        let expected = entries.iter().flat_map(|it| it.parts().unwrap_or_default());
        if names.is_some_and(|names| !expected.eq(names)) {
            self.bad.push(BadPart::new(&at.parts.path(), &"it has other names than its list"));
        }
        Ok(entries)
    }

    /// Its rows, by its lists.
    async fn keyspace(&mut self, keyspace: &KeyspaceRows) -> Result<u64, CliError> {
        let (mut last, mut rows) = (None, 0_u64);
        for list in &keyspace.lists {
            let chunks: Vec<ChunkRef> = self.list(*list).await?;
            for chunk in &chunks {
                if last.as_ref().is_some_and(|last| *last >= chunk.first) {
                    let path = list.list.path();
                    self.bad.push(BadPart::new(&path, &"its chunks are not in order"));
                }
                last = Some(chunk.last.clone());
                rows = rows.saturating_add(chunk.rows);
            }
            let is_new = |chunk: &ChunkRef| {
                PartName::from_bytes(&chunk.name).is_none_or(|name| self.verified.insert(name))
            };
            let unread: Vec<_> = chunks.into_iter().filter(is_new).collect();
            let repository = self.repository;
            let read = stream::iter(unread)
                .map(|it| async move { chunk(repository, &it).await.map(Result::err) });
            let bad: Vec<_> = read.buffered(AT_ONCE).try_collect().await?;
            self.bad.extend(bad.into_iter().flatten());
        }
        Ok(rows)
    }

    async fn objects(&mut self, objects: Vec<ObjectRef>) -> Result<(), CliError> {
        let mut unread = Vec::new();
        for object in objects {
            let Some(names) = object.name().and_then(|_| object.parts()) else {
                self.bad.push(BadPart::new(&object.path, &UNKNOWN));
                continue;
            };
            for (name, at) in names.into_iter().zip(pieces(object.bytes)) {
                if self.verified.insert(name) {
                    unread.push((object.clone(), at));
                }
            }
        }
        let repository = self.repository;
        let read = stream::iter(unread).map(|(object, at)| async move {
            piece(repository, &object, at).await.map(Result::err)
        });
        let bad: Vec<_> = read.buffered(AT_ONCE).try_collect().await?;
        self.bad.extend(bad.into_iter().flatten());
        Ok(())
    }
}
