//! The store in a database, in place of a data directory.

mod binding;

use std::{fs, sync::Arc};

use tracing::{info, warn};
use trestle_kv::Engine;
use trestle_kv_postgres::{
    PostgresAddress, PostgresEngine, PostgresError, PostgresOptions, ServerStatus,
};
use trestle_objects::{ObjectStorage, OpenObjectsError};

use self::binding::BindingRow;
use crate::{
    members,
    process_error::ProcessError,
    settings::{Settings, StorageSettings},
    storage,
};

/// Opens the database of these settings, if they have one.
///
/// # Errors
/// [`ProcessError::Database`].
pub(crate) async fn open(settings: &Settings) -> Result<Option<Arc<dyn Engine>>, ProcessError> {
    let Some(address) = address(&settings.storage)? else { return Ok(None) };
    info!(engine = address.shown(), "opening the store");
    let mut keyspaces = storage::keyspaces();
    keyspaces.extend([members::KEYSPACE, binding::KEYSPACE]);
    let options = PostgresOptions::new(address, keyspaces);
    let engine = Box::pin(PostgresEngine::open(options)).await?;
    if let Some(risk) = risk(engine.server()) {
        warn!("{risk}");
    }
    Ok(Some(Arc::new(engine)))
}

/// Opens the object store of a database, which every process of it uses.
///
/// # Errors
/// A store that cannot be used, or is not that of this database.
pub(crate) async fn open_objects(
    settings: &StorageSettings,
    engine: &Arc<dyn Engine>,
) -> Result<ObjectStorage, OpenObjectsError> {
    let none = || Err("storage.blob_url: required with storage.engine".to_owned());
    let url = settings.blob_url().unwrap_or_else(none).map_err(OpenObjectsError::Store)?;
    ObjectStorage::open_shared(Arc::new(BindingRow(Arc::clone(engine))), &url).await
}

/// The address with its password.
///
/// # Errors
/// A file that cannot be read, without its content.
pub(crate) fn address(
    settings: &StorageSettings,
) -> Result<Option<PostgresAddress>, PostgresError> {
    let Some(address) = settings.engine.as_deref().map(PostgresAddress::parse).transpose()? else {
        return Ok(None);
    };
    let Some(file) = &settings.engine_password_file else { return Ok(Some(address)) };
    let password = fs::read_to_string(file).map_err(|error| PostgresError::Address {
        rule: format!(
            "has no password: {error}: storage.engine_password_file=`{}`",
            file.display()
        ),
    })?;
    Ok(Some(address.with_password(password.trim_end_matches(['\r', '\n']))))
}

/// Why an acknowledged write may be lost with the server, if that is so.
pub(crate) fn risk(server: &ServerStatus) -> Option<String> {
    let ServerStatus { fsync, synchronous_commit, .. } = server;
    (!server.is_durable()).then(|| {
        format!(
            "the database may lose acknowledged writes in a crash: fsync=`{}`, \
             synchronous_commit=`{synchronous_commit}`",
            if *fsync { "on" } else { "off" },
        )
    })
}
