//! Where a store is: the flags of `store copy`.

use std::path::{Path, PathBuf};

use trestle_command::errors::CliError;
use trestle_kv_postgres::PostgresAddress;
use trestle_objects::{ObjectsUrl, SourceObjects};

use super::{failure::broken, marker::CopyRefused};
use crate::{args::StoreCopyArgs, database};

/// A place of a store.
#[derive(Debug, Clone)]
pub(super) enum StorePlace {
    Directory(PathBuf),
    Database(Box<PostgresAddress>),
}

impl StorePlace {
    /// Parses the value of a flag.
    ///
    /// # Errors
    /// [`CliError::Usage`].
    fn parse(flag: &str, text: &str, password_file: Option<&Path>) -> Result<Self, CliError> {
        let usage = |rule: &str| CliError::Usage(format!("{flag}: {rule}"));
        if !text.contains("://") {
            return match (text.is_empty(), password_file) {
                (true, _) => Err(usage("must be a directory, or the address of a database")),
                (false, Some(_)) => Err(usage("a directory has no password")),
                (false, None) => Ok(Self::Directory(text.into())),
            };
        }
        let address = PostgresAddress::parse(text).map_err(|error| usage(&error.to_string()))?;
        if address.has_password() {
            return Err(usage(&format!("must not have a password: {flag}-password-file has it")));
        }
        let Some(file) = password_file else { return Ok(Self::Database(Box::new(address))) };
        let password = database::password_of(file)
            .map_err(CliError::input(format!("{flag}-password-file: `{}`", file.display())))?;
        Ok(Self::Database(Box::new(address.with_password(&password))))
    }

    /// The error of a target that may not be written.
    pub(super) fn refused(&self, reason: &CopyRefused) -> CliError {
        CliError::Usage(format!("--to cannot be used: {reason}: `{}`", self.shown()))
    }

    /// For people and programs: without user and password.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Directory(path) => path.display().to_string(),
            Self::Database(address) => address.shown(),
        }
    }
}

/// From where to where a store is copied.
#[derive(Debug)]
pub(super) struct CopyPlaces {
    pub(super) from: StorePlace,
    pub(super) to: StorePlace,
    /// Where the objects go, if not into files of the target.
    pub(super) url: Option<ObjectsUrl>,
}

impl CopyPlaces {
    /// Parses the flags.
    ///
    /// # Errors
    /// [`CliError::Usage`].
    pub(super) fn parse(args: &StoreCopyArgs) -> Result<Self, CliError> {
        let url = args.to_blob_url.as_deref().map(str::parse).transpose();
        Ok(Self {
            from: StorePlace::parse("--from", &args.from, args.from_password_file.as_deref())?,
            to: StorePlace::parse("--to", &args.to, args.to_password_file.as_deref())?,
            url: url.map_err(|rule: String| CliError::Usage(format!("--to-blob-url: {rule}")))?,
        })
    }

    /// Checks what the target must have for a source with objects, or objects at a URL; and that it is no part of it.
    ///
    /// # Errors
    /// [`CliError::Usage`], or a directory that cannot be read.
    pub(super) fn check(
        &self,
        source_url: Option<&ObjectsUrl>,
        has_objects: bool,
    ) -> Result<(), CliError> {
        if let (StorePlace::Directory(from), StorePlace::Directory(to)) = (&self.from, &self.to) {
            let is_inside = SourceObjects::are_at(from, &to.display().to_string());
            if is_inside.map_err(|error| broken(&error))? {
                let text = format!("--to must be outside of --from: `{}`", to.display());
                return Err(CliError::Usage(text));
            }
        }
        if let (Some(from), Some(to)) = (source_url, &self.url)
            && from.overlaps(to)
        {
            let text = "must be outside of the objects of the source: each store owns its objects";
            return Err(CliError::Usage(format!("--to-blob-url: {text}: url=`{from}`")));
        }
        if matches!(self.to, StorePlace::Database(_)) && self.url.is_none() && has_objects {
            let text = "--to-blob-url is required: the source has objects, and a database has none";
            return Err(CliError::Usage(text.to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(from: &str, to: &str, url: Option<&str>) -> Result<CopyPlaces, String> {
        let args = StoreCopyArgs {
            from: from.to_owned(),
            to: to.to_owned(),
            from_password_file: None,
            to_password_file: None,
            to_blob_url: url.map(str::to_owned),
            accept_loss: false,
        };
        CopyPlaces::parse(&args).map_err(|error| error.to_string())
    }

    #[test]
    fn a_place_is_a_directory_or_a_database() {
        let places = parse("./data", "postgres://trestle@db:5433/t", Some("s3://b/p")).unwrap();
        assert_eq!(places.from.shown(), "./data");
        assert_eq!(places.to.shown(), "postgres://db:5433/t");
        assert_eq!(places.url.map(|url| url.to_string()).as_deref(), Some("s3://b/p"));

        for (from, to, url, expected) in [
            ("", "a", None, "--from: must be a directory"),
            ("a", "mysql://db/t", None, "--to: the address of the database must begin with"),
            (
                "postgres://db",
                "a",
                None,
                "--from: the address of the database must name a database",
            ),
            ("a", "postgres://u:hunter2@db/t", None, "--to: must not have a password"),
            ("a", "b", Some("ftp://x"), "--to-blob-url: must be s3://"),
        ] {
            let error = parse(from, to, url).unwrap_err();
            assert!(error.starts_with(expected) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_password_of_a_database_is_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let parse = |text| StorePlace::parse("--to", text, Some(&file));
        let absent = parse("postgres://u@db/t").unwrap_err().to_string();
        assert!(absent.contains("--to-password-file: `"), "{absent}");
        std::fs::write(&file, "hunter2\n").unwrap();
        let StorePlace::Database(address) = parse("postgres://u@db/t").unwrap() else {
            panic!("a database")
        };
        assert!(address.has_password());
        let error = parse("./data").unwrap_err().to_string();
        assert!(error.contains("has no password"), "{error}");
    }
}
