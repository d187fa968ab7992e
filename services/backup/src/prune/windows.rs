//! Which windows of changes a prune deletes.
//!
//! Windows are put without an entry at the target, at any time, and pieces of objects before the windows that name
//! them. So nothing young is deleted where there are windows: neither a window, whose backup may be on its way, nor a
//! part, whose window may be.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::ObjectMeta;
use trestle_command::errors::CliError;

use crate::{
    coverage::Coverage,
    failure::broken,
    manifest::BackupManifest,
    repository::Repository,
    verify::{self, AT_ONCE},
    window::{CHANGES, WindowName},
};

/// What is younger is kept.
const YOUNG: TimeDelta = TimeDelta::days(1);

/// The windows at a target.
pub(super) struct PrunedWindows {
    /// Files to delete: windows before the names of their parts.
    pub(super) dropped: Vec<ObjectMeta>,
    /// How many of them are windows.
    pub(super) count: u64,
    /// The names of the parts of those that are kept, by half of each.
    pub(super) named: HashSet<u128>,
    /// Parts that were written before are old; none if parts of any age are unused where nothing names them.
    pub(super) young_since: Option<DateTime<Utc>>,
}

/// Divides the windows into those that kept backups and the present need, and others.
///
/// # Errors
/// The target, or a kept window whose names of parts cannot be read.
pub(super) async fn prune(
    repository: &Repository,
    kept: &[BackupManifest],
    now: DateTime<Utc>,
) -> Result<PrunedWindows, CliError> {
    let found = repository.list(CHANGES).await?;
    let young_since = (!found.is_empty()).then(|| now - YOUNG);
    let name = |file: &ObjectMeta| {
        let path = file.location.as_ref();
        WindowName::of_path(path).or_else(|| WindowName::of_parts_path(path))
    };
    let window = |file: &ObjectMeta| WindowName::of_path(file.location.as_ref());
    let windows: Vec<_> = found.iter().filter_map(window).collect();
    let coverage = Coverage::new(windows.clone());
    let mut needed: HashSet<WindowName> = coverage.needed(kept).cloned().collect();
    let is_young =
        |file: &&ObjectMeta| young_since.is_some_and(|since| file.last_modified >= since);
    needed.extend(found.iter().filter(is_young).filter_map(name));
    // Names without their window may be there too.
    let named = parts(repository, windows.iter().filter(|name| needed.contains(name))).await?;
    // Files with other names are not those of this version, and stay.
    let mut dropped: Vec<_> = found
        .into_iter()
        .filter(|file| name(file).is_some_and(|name| !needed.contains(&name)))
        .collect();
    dropped.sort_by_key(|file| window(file).is_none());
    let count = dropped.iter().filter_map(window).count() as u64;
    Ok(PrunedWindows { dropped, count, named, young_since })
}

/// The names of the parts of windows.
async fn parts(
    repository: &Repository,
    windows: impl Iterator<Item = &WindowName>,
) -> Result<HashSet<u128>, CliError> {
    let windows: Vec<_> = windows.filter(|window| window.parts > 0).cloned().collect();
    let read = stream::iter(windows)
        .map(|window| async move { verify::window_parts(repository, &window).await });
    let mut read = std::pin::pin!(read.buffered(AT_ONCE));
    let mut named = HashSet::new();
    while let Some(names) = read.try_next().await? {
        // What it names must not be deleted.
        let names = names.map_err(|bad| broken(&bad))?;
        named.extend(names.iter().map(crate::names::PartName::mark));
    }
    Ok(named)
}
