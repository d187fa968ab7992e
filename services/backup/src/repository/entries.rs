//! Entries of who works at a target: backups and prunes exclude each other.

use std::time::Duration;

use chrono::{DateTime, Utc};
use object_store::{ObjectMeta, ObjectStoreExt as _, path::Path};
use trestle_command::errors::CliError;

use super::Repository;

/// Entries of who makes a backup.
pub(crate) const RUNNING: &str = "running";
/// Entries of who deletes.
pub(crate) const PRUNING: &str = "pruning";
/// Entries of who has ended, where the others cannot be deleted.
const ENDED: &str = "ended";
/// After this time an entry of either kind is that of a process that was killed: both stop long before.
pub(crate) const ENTRY_LASTS: Duration = Duration::from_secs(24 * 60 * 60);

impl Repository {
    /// Registers who works here, unless one of the other kind does. By the clock of the place alone.
    ///
    /// # Errors
    /// One of the other kind works here.
    pub(crate) async fn enter(&self, kind: &str, other: &str, id: &str) -> Result<Path, CliError> {
        let path = format!("{kind}/{id}");
        self.put(&path, id.as_bytes().to_vec()).await?;
        let location = Path::from(path);
        let own = self.target.store.head(&location).await.map_err(|error| self.failed(&error))?;
        let ended = self.list(ENDED).await?;
        let is_ended = |entry: &ObjectMeta| {
            ended.iter().any(|it| it.location.filename() == entry.location.filename())
        };
        let lasts = i64::try_from(ENTRY_LASTS.as_secs()).unwrap_or(i64::MAX);
        for entry in self.list(other).await? {
            let age = own.last_modified.signed_duration_since(entry.last_modified).num_seconds();
            if age < lasts && !is_ended(&entry) {
                self.leave(&location).await?;
                let (text, entry) = (&self.text, entry.location);
                return Err(CliError::Source {
                    text: format!(
                        "the target is in use, try again later: target=`{text}`, entry=`{entry}`"
                    ),
                    busy: true,
                });
            }
        }
        Ok(location)
    }

    /// When an entry was written, by the clock of the place.
    ///
    /// # Errors
    /// The place.
    pub(crate) async fn written_at(&self, entry: &Path) -> Result<DateTime<Utc>, CliError> {
        let found = self.target.store.head(entry).await.map_err(|error| self.failed(&error))?;
        Ok(found.last_modified)
    }

    /// Removes an entry. Where the place refuses deletes, another one marks that it has ended.
    ///
    /// # Errors
    /// The place refuses that too.
    pub(crate) async fn leave(&self, entry: &Path) -> Result<(), CliError> {
        if self.delete(entry).await.is_ok() {
            return Ok(());
        }
        let id = entry.filename().unwrap_or_default();
        self.put(&format!("{ENDED}/{id}"), id.as_bytes().to_vec()).await
    }

    /// Deletes the entries of who has ended.
    ///
    /// # Errors
    /// The place.
    pub(crate) async fn forget_ended(&self) -> Result<(), CliError> {
        for ended in self.list(ENDED).await? {
            let id = ended.location.filename().unwrap_or_default();
            for kind in [RUNNING, PRUNING] {
                self.delete(&Path::from(format!("{kind}/{id}"))).await?;
            }
            self.delete(&ended.location).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
