//! The id of a data directory, by which its backups are distinguished from those of others.

use std::{fs, io, path::Path};

use trestle_kv::replace_file;
use trestle_kv_fjall::OpenError;
use uuid::Uuid;

/// The file in the data directory.
const FILE: &str = "store-id";

/// The id of a data directory, which this process has open. The first start writes it.
///
/// # Errors
/// [`OpenError::Damaged`] for a file that is no id, [`OpenError::Io`].
pub(crate) fn of(data_dir: &Path) -> Result<Uuid, OpenError> {
    let path = data_dir.join(FILE);
    match fs::read_to_string(&path) {
        Ok(text) => Uuid::try_parse(text.trim_end()).map_err(|_| {
            let reason = "it must be a UUID in its textual form: put it back from a copy, or delete it for a new one";
            OpenError::Damaged { path, reason: reason.to_owned() }
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = Uuid::new_v4();
            let written = replace_file(data_dir, FILE, format!("{id}\n").as_bytes());
            written.map(|()| id).map_err(|source| OpenError::Io { path, source })
        }
        Err(source) => Err(OpenError::Io { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_keeps_its_id() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = of(one.path()).unwrap();
        assert_eq!(of(one.path()).unwrap(), first);
        assert_ne!(of(other.path()).unwrap(), first);
        let text = fs::read_to_string(one.path().join(FILE)).unwrap();
        assert_eq!(text, format!("{first}\n"));
    }

    #[test]
    fn a_malformed_id_is_an_error_with_the_file_and_the_rule() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "not an id", "6f9619ff-8b86-d011-b42d-00cf4fc964ff 7"] {
            fs::write(folder.path().join(FILE), text).unwrap();
            let error = of(folder.path()).unwrap_err().to_string();
            assert!(error.contains("store-id") && error.contains("must be a UUID"), "{error}");
        }
    }
}
