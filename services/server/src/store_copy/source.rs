//! The store that is copied, which no server has open.

use std::{path::Path, sync::Arc};

use trestle_command::errors::CliError;
use trestle_kv::{Engine, Entry, Keyspace};
use trestle_kv_fjall::{FjallEngine, StoreReader};
use trestle_kv_postgres::{PostgresAddress, PostgresEngine};
use trestle_model::time::{Clock as _, SystemClock, Ticks};
use trestle_objects::{ObjectsUrl, SourceObjects};
use xxhash_rust::xxh3::xxh3_128;

use super::{
    failure::{blocking, broken, unopened, unreached, unread},
    marker,
    page::{PAGE, RowPage},
    place::StorePlace,
};
use crate::{database, members, settings::StorageSettings, storage, store_id};

/// Rows to read.
#[derive(Clone)]
pub(crate) enum SourceRows {
    /// Of a data directory, which is locked.
    Directory(Arc<StoreReader>),
    /// Of a database.
    Engine(Arc<dyn Engine>),
}

impl SourceRows {
    /// The rows of a keyspace that follow a key.
    pub(super) async fn page(
        &self,
        keyspace: &Keyspace,
        after: Option<&[u8]>,
    ) -> Result<RowPage, CliError> {
        let reader = match self {
            Self::Engine(engine) => return RowPage::read(&**engine, keyspace, after).await,
            Self::Directory(reader) => Arc::clone(reader),
        };
        let (name, after) = (keyspace.name, after.map(<[u8]>::to_vec));
        blocking(move || page_of(&reader, name, after.as_deref())).await?
    }
}

fn page_of(reader: &StoreReader, name: &str, after: Option<&[u8]>) -> Result<RowPage, CliError> {
    let (mut rows, mut bytes) = (Vec::<Entry>::new(), 0);
    for row in reader.rows(name, after).map_err(|error| unread(&error))? {
        let row = row.map_err(|error| unread(&error))?;
        bytes += row.key.len() + row.value.len();
        rows.push(row);
        if rows.len() >= PAGE.rows || bytes >= PAGE.bytes {
            let next = rows.last().map(|row| row.key.to_vec());
            return Ok(RowPage { rows, next });
        }
    }
    Ok(RowPage { rows, next: None })
}

/// See the module.
pub(super) struct SourceStore {
    pub(super) rows: SourceRows,
    pub(super) objects: SourceObjects,
    /// Where the objects are, if not in files of a data directory.
    pub(super) url: Option<ObjectsUrl>,
    pub(super) has_objects: bool,
    /// The store and its state, which each change of it changes.
    pub(super) state: String,
    /// No version, and no time that the store has shown, is greater.
    pub(super) floor: Ticks,
    /// A database, and the floor of its versions when it was opened.
    opened: Option<(PostgresAddress, Ticks)>,
}

impl SourceStore {
    /// Opens a store. It is not changed, but for what a data directory needs that was not closed.
    ///
    /// # Errors
    /// A place without a store, one that is served or unfinished, or a failed store.
    pub(super) async fn open(place: &StorePlace) -> Result<Self, CliError> {
        match place {
            StorePlace::Directory(path) => Self::in_directory(path).await,
            StorePlace::Database(address) => Self::in_database(address).await,
        }
    }

    async fn in_directory(path: &Path) -> Result<Self, CliError> {
        let settings = StorageSettings { data_dir: path.to_owned(), ..StorageSettings::default() };
        storage::check_restored(&settings).map_err(|error| CliError::Usage(error.to_string()))?;
        let rows = storage::engine_dir(&settings);
        if !FjallEngine::exists(&rows).map_err(|error| unopened(&error))? {
            let text = format!("there is no store in --from: `{}`", path.display());
            return Err(CliError::Usage(text));
        }
        let reader = blocking(move || StoreReader::open(&rows, storage::keyspaces())).await?;
        let reader = reader.map_err(|error| unopened(&error))?;
        let floor = reader.version_floor();
        let url = SourceObjects::url_of(path).map_err(|error| broken(&error))?;
        let in_files = trestle_objects::objects_in(path).map_err(|error| broken(&error))?;
        let id = store_id::of(path).map_err(|error| unopened(&error))?;
        Ok(Self {
            rows: SourceRows::Directory(Arc::new(reader)),
            objects: SourceObjects::of(path).map_err(|error| broken(&error))?,
            has_objects: url.is_some() || in_files.is_some(),
            url,
            state: format!("directory {id} {}", floor.get()),
            floor: floor.max(SystemClock.now()),
            opened: None,
        })
    }

    async fn in_database(address: &PostgresAddress) -> Result<Self, CliError> {
        let shown = address.shown();
        if !PostgresEngine::exists(address).await.map_err(|error| unreached(&error))? {
            return Err(CliError::Usage(format!("there is no store in --from: `{shown}`")));
        }
        let engine = database::open_at(address.clone()).await.map_err(|error| unreached(&error))?;
        let floor = engine.version_floor();
        let engine: Arc<dyn Engine> = engine;
        let failed = |error| unread(&error);
        if let Some(text) = marker::of_database(&*engine).await.map_err(failed)? {
            let from = marker::shown(&text);
            let text = format!("--from has an unfinished copy itself: from=`{from}`");
            return Err(CliError::Usage(text));
        }
        check_stopped(&*engine, "source").await?;
        let secret = members::secret_row(&*engine).await.map_err(failed)?;
        let record = database::binding_text(&engine).await.map_err(|error| broken(&error))?;
        let (objects, url) =
            SourceObjects::of_record(record.as_deref()).map_err(|error| broken(&error))?;
        // Not the secret itself: the target has the text.
        let id = xxh3_128(&secret.unwrap_or_default());
        Ok(Self {
            state: format!("database {id:032x} {}", floor.get()),
            floor: floor.max(engine.now()),
            opened: Some((address.clone(), floor)),
            rows: SourceRows::Engine(engine),
            objects,
            has_objects: url.is_some(),
            url,
        })
    }

    /// Checks that no server was started meanwhile. A directory is locked.
    ///
    /// # Errors
    /// One was, or a failed store.
    pub(super) async fn check_unchanged(&self) -> Result<(), CliError> {
        let (SourceRows::Engine(engine), Some((address, floor))) = (&self.rows, &self.opened)
        else {
            return Ok(());
        };
        check_stopped(&**engine, "source").await?;
        // The first change of each process raises the floor.
        let again = database::open_at(address.clone()).await.map_err(|error| unreached(&error))?;
        if again.version_floor() == *floor {
            return Ok(());
        }
        let text = "a server changed the source during the copy: empty the target, and copy again";
        Err(CliError::Source { text: text.to_owned(), busy: false })
    }
}

/// Checks that no process serves a database, the source or the target.
pub(super) async fn check_stopped(engine: &dyn Engine, side: &str) -> Result<(), CliError> {
    let serving = members::serving(engine).await.map_err(|error| unread(&error))?;
    if serving.is_empty() {
        return Ok(());
    }
    let text = format!(
        "servers have the {side} open: addresses=`{}`; stop them (one that was killed counts for 10 seconds)",
        serving.join(", ")
    );
    Err(CliError::Source { text, busy: true })
}
