//! What `trestle backup` needs of the services: which objects a row names, and what a restore changes.

use std::path::Path;

use trestle_backup::{BackupCommand, ObjectAreaName, ObjectName, StoreRules};
use trestle_kv::Entry;

use crate::{
    args::ConfigFileArgs, process_error::ProcessError, settings::Settings, storage, store_id,
};

/// The rules of every service.
#[must_use]
pub fn rules() -> StoreRules {
    StoreRules {
        keyspaces: storage::keyspaces(),
        objects_of,
        restored,
        store_id: |data_dir| {
            store_id::of(data_dir).map(|id| id.to_string()).map_err(std::io::Error::other)
        },
        engine_dir: storage::ENGINE_DIR,
    }
}

/// Sets the data directory that is backed up, by the configuration if no argument names it.
///
/// # Errors
/// Settings that cannot be used.
pub fn locate(
    command: &mut BackupCommand,
    load: impl FnOnce(Option<&Path>, Option<&Path>) -> Result<Settings, ProcessError>,
) -> Result<(), ProcessError> {
    let source = match command {
        BackupCommand::Create(args) => &mut args.source,
        BackupCommand::Follow(source) => source,
        _ => return Ok(()),
    };
    let file = ConfigFileArgs { config: source.config.clone() }.file();
    let settings = load(file.as_deref(), source.data_dir.as_deref())?;
    source.data_dir = Some(settings.storage.data_dir);
    Ok(())
}

fn objects_of(row: &Entry) -> Result<Vec<ObjectName>, String> {
    let named = |area, paths: Vec<String>| {
        paths.into_iter().map(|path| ObjectName { area, path }).collect::<Vec<_>>()
    };
    let mut objects = named(ObjectAreaName::Blobs, trestle_blob::backup::objects_of(row)?);
    let segment = trestle_log::backup::object_of(row)?;
    objects.extend(named(ObjectAreaName::Logs, segment.into_iter().collect()));
    Ok(objects)
}

fn restored(row: Entry) -> Result<Option<Entry>, String> {
    match trestle_log::backup::is_restored(&row) {
        true => trestle_queue::backup::restored(row).map(Some),
        false => Ok(None),
    }
}
