//! Sends windows, and before each the objects that its rows name.

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    time::Duration,
};

use prost::Message as _;
use trestle_command::errors::CliError;
use trestle_kv::Entry;
use trestle_kv_fjall::LoggedChange;
use trestle_model::time::{Clock as _, SystemClock, Ticks};
use trestle_objects::SourceObjects;

use crate::{
    changes::ShippedChanges,
    coverage::Coverage,
    failure::broken,
    lists::{Listed as _, ObjectRef},
    manifest::BackupManifest,
    names::PartName,
    objects,
    repository::PartError,
    rules::{DataDirectory, NamedObject, ObjectName, StoreRules},
    window::{CHANGES, ChangeWindow, WindowGroup, WindowName},
    writer::BackupWriter,
};

/// How long a server that is alive may write no window: longer than idle ones wait.
const SILENT_FOR: Duration = Duration::from_secs(75);
/// What is older than this by the clock here was not written by a server that is alive: clocks differ.
const RECENT: Duration = Duration::from_secs(30 * 60);
/// Objects whose parts are remembered.
const REMEMBERED_MAX: usize = 50_000;

/// Backups among which one of a line is searched.
const BACKUPS_MAX: usize = 16;

/// The path of the file that shows which command has a number of a line.
fn claim_path(line: &str, run: u64) -> String {
    format!("{CHANGES}/{line}/run-{run:016x}")
}

/// Sends windows of a data directory to a target.
pub(super) struct WindowSender {
    writer: BackupWriter,
    source: SourceObjects,
    rules: StoreRules,
    /// What was copied: an object never changes.
    copied: HashMap<ObjectName, ObjectRef>,
    missing: Vec<(String, String)>,
}

/// A window whose objects are at the target.
pub(super) struct PreparedWindow {
    plain: Vec<u8>,
    parts: Vec<PartName>,
}

impl PreparedWindow {
    /// How many pieces of objects it names.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }
}

impl WindowSender {
    /// Prepares a target.
    ///
    /// # Errors
    /// A target of something else, and files that cannot be used.
    pub(super) async fn open(
        store: &DataDirectory,
        target: &str,
        encrypt: Option<PathBuf>,
    ) -> Result<Self, CliError> {
        let writer = BackupWriter::open(store, target, encrypt, None).await?;
        writer.repository.look().await?;
        let source = SourceObjects::of(&store.path).map_err(|error| broken(&error))?;
        let (rules, copied, missing) = (store.rules.clone(), HashMap::new(), Vec::new());
        Ok(Self { writer, source, rules, copied, missing })
    }

    /// The objects that could not be read since the last call, and why.
    pub(super) fn missing(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.missing)
    }

    /// The windows of a line that are at the target, from a number on.
    ///
    /// # Errors
    /// The target cannot be read.
    pub(super) async fn windows_of(
        &self,
        line: &str,
        from: u64,
    ) -> Result<Vec<WindowName>, CliError> {
        self.writer.repository.windows_of(line, from).await
    }

    /// Which command has a number of a line, if one has.
    ///
    /// # Errors
    /// The target cannot be read.
    pub(super) async fn claimant(&self, line: &str, run: u64) -> Result<Option<String>, CliError> {
        match self.writer.repository.read(&claim_path(line, run)).await {
            Ok(name) => Ok(Some(String::from_utf8_lossy(&name).into_owned())),
            Err(PartError::Missing) => Ok(None),
            Err(PartError::Store(error)) => Err(self.writer.repository.failed(&error)),
            // It is there.
            Err(_) => Ok(Some(String::new())),
        }
    }

    /// Writes that a number of a line has an owner of this name. Returns the name of the one that it has then.
    ///
    /// # Errors
    /// The target.
    pub(super) async fn claim(&self, line: &str, run: u64, name: &str) -> Result<String, CliError> {
        let path = claim_path(line, run);
        self.writer.send_names(path, name.as_bytes().to_vec()).await?;
        self.writer.repository.sync().await?;
        Ok(self.claimant(line, run).await?.unwrap_or_default())
    }

    /// The first window that is needed before the next one of a line, of those at the target from a number on: from the
    /// newest backup of the line on, or from its beginning where it has none. A later look may begin there; none where
    /// some are missing.
    ///
    /// # Errors
    /// The target cannot be read.
    pub(super) async fn needed(
        &self,
        windows: Vec<WindowName>,
        (line, next): (&str, u64),
    ) -> Result<Option<u64>, CliError> {
        let coverage = Coverage::new(windows);
        let base = self.newest_backup(line).await?;
        let Some(last) = next.checked_sub(1) else { return Ok(None) };
        let first = coverage.first_to(base.as_ref(), (line, last));
        // The one before it shows that the first has the beginning of its group.
        Ok(first.map(|first| first.saturating_sub(1)))
    }

    /// The newest backup of a line, if one of the newest is of that line.
    async fn newest_backup(&self, line: &str) -> Result<Option<BackupManifest>, CliError> {
        let repository = &self.writer.repository;
        for id in repository.backups().await?.iter().rev().take(BACKUPS_MAX) {
            // One that cannot be read is found by `verify`.
            let manifest = repository.manifest(id).await.ok();
            let of_line = manifest.filter(|manifest| manifest.line.as_deref() == Some(line));
            if of_line.is_some() {
                return Ok(of_line);
            }
        }
        Ok(None)
    }

    /// Checks that no other server writes to the target: where another line has new windows, whether more come.
    ///
    /// # Errors
    /// Another server does, or the target cannot be read.
    pub(super) async fn check_alone(
        &self,
        shipped: Option<&ShippedChanges>,
    ) -> Result<(), CliError> {
        let is_own = |line: &str| {
            shipped.is_some_and(|it| it.line == line || it.earlier.iter().any(|own| own == line))
        };
        let before = self.newest_windows(is_own).await?;
        if before.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(SILENT_FOR).await;
        let after = self.newest_windows(is_own).await?;
        match after.iter().find(|(line, seq)| before.get(*line) != Some(*seq)) {
            None => Ok(()),
            Some((line, _)) => Err(CliError::Source {
                text: format!(
                    "another server sends its changes to the target, use another path: target=`{}`, line=`{line}`",
                    self.writer.repository.text
                ),
                busy: true,
            }),
        }
    }

    /// The newest window of each line of others that has new ones.
    async fn newest_windows(
        &self,
        is_own: impl Fn(&str) -> bool,
    ) -> Result<HashMap<String, u64>, CliError> {
        let mut newest = HashMap::new();
        let since = SystemClock.now().before(RECENT);
        for found in self.writer.repository.list(CHANGES).await? {
            let Some(name) = WindowName::of_path(found.location.as_ref()) else { continue };
            let modified = Ticks::from_unix(found.last_modified.timestamp(), 0);
            if modified.is_some_and(|modified| modified >= since) && !is_own(&name.line) {
                let seq = newest.entry(name.line).or_insert(name.seq);
                *seq = name.seq.max(*seq);
            }
        }
        Ok(newest)
    }

    /// Copies the objects that rows of a window name.
    ///
    /// # Errors
    /// The target, or objects that cannot be reached at all.
    pub(super) async fn prepare(
        &mut self,
        groups: Vec<WindowGroup>,
    ) -> Result<PreparedWindow, CliError> {
        let mut objects = Vec::new();
        for object in self.named(&groups) {
            let copied = match self.copied.get(&object.name) {
                Some(copied) => Some(copied.clone()),
                None => self.copy(object).await?,
            };
            objects.extend(copied);
        }
        let parts = objects.iter().flat_map(|it| it.parts().unwrap_or_default()).collect();
        let plain = ChangeWindow { groups, objects }.encode_to_vec();
        Ok(PreparedWindow { plain, parts })
    }

    fn named(&self, groups: &[WindowGroup]) -> BTreeSet<NamedObject> {
        let changes = groups.iter().flat_map(|group| group.changes.iter().cloned());
        let written = changes.filter_map(|change| match LoggedChange::from(change) {
            LoggedChange::Put(row) => Some(row),
            _ => None,
        });
        // A row that cannot be read is found by the next backup.
        written.flat_map(|row: Entry| (self.rules.objects_of)(&row).unwrap_or_default()).collect()
    }

    /// Copies one; none where it is missing or not whole, which a restore finds.
    async fn copy(&mut self, object: NamedObject) -> Result<Option<ObjectRef>, CliError> {
        let held = &|| Ok(());
        match objects::copy_one(&self.writer, (&self.source, held), &object).await? {
            Err(lost) => {
                self.missing.push((object.name.to_string(), lost.to_string()));
                Ok(None)
            }
            Ok(copied) => {
                if self.copied.len() >= REMEMBERED_MAX {
                    self.copied.clear();
                }
                self.copied.insert(object.name, copied.clone());
                Ok(Some(copied))
            }
        }
    }

    /// Writes a window, so that it is at the target for good.
    ///
    /// # Errors
    /// The target.
    pub(super) async fn send(
        &self,
        name: &WindowName,
        window: PreparedWindow,
    ) -> Result<(), CliError> {
        let PreparedWindow { plain, parts } = window;
        if !parts.is_empty() {
            let names = parts.iter().flat_map(PartName::bytes).copied().collect();
            self.writer.send_names(name.parts_path(), names).await?;
        }
        // What it names is durable before it is there.
        self.writer.repository.sync().await?;
        self.writer.send_window(name.path(), plain).await?;
        self.writer.repository.sync().await
    }
}
