//! The store that a copy becomes.

use std::sync::Arc;

use trestle_command::errors::CliError;
use trestle_kv::{CommitError, Engine, Keyspace, ScanLimit};
use trestle_kv_postgres::{PostgresAddress, PostgresEngine};
use trestle_objects::{ObjectStorage, ObjectsUrl};
use uuid::Uuid;

use super::{
    directory::CopyDirectory,
    failure::{taken_over, unopened_objects, unreached, unread, unwritten},
    marker::{self, CopyMarker, CopyRefused, CopyStart, HeldMarker},
    page::span,
    place::{CopyPlaces, StorePlace},
    rows::{PAUSE, TargetRows},
    source::{SourceStore, check_stopped},
};
use crate::database;

/// See the module.
pub(super) struct TargetStore {
    pub(super) rows: TargetRows,
    pub(super) objects: Option<ObjectStorage>,
    pub(super) admitted: CopyStart,
    /// None for a database.
    directory: Option<CopyDirectory>,
}

impl TargetStore {
    /// Opens a place that is empty, or has the beginning of a copy of this source, and marks it.
    ///
    /// # Errors
    /// A place of something else, or one that is in use or fails.
    pub(super) async fn open(places: &CopyPlaces, source: &SourceStore) -> Result<Self, CliError> {
        let marker = CopyMarker {
            source: source.state.clone(),
            from: places.from.shown(),
            run: Uuid::new_v4().to_string(),
        };
        match &places.to {
            StorePlace::Directory(path) => {
                let directory = CopyDirectory::begin(path, &marker)
                    .map_err(|error| error.into_command(&places.to))?;
                let engine = directory.engine(source.floor).await?;
                let disk = engine.disk_space();
                if let Some(url) = &places.url {
                    probe(url).await?;
                }
                let objects = directory.objects(places.url.as_ref(), disk).await?;
                let rows = TargetRows { engine, marker: None, pause: PAUSE };
                let admitted = directory.admitted;
                Ok(Self { rows, objects: Some(objects), admitted, directory: Some(directory) })
            }
            StorePlace::Database(address) => {
                Self::in_database(address, places, (source, marker)).await
            }
        }
    }

    async fn in_database(
        address: &PostgresAddress,
        places: &CopyPlaces,
        (source, own): (&SourceStore, CopyMarker),
    ) -> Result<Self, CliError> {
        // A database of something else is not changed.
        PostgresEngine::exists(address).await.map_err(|error| unreached(&error))?;
        let database =
            database::open_at(address.clone()).await.map_err(|error| unreached(&error))?;
        let engine: Arc<dyn Engine> = Arc::<PostgresEngine>::clone(&database);
        let found = marker::of_database(&*engine).await.map_err(|error| unread(&error))?;
        let is_empty = is_empty(&*engine).await?;
        let admitted = marker::admit(found.as_deref(), is_empty, &own.source)
            .map_err(|error| places.to.refused(&error))?;
        let held = HeldMarker::put(&*engine, found, &own).await;
        let held = held.map_err(|error| unwritten(&error))?.ok_or_else(taken_over)?;
        // A server that started since has rows, or finds the marker when it writes the one of itself.
        match admitted {
            CopyStart::New if !self::is_empty(&*engine).await? => {
                held.remove(&*engine).await.map_err(|error| unwritten(&error))?;
                return Err(places.to.refused(&CopyRefused::Occupied));
            }
            CopyStart::New => {}
            CopyStart::Resumed => check_stopped(&*engine, "target").await?,
        }
        database.raise_floor(source.floor).await.map_err(|error| unreached(&error))?;
        let objects = match &places.url {
            Some(url) => {
                probe(url).await?;
                let opened = database::open_objects_at(url, &engine).await;
                Some(opened.map_err(|error| unopened_objects(&error))?)
            }
            None => None,
        };
        let rows = TargetRows { engine, marker: Some(held), pause: PAUSE };
        Ok(Self { rows, objects, admitted, directory: None })
    }

    /// Makes it a store that servers start on.
    ///
    /// # Errors
    /// Another command continues the copy, or a failed store.
    pub(super) async fn finish(self) -> Result<(), CliError> {
        let Self { rows, objects, directory, .. } = self;
        let TargetRows { engine, marker, .. } = rows;
        drop(objects);
        if let Some(marker) = marker {
            let removed = match marker.remove(&*engine).await {
                // It may be gone nevertheless.
                Err(error @ CommitError::Unknown { .. }) => {
                    match marker::of_database(&*engine).await {
                        Ok(None) => true,
                        _ => return Err(unwritten(&error)),
                    }
                }
                removed => removed.map_err(|error| unwritten(&error))?,
            };
            return if removed { Ok(()) } else { Err(taken_over()) };
        }
        match directory {
            Some(directory) => directory.finish(engine).await,
            None => Ok(()),
        }
    }
}

/// Asks a place for objects before the target has it: one that is not there, such as a mistyped one, could not be
/// replaced later.
async fn probe(url: &ObjectsUrl) -> Result<(), CliError> {
    ObjectStorage::probe(url).await.map_err(|error| unopened_objects(&error))
}

/// Whether a database has no row but a marker.
async fn is_empty(engine: &dyn Engine) -> Result<bool, CliError> {
    let is_marker = |keyspace: &Keyspace| keyspace.name == marker::KEYSPACE.name;
    for keyspace in database::keyspaces().into_iter().filter(|it| !is_marker(it)) {
        let scan = engine.scan(&span(&keyspace), ScanLimit { rows: 1, bytes: 1 }).await;
        if !scan.map_err(|error| unread(&error))?.entries.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}
