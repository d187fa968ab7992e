//! The store in a database, in place of a data directory.

use std::{fs, sync::Arc};

use tracing::{info, warn};
use trestle_kv::Engine;
use trestle_kv_postgres::{
    PostgresAddress, PostgresEngine, PostgresError, PostgresOptions, ServerStatus,
};

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
    keyspaces.push(members::KEYSPACE);
    let options = PostgresOptions::new(address, keyspaces);
    let engine = Box::pin(PostgresEngine::open(options)).await?;
    if let Some(risk) = risk(engine.server()) {
        warn!("{risk}");
    }
    Ok(Some(Arc::new(engine)))
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
