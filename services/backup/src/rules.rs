//! What a backup needs of a store: its rules, and the objects that its rows name.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use trestle_kv::{Entry, Keyspace};

/// The file of a data directory whose restore did not finish. No version opens one that has it.
pub const RESTORING: &str = "RESTORING";

/// What a backup needs of the services of a store.
#[derive(Clone)]
pub struct StoreRules {
    /// The keyspaces of every service.
    pub keyspaces: Vec<Keyspace>,
    /// The objects that a row names.
    pub objects_of: fn(&Entry) -> Result<Vec<NamedObject>, String>,
    /// The row as a restored store has it; none if it has not.
    pub restored: fn(Entry) -> Result<Option<Entry>, String>,
    /// The random id of a data directory, which is made where there is none.
    pub store_id: fn(&Path) -> io::Result<String>,
    /// The directory of the rows in a data directory.
    pub engine_dir: &'static str,
}

/// The area of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectAreaName {
    /// The contents of blobs.
    Blobs,
    /// The segments of logs.
    Logs,
}

/// An object that a row names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedObject {
    /// Its name.
    pub name: ObjectName,
    /// The bytes that it has where it is whole, as the row tells.
    pub bytes: u64,
}

impl ObjectAreaName {
    /// For people, and in the names of parts.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Blobs => "blob",
            Self::Logs => "log",
        }
    }
}

impl NamedObject {
    /// Why an object of this name is not this one, for people; none where it has these bytes.
    #[must_use]
    pub fn difference(&self, found_bytes: u64) -> Option<String> {
        let expected = self.bytes;
        (found_bytes != expected).then(|| {
            format!("it has not the length that its row tells: bytes=`{found_bytes}`, expected=`{expected}`")
        })
    }
}

/// The name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its area.
    pub area: ObjectAreaName,
    /// Its path there.
    pub path: String,
}

impl ObjectName {
    /// The one of two that is of its area.
    pub fn of_area<'a, T: ?Sized>(&self, blobs: &'a T, logs: &'a T) -> &'a T {
        match self.area {
            ObjectAreaName::Blobs => blobs,
            ObjectAreaName::Logs => logs,
        }
    }
}

/// Area and path, for people.
impl fmt::Display for ObjectName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.area.text(), self.path)
    }
}

/// A data directory and the rules of its store.
#[derive(Clone)]
pub(crate) struct DataDirectory {
    /// The directory.
    pub(crate) path: PathBuf,
    /// The rules.
    pub(crate) rules: StoreRules,
}
