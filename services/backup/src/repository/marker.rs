//! The file that marks a place as one of backups, and names the store and the keys that they are of.

use std::collections::BTreeSet;

use futures::TryStreamExt as _;
use object_store::path::Path;
use serde::{Deserialize, Serialize};
use trestle_command::errors::CliError;
use trestle_objects::CopyTarget;

use super::{BACKUPS, PartError, Repository};
use crate::{
    names::PARTS,
    packed,
    sealed::{Identities, Recipients},
};

const MARKER: &str = "trestle-backup";
const FORMAT: u32 = 2;

#[derive(Serialize, Deserialize)]
struct Marker {
    format: u32,
    store_id: String,
    /// The public keys that its backups are encrypted for; none: they are not.
    recipients: BTreeSet<String>,
}

impl Repository {
    /// An existing place, whose encrypted parts these keys open.
    ///
    /// # Errors
    /// One that cannot be used, or has no backups.
    pub(crate) async fn open(text: &str, keys: Option<Identities>) -> Result<Self, CliError> {
        let target = CopyTarget::open(text).map_err(|error| unusable(text, &error))?;
        let mut repository = Self::of(target, text, keys);
        let marker = repository.marker().await.ok().flatten();
        repository.store_id = marker.map(|marker| marker.store_id);
        match repository.store_id.is_some() || !repository.backups().await?.is_empty() {
            true => Ok(repository),
            false => Err(CliError::Usage(format!(
                "no backups are at this target, it has no file `{MARKER}`: target=`{text}`"
            ))),
        }
    }

    /// Whether a place is marked as one of backups.
    ///
    /// # Errors
    /// One that cannot be read, or whose mark is another.
    pub(crate) async fn is_marked(text: &str) -> Result<bool, CliError> {
        let target = CopyTarget::open(text).map_err(|error| unusable(text, &error))?;
        Ok(Self::of(target, text, None).marker().await?.is_some())
    }

    /// A place for the backups of this store, which is made where it is not there.
    ///
    /// # Errors
    /// One that cannot be used, or that has the backups of another store, or backups for other keys: parts that are
    /// there are not sent again, and so could not be read by all the keys.
    pub(crate) async fn create(
        text: &str,
        store_id: &str,
        recipients: Option<&Recipients>,
    ) -> Result<Self, CliError> {
        let target = CopyTarget::create(text).map_err(|error| unusable(text, &error))?;
        let repository = Self::of(target, text, None);
        let recipients = recipients.map(Recipients::texts).unwrap_or_default();
        if repository.marker().await?.is_none() {
            repository.check_empty().await?;
            let (store_id, recipients) = (store_id.to_owned(), recipients.clone());
            let marker = serde_json::json!(Marker { format: FORMAT, store_id, recipients });
            let marker = packed::pack(MARKER, marker.to_string().as_bytes(), 0);
            repository.put(MARKER, marker).await?;
        }
        let usage = |rule: &str| {
            Err(CliError::Usage(format!("the target has {rule} use another path: target=`{text}`")))
        };
        match repository.marker().await? {
            Some(marker) if marker.store_id != store_id => {
                usage("the backups of another data directory,")
            }
            Some(marker) if marker.recipients == recipients => Ok(repository),
            Some(marker) if marker.recipients.is_empty() => {
                usage("backups that are not encrypted,")
            }
            Some(_) if recipients.is_empty() => {
                usage("encrypted backups: name their keys by --encrypt, or")
            }
            _ => usage("backups that are encrypted for other keys,"),
        }
    }

    /// Rejects a place that has something of others where the parts of backups would be: they could not be
    /// distinguished.
    async fn check_empty(&self) -> Result<(), CliError> {
        for prefix in [BACKUPS, PARTS] {
            let mut found = self.target.store.list(Some(&Path::from(prefix)));
            if let Some(first) = found.try_next().await.map_err(|error| self.failed(&error))? {
                let (text, found) = (&self.text, first.location);
                return Err(CliError::Usage(format!(
                    "the target has something else, use another path: target=`{text}`, found=`{found}`"
                )));
            }
        }
        Ok(())
    }

    async fn marker(&self) -> Result<Option<Marker>, CliError> {
        match self.read(MARKER).await {
            Err(PartError::Missing) => Ok(None),
            Err(PartError::Store(error)) => Err(self.failed(&error)),
            Err(error) => Err(CliError::Usage(format!(
                "the target is not one of this version: file=`{MARKER}`: {error}"
            ))),
            Ok(text) => match serde_json::from_slice::<Marker>(&text) {
                Ok(marker) if marker.format == FORMAT => Ok(Some(marker)),
                _ => Err(CliError::Usage(format!(
                    "the target has another format: file=`{MARKER}`, known=`{FORMAT}`"
                ))),
            },
        }
    }

    /// What is wrong with the file that marks the place. Its backups are readable without it.
    ///
    /// # Errors
    /// The place cannot be read.
    pub(crate) async fn marker_problem(&self) -> Result<Option<(&'static str, String)>, CliError> {
        match self.read(MARKER).await {
            Ok(_) => Ok(None),
            Err(PartError::Store(error)) => Err(self.failed(&error)),
            Err(error) => Ok(Some((MARKER, error.to_string()))),
        }
    }
}

fn unusable(text: &str, error: &str) -> CliError {
    CliError::Usage(format!("the target cannot be used: target=`{text}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("parts")).unwrap();
        std::fs::write(folder.path().join("parts/keep.txt"), "x").unwrap();
        let refused = Repository::create(folder.path().to_str().unwrap(), "id", None).await;
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("has something else") && error.contains("keep.txt"), "{error}");
    }

    /// A file with a new secret key.
    fn key(folder: &std::path::Path, name: &str) -> std::path::PathBuf {
        let path = folder.join(name);
        Identities::generate().write(&path).unwrap();
        path
    }

    #[tokio::test]
    async fn a_place_is_for_one_store_and_one_set_of_keys() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| key(folder.path(), name));
        let recipients = [&one, &other].map(|path| Recipients::read(path).unwrap());
        let (plain, sealed) = (folder.path().join("plain"), folder.path().join("sealed"));
        let [plain, sealed] = [&plain, &sealed].map(|path| path.to_str().unwrap());
        Repository::create(plain, "a", None).await.unwrap();
        Repository::create(plain, "a", None).await.unwrap();
        Repository::create(sealed, "a", Some(&recipients[0])).await.unwrap();
        Repository::create(sealed, "a", Some(&recipients[0])).await.unwrap();

        let refused = [
            (plain, "b", None, "the backups of another data directory, use another path"),
            (plain, "a", Some(0), "backups that are not encrypted, use another path"),
            (
                sealed,
                "a",
                None,
                "encrypted backups: name their keys by --encrypt, or use another path",
            ),
            (sealed, "a", Some(1), "encrypted for other keys, use another path"),
            (sealed, "b", Some(0), "the backups of another data directory"),
        ];
        for (path, store, keys, expected) in refused {
            let keys = keys.map(|index: usize| &recipients[index]);
            let error = Repository::create(path, store, keys).await.err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn a_place_of_a_later_version_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().to_str().unwrap();
        let marker = r#"{"format":3,"store_id":"a","recipients":[]}"#;
        std::fs::write(folder.path().join(MARKER), packed::pack(MARKER, marker.as_bytes(), 0))
            .unwrap();
        let error = Repository::create(text, "a", None).await.err().unwrap().to_string();
        assert!(error.contains("has another format") && error.contains("known=`2`"), "{error}");
        std::fs::write(folder.path().join(MARKER), "x").unwrap();
        let error = Repository::create(text, "a", None).await.err().unwrap().to_string();
        assert!(error.contains("is not one of this version"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
