//! Copying the objects of a data directory.
//!
//! An object never changes, so its name shows whether it was sent; it is read only if it was not.

use std::{path::Path, sync::Arc};

use futures::StreamExt as _;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, path::Path as ObjectPath};
use trestle_command::errors::CliError;
use trestle_objects::SourceObjects;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    ObjectAreaName, ObjectName,
    create::{BackupWriter, broken, each, send_lists},
    lists::ObjectRef,
    manifest::{Damage, StoredObjects},
    spool::Spool,
};

/// The bytes of every piece of an object but the last: an extent of a blob is one piece.
pub(crate) const PIECE_BYTES: u64 = 8 * 1024 * 1024;
/// Objects that are copied at a time.
const AT_ONCE: usize = 4;
/// Most objects that a manifest names as damaged; more are only counted.
const DAMAGE_MAX: usize = 10_000;
/// Contents that rarely shrink.
const LEVEL: i32 = 1;

/// What was copied.
#[derive(Default)]
pub(crate) struct CopiedObjects {
    pub(crate) stored: StoredObjects,
    pub(crate) damage: Vec<Damage>,
}

/// Copies objects of a data directory.
///
/// # Errors
/// The target, or objects that cannot be reached at all.
pub(crate) async fn copy(
    writer: &BackupWriter,
    data_dir: &Path,
    mut names: Vec<ObjectName>,
    spool: &Spool,
) -> Result<CopiedObjects, CliError> {
    let source = SourceObjects::of(data_dir).map_err(|error| broken(&error))?;
    names.sort_unstable();
    names.dedup();
    let mut copied = CopiedObjects::default();
    let results = each(names).map(|name| {
        let store = match name.area {
            ObjectAreaName::Blobs => Arc::clone(&source.blobs),
            ObjectAreaName::Logs => Arc::clone(&source.logs),
        };
        async move {
            spool.check()?;
            let outcome = copy_one(writer, &*store, &name).await?;
            Ok::<_, CliError>((name, outcome))
        }
    });
    let (stored, damage) = (&mut copied.stored, &mut copied.damage);
    let references = results.buffered(AT_ONCE).filter_map(|result| {
        let reference = result.map(|(name, outcome)| match outcome {
            Ok(bytes) => {
                stored.count += 1;
                stored.bytes += bytes;
                Some(ObjectRef::new(&name, bytes))
            }
            Err(reason) => {
                let object = format!("{}/{}", area_name(name.area), name.path);
                if damage.len() < DAMAGE_MAX {
                    damage.push(Damage { object, reason });
                }
                None
            }
        });
        std::future::ready(reference.transpose())
    });
    let lists = send_lists(writer, references).await?;
    copied.stored.lists = lists;
    Ok(copied)
}

/// The length of an object that was copied, or why it cannot be read.
async fn copy_one(
    writer: &BackupWriter,
    store: &dyn ObjectStore,
    name: &ObjectName,
) -> Result<Result<u64, String>, CliError> {
    let path = ObjectPath::from(name.path.as_str());
    let bytes = match store.head(&path).await {
        Ok(found) => found.size,
        Err(error) => return unreadable(error),
    };
    for (index, start) in pieces(bytes) {
        let piece = piece_path(name, index);
        if writer.repository.has(&piece) {
            continue;
        }
        let end = bytes.min(start + PIECE_BYTES);
        let read = match store.get_range(&path, start..end).await {
            Ok(read) => read,
            Err(error) => return unreadable(error),
        };
        if read.len() as u64 != end - start {
            return Ok(Err("it became shorter while it was read".to_owned()));
        }
        writer.throttle.count(read.len()).await;
        writer.send(&piece, read.into(), LEVEL).await?;
    }
    Ok(Ok(bytes))
}

/// An object that is absent is damage; a store that fails ends the backup, which can be continued.
fn unreadable(error: Error) -> Result<Result<u64, String>, CliError> {
    match error {
        Error::NotFound { .. } => Ok(Err("it is missing".to_owned())),
        error => Err(CliError::Source {
            text: format!("the objects of the data directory cannot be read: {error}"),
            busy: true,
        }),
    }
}

/// The indices of the pieces of an object, with the offset that each begins at.
pub(crate) fn pieces(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..bytes.div_ceil(PIECE_BYTES).max(1)).map(|index| (index, index * PIECE_BYTES))
}

/// The path of a piece.
pub(crate) fn piece_path(name: &ObjectName, index: u64) -> String {
    let (area, path) = (area_name(name.area), &name.path);
    format!("objects/{area}/{:02x}/{path}-{index}", xxh3_64(path.as_bytes()) & 0xFF)
}

pub(crate) fn area_name(area: ObjectAreaName) -> &'static str {
    match area {
        ObjectAreaName::Blobs => "blob",
        ObjectAreaName::Logs => "log",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_a_piece_for_each_8_mib_and_one_at_least() {
        let pieces = |bytes| pieces(bytes).collect::<Vec<_>>();
        assert_eq!(pieces(0), [(0, 0)]);
        assert_eq!(pieces(PIECE_BYTES), [(0, 0)]);
        assert_eq!(pieces(PIECE_BYTES + 1), [(0, 0), (1, PIECE_BYTES)]);
    }

    #[test]
    fn areas_are_apart_in_the_paths_of_pieces() {
        let path = |area| piece_path(&ObjectName { area, path: "main/a".to_owned() }, 3);
        let (blob, log) = (path(ObjectAreaName::Blobs), path(ObjectAreaName::Logs));
        assert!(blob.starts_with("objects/blob/") && blob.ends_with("/main/a-3"), "{blob}");
        assert_ne!(blob, log);
    }
}
