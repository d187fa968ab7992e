//! Copying the objects of a data directory.
//!
//! An object never changes, so its name, with what its store distinguishes it by, shows whether it was sent; it is read
//! only if it was not. The name alone is not enough: a data directory that was put back from a copy uses names again.

use std::{collections::HashSet, path::Path};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt as _, path::Path as ObjectPath};
use trestle_command::errors::CliError;
use trestle_objects::SourceObjects;

use crate::{
    failure::broken,
    lists::{Damage, ObjectRef},
    manifest::StoredObjects,
    names::{NameKey, PartName},
    pieces::{PIECE_BYTES, pieces},
    rules::{NamedObject, ObjectName},
    spool::Spool,
    writer::{BackupWriter, send_lists},
};

/// Objects that are copied at a time.
const AT_ONCE: usize = 4;
/// Most objects that a manifest names as damaged; more are left out of it.
pub(crate) const DAMAGE_MAX: usize = 10_000;
/// Contents that rarely shrink.
const LEVEL: i32 = 1;

/// What was copied.
#[derive(Default)]
pub(crate) struct CopiedObjects {
    pub(crate) stored: StoredObjects,
    pub(crate) damage: Vec<Damage>,
}

/// Why an object of a data directory is not in a backup.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LostObject {
    /// There is none of its name.
    #[error("it is missing")]
    Missing,
    /// It is there, in part; how, in words.
    #[error("{0}")]
    NotWhole(String),
}

/// Copies objects of a data directory.
///
/// # Errors
/// The target, or objects that cannot be reached at all.
pub(crate) async fn copy(
    writer: &BackupWriter,
    data_dir: &Path,
    mut named: Vec<NamedObject>,
    spool: &Spool,
) -> Result<CopiedObjects, CliError> {
    let source = SourceObjects::of(data_dir).map_err(|error| broken(&error))?;
    named.sort_unstable();
    named.dedup();
    let mut copied = CopiedObjects::default();
    let held = &|| spool.check();
    let results = stream::iter(named).map(|object| {
        let source = &source;
        async move {
            let outcome = copy_one(writer, (source, held), &object).await?;
            Ok::<_, CliError>((object.name, outcome))
        }
    });
    let (stored, damage) = (&mut copied.stored, &mut copied.damage);
    let (mut found, mut missing) = (HashSet::new(), HashSet::new());
    let references = results.buffered(AT_ONCE).filter_map(|result| {
        let reference = result.map(|(name, outcome)| match outcome {
            Ok(object) => {
                stored.count += 1;
                stored.bytes += object.bytes;
                found.insert(name.area);
                Some(object)
            }
            Err(lost) => {
                let object = name.to_string();
                let area = match lost {
                    LostObject::Missing => &mut missing,
                    // So its disk is mounted.
                    LostObject::NotWhole(_) => &mut found,
                };
                area.insert(name.area);
                if damage.len() < DAMAGE_MAX {
                    damage.push(Damage { object, reason: lost.to_string() });
                }
                None
            }
        });
        std::future::ready(reference.transpose())
    });
    let lists = send_lists(writer, references).await?;
    if let Some(area) = missing.difference(&found).next() {
        let area = area.text();
        return Err(CliError::Source {
            text: format!(
                "every object of the data directory is missing, is its disk mounted? area=`{area}`"
            ),
            busy: true,
        });
    }
    copied.stored.lists = lists;
    Ok(copied)
}

/// Checks that objects are still held: an object that is missing is damage only then.
pub(crate) type HeldCheck<'a> = &'a (dyn Fn() -> Result<(), CliError> + Sync);

/// Copies one; the reason if it is not whole or cannot be read.
///
/// # Errors
/// The target, objects that cannot be reached at all, or objects that are no longer held.
pub(crate) async fn copy_one(
    writer: &BackupWriter,
    (source, held): (&SourceObjects, HeldCheck<'_>),
    object: &NamedObject,
) -> Result<Result<ObjectRef, LostObject>, CliError> {
    let name = &object.name;
    held()?;
    let store: &dyn ObjectStore = name.of_area(&*source.blobs, &*source.logs);
    let path = ObjectPath::from(name.path.as_str());
    let found = match store.head(&path).await {
        Ok(found) => found,
        Err(error) => return unreadable(error, held),
    };
    if let Some(reason) = object.difference(found.size) {
        return Ok(Err(LostObject::NotWhole(reason)));
    }
    let parts = object_parts(&writer.names, name, &found);
    for (index, start) in pieces(found.size) {
        let piece = parts.piece(index);
        if writer.repository.has(piece) {
            continue;
        }
        let end = found.size.min(start + PIECE_BYTES);
        let read = match end - start {
            // A store has no empty range.
            0 => Ok(Bytes::new()),
            _ => store.get_range(&path, start..end).await,
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => return unreadable(error, held),
        };
        if read.len() as u64 != end - start {
            let reason = "it became shorter while it was read".to_owned();
            return Ok(Err(LostObject::NotWhole(reason)));
        }
        writer.throttle.count(read.len()).await;
        writer.send(piece, read.into(), LEVEL).await?;
    }
    Ok(Ok(ObjectRef::new(name, found.size, parts)))
}

/// What the names of the pieces of an object are derived from: its own, and what distinguishes it from another one of
/// its name, which is its entity tag, else the time when it was written.
fn object_parts(names: &NameKey, name: &ObjectName, found: &ObjectMeta) -> PartName {
    let time = || found.last_modified.to_rfc3339();
    let mark = found.e_tag.clone().unwrap_or_else(time);
    let (area, path, size) = (name.area.text(), &name.path, found.size);
    names.of_content(format!("object\0{area}\0{path}\0{size}\0{mark}").as_bytes())
}

/// An object that is absent is damage, while the objects are held; a store that fails ends the backup, which can be
/// continued.
fn unreadable<T>(error: Error, held: HeldCheck<'_>) -> Result<Result<T, LostObject>, CliError> {
    held()?;
    match error {
        Error::NotFound { .. } => Ok(Err(LostObject::Missing)),
        error => Err(CliError::Source {
            text: format!("the objects of the data directory cannot be read: {error}"),
            busy: true,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::ObjectAreaName;

    #[test]
    fn pieces_have_other_names_where_anything_of_the_object_differs() {
        let folder = tempfile::tempdir().unwrap();
        let names = NameKey::of(folder.path()).unwrap();
        let name = |area, path: &str| ObjectName { area, path: path.to_owned() };
        let meta = |size, tag: Option<&str>, seconds| ObjectMeta {
            location: ObjectPath::from("a"),
            last_modified: chrono::DateTime::from_timestamp(seconds, 0).unwrap(),
            size,
            e_tag: tag.map(str::to_owned),
            version: None,
        };
        let blob = name(ObjectAreaName::Blobs, "a");
        let first = object_parts(&names, &blob, &meta(1, Some("t"), 1));
        assert!(first == object_parts(&names, &blob, &meta(1, Some("t"), 2)), "the tag counts");
        let log = name(ObjectAreaName::Logs, "a");
        let other = name(ObjectAreaName::Blobs, "b");
        for (name, meta) in [
            (&log, meta(1, Some("t"), 1)),
            (&other, meta(1, Some("t"), 1)),
            (&blob, meta(2, Some("t"), 1)),
            (&blob, meta(1, Some("u"), 1)),
            (&blob, meta(1, None, 1)),
        ] {
            assert!(first != object_parts(&names, name, &meta), "{name:?} {meta:?}");
        }
        let untagged = |seconds| object_parts(&names, &blob, &meta(1, None, seconds));
        assert!(untagged(1) == untagged(1) && untagged(1) != untagged(2));
    }
}
