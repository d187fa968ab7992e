//! The manifest of a backup: JSON, so that it is readable for as long as it is kept. It is not encrypted, and so it has
//! no name and no content of the store.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use trestle_kv::Keyspace;
use trestle_model::time::Ticks;

use crate::names::PartName;

/// The format of manifests that this version writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 2;

/// What a backup has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupManifest {
    /// [`FORMAT`].
    pub(crate) format: u32,
    /// Its id: the time when it was begun, and a random number.
    pub(crate) id: String,
    /// The random id of the data directory.
    pub(crate) store_id: String,
    /// The instant that it has, in ticks of 100 nanoseconds since 1601.
    pub(crate) at: u64,
    /// The newest version in it: it has every change up to that one and none after. Absent from backups of earlier
    /// versions, which no changes can follow.
    #[serde(default)]
    pub(crate) newest: Option<u64>,
    /// The line of windows that the data directory had then. Only its windows follow: those of another one may be
    /// of a copy that went another way. Absent where there was none.
    #[serde(default)]
    pub(crate) line: Option<String>,
    /// The instant for people, by RFC 3339.
    pub(crate) instant: String,
    /// When it was complete.
    pub(crate) completed: String,
    /// The version that made it.
    pub(crate) version: String,
    /// The public keys that its parts are encrypted for; none: they are not.
    pub(crate) recipients: BTreeSet<String>,
    /// The rows.
    pub(crate) keyspaces: Vec<KeyspaceRows>,
    /// The objects.
    pub(crate) objects: StoredObjects,
    /// What the data directory should have had and could not be read.
    pub(crate) damage: FoundDamage,
    /// What was sent, beside what earlier backups had sent.
    pub(crate) sent: SentParts,
}

/// The rows of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyspaceRows {
    /// Its name.
    pub(crate) name: String,
    /// Its least kind.
    pub(crate) first_kind: u8,
    /// Its greatest kind.
    pub(crate) last_kind: u8,
    /// How many rows.
    pub(crate) rows: u64,
    /// The bytes of their keys and values.
    pub(crate) bytes: u64,
    /// The lists of their chunks, in the order of keys.
    pub(crate) lists: Vec<ListRef>,
}

/// Objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredObjects {
    /// How many.
    pub(crate) count: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Their lists.
    pub(crate) lists: Vec<ListRef>,
}

/// What is not in the backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FoundDamage {
    /// How many objects.
    pub(crate) count: u64,
    /// The lists of it, which name no more than they may.
    pub(crate) lists: Vec<ListRef>,
}

/// A list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ListRef {
    /// The name of the list.
    pub(crate) list: PartName,
    /// The name of the part that has the names of the parts that it refers to.
    pub(crate) parts: PartName,
}

/// What a backup cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentParts {
    /// New chunks, lists and pieces of objects.
    pub(crate) parts: u64,
    /// Their bytes as stored.
    pub(crate) bytes: u64,
    /// From the instant to the manifest, in milliseconds.
    pub(crate) millis: u64,
}

impl BackupManifest {
    /// From its JSON.
    ///
    /// # Errors
    /// A later format or a malformed manifest, in words.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
        }
        let malformed = |error: serde_json::Error| format!("the manifest is malformed: {error}");
        let Versioned { format } = serde_json::from_slice(text).map_err(malformed)?;
        if format != FORMAT {
            return Err(format!(
                "the manifest has another format, restore it by the version that made it or a later one: \
                 format=`{format}`, known=`{FORMAT}`"
            ));
        }
        let manifest: Self = serde_json::from_slice(text).map_err(malformed)?;
        match Ticks::new(manifest.at) {
            Some(_) => Ok(manifest),
            None => Err(format!("the instant of the manifest is no time: at=`{}`", manifest.at)),
        }
    }

    /// All rows.
    pub(crate) fn rows(&self) -> u64 {
        sum(self.keyspaces.iter().map(|keyspace| keyspace.rows))
    }

    /// Every list.
    pub(crate) fn lists(&self) -> impl Iterator<Item = ListRef> {
        let rows = self.keyspaces.iter().flat_map(|keyspace| &keyspace.lists);
        rows.chain(&self.objects.lists).chain(&self.damage.lists).copied()
    }

    /// The bytes of all rows.
    pub(crate) fn row_bytes(&self) -> u64 {
        sum(self.keyspaces.iter().map(|keyspace| keyspace.bytes))
    }

    /// The keyspace of each part, among those of this version.
    ///
    /// # Errors
    /// A keyspace that this version does not have, in words: it would be lost.
    pub(crate) fn check_keyspaces(&self, known: &[Keyspace]) -> Result<(), String> {
        for stored in &self.keyspaces {
            let is_stored = |it: &&Keyspace| it.name == stored.name;
            let kinds = stored.first_kind..=stored.last_kind;
            if !known.iter().find(is_stored).is_some_and(|known| known.kinds == kinds) {
                let name = &stored.name;
                return Err(format!(
                    "the backup has a keyspace that this version does not have: keyspace=`{name}`"
                ));
            }
        }
        Ok(())
    }
}

/// Of numbers that may be impossible.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// A time for people, by RFC 3339.
pub(crate) fn time_text(at: Ticks) -> String {
    let (seconds, nanos) = at.to_unix();
    prost_types::Timestamp { seconds, nanos }.to_string()
}

#[cfg(test)]
pub(crate) mod tests {
    use trestle_kv::key_domain;

    use super::*;

    pub(crate) fn manifest(id: &str) -> BackupManifest {
        BackupManifest {
            format: FORMAT,
            id: id.to_owned(),
            store_id: "a".to_owned(),
            at: 7,
            newest: None,
            line: None,
            instant: String::new(),
            completed: String::new(),
            version: String::new(),
            recipients: BTreeSet::new(),
            keyspaces: vec![KeyspaceRows {
                name: "rows".to_owned(),
                first_kind: 1,
                last_kind: 2,
                rows: 3,
                bytes: 40,
                lists: Vec::new(),
            }],
            objects: StoredObjects::default(),
            damage: FoundDamage::default(),
            sent: SentParts::default(),
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let written = manifest("a");
        let text = serde_json::to_vec(&written).unwrap();
        assert_eq!(BackupManifest::parse(&text), Ok(written));
        assert!(BackupManifest::parse(b"{}").unwrap_err().contains("malformed"));
        let later = String::from_utf8(text).unwrap().replace("\"format\":2", "\"format\":3");
        let error = BackupManifest::parse(later.as_bytes()).unwrap_err();
        assert!(error.contains("format=`3`, known=`2`"), "{error}");
    }

    #[test]
    fn keyspaces_that_are_unknown_or_have_other_kinds_are_rejected() {
        let known = |name, kinds| [Keyspace { name, kinds, domain: key_domain }];
        let manifest = manifest("a");
        assert_eq!(manifest.check_keyspaces(&known("rows", 1..=2)), Ok(()));
        for other in [known("other", 1..=2), known("rows", 1..=3)] {
            assert!(manifest.check_keyspaces(&other).unwrap_err().contains("keyspace=`rows`"));
        }
    }

    #[test]
    fn a_time_is_shown_by_rfc_3339() {
        let at = Ticks::from_unix(1_764_244_803, 500_000_000).unwrap();
        assert_eq!(time_text(at), "2025-11-27T12:00:03.500Z");
    }

    #[test]
    fn impossible_numbers_of_rows_have_a_sum() {
        let mut manifest = manifest("a");
        let mut other = manifest.keyspaces[0].clone();
        (other.rows, other.bytes) = (u64::MAX, u64::MAX);
        assert_eq!((manifest.rows(), manifest.row_bytes()), (3, 40));
        manifest.keyspaces.push(other);
        assert_eq!((manifest.rows(), manifest.row_bytes()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_manifest_of_an_earlier_version_has_no_newest_version() {
        let mut text = serde_json::to_value(manifest("a")).unwrap();
        text.as_object_mut().unwrap().remove("newest").unwrap();
        let read = BackupManifest::parse(text.to_string().as_bytes());
        assert_eq!(read, Ok(manifest("a")));
    }
}
