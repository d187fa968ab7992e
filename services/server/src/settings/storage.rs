//! The store.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use trestle_blob::{CopyHosts, HostList, ServerList};
use trestle_kv_fjall::MIN_FREE_BYTES_MIN;
use trestle_kv_postgres::PostgresAddress;
use trestle_objects::ObjectsUrl;
use trestle_runtime::config::choice;

use super::{NumberRule, outside};

/// Longest setting for the time between syncs: an hour.
const SYNC_EVERY_MS_MAX: u64 = 3_600_000;

/// Two memtables at least, and no more than what a recovery after a crash reads in seconds.
const WRITE_BUFFER_BYTES: RangeInclusive<u64> = 32 * 1024 * 1024..=4 * 1024 * 1024 * 1024;

/// The section `storage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageSettings {
    /// Data directory; created if it does not exist. Default: `./data`.
    #[serde(skip_serializing_if = "is_unused")]
    pub data_dir: PathBuf,
    /// Store everything in memory; no data survives the process. Not in one file, or in variables, with `data_dir`: a
    /// directory of a higher layer wins over memory of a lower one, and the reverse. Default: no.
    pub ephemeral: bool,
    /// A database of PostgreSQL in place of files in the data directory; with `blob_url` for blobs and logs too:
    /// `postgres://USER@HOST,HOST/DATABASE?sslmode=verify-full&sslrootcert=FILE`. Several processes may serve one at a
    /// time. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// A file with the password of the user of `engine`. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_password_file: Option<PathBuf>,
    /// Where blobs of more than 32 KiB and segments of logs are stored: `s3://BUCKET/PATH`, `gs://BUCKET/PATH` or
    /// `az://CONTAINER/PATH`. Endpoint and credentials are in the environment. Default: in files of the data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob_url: Option<String>,
    /// Hosts in URLs of blobs of this service, separated by commas: a copy from such a URL is one within the service.
    /// Default: `127.0.0.1:10000,localhost:10000`.
    pub blob_hosts: String,
    /// Other servers that copies of blobs may read from by URL, separated by commas: `https://HOST`,
    /// `http://HOST:PORT`. Default: none.
    pub copy_source_hosts: String,
    /// When a write is acknowledged. Default: `always`.
    #[serde(deserialize_with = "choice")]
    pub durability: DurabilitySetting,
    /// With durability `interval`: time between syncs, in milliseconds, 1 to 3600000. Default:
    /// 1000.
    pub sync_every_ms: u64,
    /// Memory for the block cache, in bytes. Default: 128 MiB.
    pub cache_bytes: u64,
    /// Most bytes of writes in memory that wait to be flushed, over all tables and queues, 32 MiB to 4 GiB. Default:
    /// 64 MiB.
    pub write_buffer_bytes: u64,
    /// Free disk space below which only deletes are accepted, in bytes, at least 64 MiB. Default: 512 MiB.
    pub min_free_bytes: u64,
    /// End with exit code 7 when a write or a sync has failed, so that a supervisor restarts the server: until then it
    /// accepts no writes. `false` goes on with reads. Default: yes.
    pub exit_when_stopped: bool,
}

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilitySetting {
    /// When it is on stable storage.
    Always,
    /// At once; it is on stable storage after the interval.
    Interval,
    /// At once; the operating system decides.
    Os,
}

/// Whether no directory is used, as in printed settings of a store in memory.
fn is_unused(data_dir: &Path) -> bool {
    data_dir.as_os_str().is_empty()
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self {
            data_dir: "./data".into(),
            ephemeral: false,
            engine: None,
            engine_password_file: None,
            blob_url: None,
            blob_hosts: "127.0.0.1:10000,localhost:10000".to_owned(),
            copy_source_hosts: String::new(),
            durability: DurabilitySetting::Always,
            sync_every_ms: 1000,
            cache_bytes: 128 * 1024 * 1024,
            write_buffer_bytes: 64 * 1024 * 1024,
            min_free_bytes: 512 * 1024 * 1024,
            exit_when_stopped: true,
        }
    }
}

impl StorageSettings {
    /// The numbers of the section.
    pub(super) fn numbers(&self) -> [NumberRule; 3] {
        [
            ("sync_every_ms", self.sync_every_ms, 1..=SYNC_EVERY_MS_MAX),
            ("write_buffer_bytes", self.write_buffer_bytes, WRITE_BUFFER_BYTES),
            // A flush has to fit.
            ("min_free_bytes", self.min_free_bytes, MIN_FREE_BYTES_MIN..=u64::MAX),
        ]
    }

    /// The problems of the section, each with its key.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = outside("storage", self.numbers());
        if is_unused(&self.data_dir) && !self.ephemeral {
            problems.push("storage.data_dir: must be a path, such as ./data: value=``".to_owned());
        }
        if let Err(rule) = self.blob_hosts.parse::<HostList>() {
            problems.push(format!("storage.blob_hosts: {rule}"));
        }
        if let Err(rule) = self.copy_source_hosts.parse::<ServerList>() {
            problems.push(format!("storage.copy_source_hosts: {rule}"));
        }
        problems.extend(self.engine_problem().map(|rule| format!("storage.engine: {rule}")));
        match self.blob_url() {
            Some(Err(rule)) => problems.push(format!("storage.blob_url: {rule}{}", self.scheme())),
            Some(Ok(_)) if self.ephemeral => {
                problems.push("storage.blob_url: cannot be used with storage.ephemeral".to_owned());
            }
            _ => {}
        }
        problems
    }

    /// The database, if there is one; or the rule that its address violates.
    #[must_use]
    pub fn database(&self) -> Option<Result<PostgresAddress, String>> {
        let address = self.engine.as_deref()?;
        Some(PostgresAddress::parse(address).map_err(|error| error.to_string()))
    }

    /// The rule that the setting of the database violates.
    fn engine_problem(&self) -> Option<String> {
        match self.database() {
            Some(Err(rule)) => Some(rule),
            Some(Ok(address)) if address.has_password() => Some(
                "must not have a password: storage.engine_password_file is a file with it"
                    .to_owned(),
            ),
            Some(Ok(_)) if self.ephemeral => {
                Some("cannot be used with storage.ephemeral".to_owned())
            }
            Some(Ok(_)) => None,
            None => self
                .engine_password_file
                .as_ref()
                .map(|_| "must be set with storage.engine_password_file".to_owned()),
        }
    }

    /// The scheme of the URL of blobs, as part of an error: the rest may be a secret.
    fn scheme(&self) -> String {
        let scheme = self.blob_url.as_deref().and_then(|url| Some(url.split_once("://")?.0));
        let scheme = scheme.filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        scheme.map_or_else(String::new, |scheme| format!(": scheme=`{scheme}`"))
    }

    /// The hosts that copies of blobs may read from by URL, as far as they are valid.
    #[must_use]
    pub fn copy_hosts(&self) -> CopyHosts {
        CopyHosts {
            own: self.blob_hosts.parse().unwrap_or_default(),
            others: self.copy_source_hosts.parse().unwrap_or_default(),
        }
    }

    /// Where blobs are stored, if not in the data directory; or the rule that it violates.
    #[must_use]
    pub fn blob_url(&self) -> Option<Result<ObjectsUrl, String>> {
        self.blob_url.as_deref().map(str::parse)
    }
}
