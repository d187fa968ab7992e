//! The file that describes the content of a directory, so that no release reads a format it does not support.
//!
//! ```text
//! trestle-kv 1
//! shards 1
//! keyspace meta 01 1f
//! ```
//!
//! It names the kinds of each keyspace because a key that moved to another keyspace would be
//! lost without a word. It is replaced as a whole, by renaming a synced file over it.
//!
//! Beside it `WRITTEN_BY` has the version of the program that opened the directory last: what this one does not support
//! is reported with it.

use std::fs;
use std::io;
use std::path::Path;

use trestle_kv::Keyspace;

/// The name of the file, in the directory of the engine.
pub(super) const FILE: &str = "MANIFEST";
const WRITER: &str = "WRITTEN_BY";
/// The version of this program.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");
const HEADER: &str = "trestle-kv ";
const VERSION: &str = "1";
const SHARDS: &str = "shards 1";

/// What the manifest of a directory means for opening it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ManifestVerdict {
    /// There is none.
    Absent,
    /// It describes exactly these keyspaces.
    Same,
    /// It describes some of these keyspaces, with these names; the others are new.
    Grown(Vec<&'static str>),
    /// It must not be opened, for this reason.
    Unfit(String),
}

pub(super) fn check(directory: &Path, keyspaces: &[Keyspace]) -> io::Result<ManifestVerdict> {
    match fs::read_to_string(directory.join(FILE)) {
        Ok(text) => Ok(match judge(&text, keyspaces) {
            ManifestVerdict::Unfit(reason) => {
                ManifestVerdict::Unfit(format!("{reason}{}", written_by(directory)))
            }
            verdict => verdict,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ManifestVerdict::Absent),
        Err(error) => Err(error),
    }
}

/// The end of a reason: which program wrote the directory, where it was another version.
fn written_by(directory: &Path) -> String {
    match fs::read_to_string(directory.join(WRITER)) {
        Ok(writer) if writer.trim() != PROGRAM => format!(
            "; written by trestle {}, this is {PROGRAM}: use that version, or restore a backup",
            writer.trim()
        ),
        _ => String::new(),
    }
}

/// Notes that this program opened the directory.
pub(super) fn sign(directory: &Path) -> io::Result<()> {
    match fs::read_to_string(directory.join(WRITER)) {
        Ok(writer) if writer.trim() == PROGRAM => Ok(()),
        _ => trestle_kv::replace_file(directory, WRITER, format!("{PROGRAM}\n").as_bytes()),
    }
}

/// Whether a directory has a manifest, and so a store that was once made whole.
pub(super) fn exists(directory: &Path) -> io::Result<bool> {
    directory.join(FILE).try_exists()
}

pub(super) fn write(directory: &Path, keyspaces: &[Keyspace]) -> io::Result<()> {
    let mut text = format!("{HEADER}{VERSION}\n{SHARDS}\n");
    for keyspace in keyspaces {
        text.push_str(&line(keyspace));
        text.push('\n');
    }
    trestle_kv::replace_file(directory, FILE, text.as_bytes())
}

fn line(keyspace: &Keyspace) -> String {
    let (first, last) = (keyspace.kinds.start(), keyspace.kinds.end());
    format!("keyspace {} {first:02x} {last:02x}", keyspace.name)
}

fn judge(text: &str, keyspaces: &[Keyspace]) -> ManifestVerdict {
    let mut lines = text.lines();
    let version = lines.next().and_then(|first| first.strip_prefix(HEADER));
    if version != Some(VERSION) {
        let found = version.unwrap_or("none");
        return ManifestVerdict::Unfit(format!(
            "unknown format: found=`{found}`, known=`{VERSION}`"
        ));
    }
    let shards = lines.next().unwrap_or_default();
    if shards != SHARDS {
        return ManifestVerdict::Unfit(format!(
            "unknown layout: found=`{shards}`, known=`{SHARDS}`"
        ));
    }
    let mut found = Vec::new();
    for stored in lines {
        let Some(keyspace) = keyspaces.iter().find(|keyspace| line(keyspace) == stored) else {
            return ManifestVerdict::Unfit(format!(
                "keyspace not among the options: found=`{stored}`"
            ));
        };
        found.push(keyspace.name);
    }
    if found.len() == keyspaces.len() {
        ManifestVerdict::Same
    } else {
        ManifestVerdict::Grown(found)
    }
}

#[cfg(test)]
mod tests;
