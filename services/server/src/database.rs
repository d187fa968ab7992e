//! The store in a database, in place of a data directory.

mod binding;
mod telemetry;
pub(crate) mod text_row;

use std::{fs, io, path::Path, sync::Arc};

use opentelemetry::metrics::Meter;
use tracing::{info, warn};
use trestle_kv::{Engine, EngineError, Keyspace};
use trestle_kv_postgres::{
    PostgresAddress, PostgresEngine, PostgresError, PostgresOptions, ServerStatus,
};
use trestle_objects::{BindingRecord as _, ObjectStorage, ObjectsUrl, OpenObjectsError};
use trestle_runtime::task::Task;

use self::binding::BindingRow;
use crate::{
    members,
    process_error::ProcessError,
    settings::{Settings, StorageSettings},
    storage,
    store_copy::marker,
};

/// The database of a process.
pub(crate) struct OpenedDatabase {
    /// Its engine.
    pub(crate) engine: Arc<dyn Engine>,
    /// Asks the database about itself, for metrics.
    pub(crate) task: Task,
}

/// Opens the database of these settings, if they have one. Its metrics are on `meter`.
///
/// # Errors
/// [`ProcessError::Database`], [`ProcessError::Copying`].
pub(crate) async fn open(
    settings: &Settings,
    meter: &Meter,
) -> Result<Option<OpenedDatabase>, ProcessError> {
    let Some(address) = address(&settings.storage)? else { return Ok(None) };
    info!(engine = address.shown(), "opening the store");
    let on_group = storage::group_observer(meter);
    let options = PostgresOptions { on_group, ..PostgresOptions::new(address, keyspaces()) };
    let engine = open_with(options).await?;
    if let Some(risk) = risk(engine.server()) {
        warn!("{risk}");
    }
    let unfinished = marker::of_database(&*engine).await;
    let unreadable =
        |error: EngineError| PostgresError::Unavailable { reason: error.to_string().into() };
    if let Some(text) = unfinished.map_err(unreadable)? {
        return Err(ProcessError::Copying { from: marker::shown(&text) });
    }
    let task = telemetry::observe(meter, &engine);
    Ok(Some(OpenedDatabase { engine, task }))
}

/// Opens a database, also one with an unfinished copy.
///
/// # Errors
/// Every kind of [`PostgresError`].
pub(crate) async fn open_at(
    address: PostgresAddress,
) -> Result<Arc<PostgresEngine>, PostgresError> {
    open_with(PostgresOptions::new(address, keyspaces())).await
}

async fn open_with(options: PostgresOptions) -> Result<Arc<PostgresEngine>, PostgresError> {
    Ok(Arc::new(Box::pin(PostgresEngine::open(options)).await?))
}

/// The keyspaces of a database: those of a data directory, of its processes, of its objects, and of a copy.
pub(crate) fn keyspaces() -> Vec<Keyspace> {
    let own = [members::KEYSPACE, binding::KEYSPACE, marker::KEYSPACE];
    storage::keyspaces().into_iter().chain(own).collect()
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
    open_objects_at(&url, engine).await
}

/// Opens the object store of a database at a URL.
///
/// # Errors
/// A store that cannot be used, or is not that of this database.
pub(crate) async fn open_objects_at(
    url: &ObjectsUrl,
    engine: &Arc<dyn Engine>,
) -> Result<ObjectStorage, OpenObjectsError> {
    ObjectStorage::open_shared(Arc::new(BindingRow(Arc::clone(engine))), url).await
}

/// What a database keeps of its object store.
///
/// # Errors
/// A failed read.
pub(crate) async fn binding_text(
    engine: &Arc<dyn Engine>,
) -> Result<Option<String>, OpenObjectsError> {
    BindingRow(Arc::clone(engine)).read().await
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
    let password = password_of(file).map_err(|error| PostgresError::Address {
        rule: format!(
            "has no password: {error}: storage.engine_password_file=`{}`",
            file.display()
        ),
    })?;
    Ok(Some(address.with_password(&password)))
}

/// The password in a file.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn password_of(file: &Path) -> io::Result<String> {
    let password = fs::read_to_string(file)?;
    Ok(password.trim_end_matches(['\r', '\n']).to_owned())
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
