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

use std::fs;
use std::io;
use std::path::Path;

use super::directory;
use crate::Keyspace;

const FILE: &str = "MANIFEST";
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
        Ok(text) => Ok(judge(&text, keyspaces)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ManifestVerdict::Absent),
        Err(error) => Err(error),
    }
}

pub(super) fn write(directory: &Path, keyspaces: &[Keyspace]) -> io::Result<()> {
    let mut text = format!("{HEADER}{VERSION}\n{SHARDS}\n");
    for keyspace in keyspaces {
        text.push_str(&line(keyspace));
        text.push('\n');
    }
    directory::replace(directory, FILE, text.as_bytes())
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
mod tests {
    use super::*;

    fn keyspaces() -> Vec<Keyspace> {
        vec![
            Keyspace { name: "meta", kinds: 0x01..=0x1f, domain: crate::key_domain },
            Keyspace { name: "rows", kinds: 0x20..=0x2f, domain: crate::key_domain },
        ]
    }

    #[test]
    fn a_written_manifest_reads_back() {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");

        write(directory.path(), &keyspaces()).expect("it can be written");

        let verdict = check(directory.path(), &keyspaces()).expect("it can be read");
        assert_eq!(verdict, ManifestVerdict::Same);
    }

    #[test]
    fn new_keyspaces_are_growth_and_missing_or_moved_ones_are_unfit() {
        let all = keyspaces();
        let some: Vec<_> = all.iter().take(1).cloned().collect();
        let moved = vec![Keyspace { name: "meta", kinds: 0x01..=0x20, domain: crate::key_domain }];
        let text = |list: &[Keyspace]| {
            let lines: Vec<_> = list.iter().map(line).collect();
            format!("trestle-kv 1\nshards 1\n{}\n", lines.join("\n"))
        };

        assert_eq!(judge(&text(&some), &all), ManifestVerdict::Grown(vec!["meta"]));
        assert!(matches!(judge(&text(&all), &some), ManifestVerdict::Unfit(_)));
        assert!(matches!(judge(&text(&some), &moved), ManifestVerdict::Unfit(_)));
    }

    #[test]
    fn other_versions_shard_counts_and_texts_are_unfit() {
        for text in ["", "trestle-kv 2\nshards 1\n", "trestle-kv 1\nshards 2\n", "hello"] {
            assert!(matches!(judge(text, &[]), ManifestVerdict::Unfit(_)), "{text:?}");
        }
    }
}
