//! What the target of a copy has until the copy is complete: a file of a data directory, or a row of a database.

use std::{fmt, str::FromStr};

use trestle_kv::{
    ChangeSpec, CommitError, Domain, Engine, EngineError, Keyspace, Lock, ReadId, key_domain,
};

use crate::database::text_row::replace_text;

/// The file in a data directory.
pub(crate) const FILE: &str = "COPYING";
/// The key of the row in a database.
const COPYING: u8 = 0x0B;
/// Where that is.
pub(crate) const KEYSPACE: Keyspace =
    Keyspace { name: "copying", kinds: COPYING..=COPYING, domain: key_domain };
/// The first line. A later form has another one.
const FORM: &str = "trestle copy 1";

/// An unfinished copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyMarker {
    /// The source and its state, which another change of it changes.
    pub(super) source: String,
    /// The source, for people.
    pub(super) from: String,
    /// The command that continues it, of those that did.
    pub(super) run: String,
}

/// Whether a target may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyStart {
    /// It is empty.
    New,
    /// It has the beginning of this copy.
    Resumed,
}

/// Why a target may not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CopyRefused {
    #[error("it is not empty")]
    Occupied,
    #[error(
        "it has an unfinished copy of another store, or of this one as it was before: from=`{from}`; \
         empty it to copy again"
    )]
    Another { from: String },
    #[error("it has an unfinished copy by another version of Trestle; empty it to copy again")]
    Unknown,
}

/// Whether a copy from `source` may be written to a target with this marker, or without one.
pub(super) fn admit(
    marker: Option<&str>,
    is_empty: bool,
    source: &str,
) -> Result<CopyStart, CopyRefused> {
    let Some(text) = marker else {
        return if is_empty { Ok(CopyStart::New) } else { Err(CopyRefused::Occupied) };
    };
    let found: CopyMarker = text.parse()?;
    match found.source == source {
        true => Ok(CopyStart::Resumed),
        false => Err(CopyRefused::Another { from: found.from }),
    }
}

impl FromStr for CopyMarker {
    type Err = CopyRefused;

    fn from_str(text: &str) -> Result<Self, CopyRefused> {
        let mut lines = text.lines().map(str::to_owned);
        let parts = (lines.next(), lines.next(), lines.next(), lines.next());
        match parts {
            (Some(form), Some(source), Some(from), Some(run)) if form == FORM => {
                Ok(Self { source, from, run })
            }
            _ => Err(CopyRefused::Unknown),
        }
    }
}

impl fmt::Display for CopyMarker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, from, run } = self;
        writeln!(f, "{FORM}\n{source}\n{}\n{run}", from.replace('\n', " "))
    }
}

/// Who the source is, for people, by the text of a marker.
pub(crate) fn shown(text: &str) -> String {
    text.parse().map_or_else(|_| "unknown".to_owned(), |marker: CopyMarker| marker.from)
}

/// The text of the marker of a database; none where no copy is unfinished.
///
/// # Errors
/// A failed read.
pub(crate) async fn of_database(engine: &dyn Engine) -> Result<Option<String>, EngineError> {
    let stored = engine.get(&[COPYING]).await?;
    Ok(stored.map(|text| String::from_utf8_lossy(&text).into_owned()))
}

/// Has a change depend on the marker of a database.
pub(crate) fn read(spec: &mut ChangeSpec) -> ReadId {
    spec.also(Domain::new(COPYING, Vec::new()), Lock::Shared);
    spec.read(vec![COPYING])
}

/// The marker of a database, while this command is the one that continues the copy.
#[derive(Debug, Clone)]
pub(crate) struct HeldMarker(String);

impl HeldMarker {
    /// Puts a marker in place of the one that was found. False where another command came between.
    ///
    /// # Errors
    /// A failed commit.
    pub(super) async fn put(
        engine: &dyn Engine,
        found: Option<String>,
        marker: &CopyMarker,
    ) -> Result<Option<Self>, CommitError> {
        let text = marker.to_string();
        let replaced = replace_text(engine, COPYING, found, Some(text.clone())).await?;
        Ok(replaced.then_some(Self(text)))
    }

    /// Removes it. False where another command continues the copy.
    ///
    /// # Errors
    /// A failed commit.
    pub(super) async fn remove(self, engine: &dyn Engine) -> Result<bool, CommitError> {
        replace_text(engine, COPYING, Some(self.0), None).await
    }

    /// Whether it is what a change read.
    pub(super) fn is(&self, stored: Option<&[u8]>) -> bool {
        stored == Some(self.0.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use trestle_kv::MemoryEngine;

    use super::*;

    fn marker(source: &str, run: &str) -> CopyMarker {
        let text = |text: &str| text.to_owned();
        CopyMarker { source: text(source), from: text("./data"), run: text(run) }
    }

    #[test]
    fn a_target_is_empty_or_has_the_beginning_of_the_same_copy() {
        let own = marker("here 1", "a").to_string();
        assert_eq!(admit(None, true, "here 1"), Ok(CopyStart::New));
        assert_eq!(admit(None, false, "here 1"), Err(CopyRefused::Occupied));
        for is_empty in [true, false] {
            assert_eq!(admit(Some(&own), is_empty, "here 1"), Ok(CopyStart::Resumed));
            let another = Err(CopyRefused::Another { from: "./data".to_owned() });
            assert_eq!(admit(Some(&own), is_empty, "here 2"), another);
            for unknown in ["", "trestle copy 2\na\nb\nc\n", "trestle copy 1\na\n"] {
                assert_eq!(admit(Some(unknown), is_empty, "a"), Err(CopyRefused::Unknown));
            }
        }
        assert_eq!(shown(&own), "./data");
        assert_eq!(shown("x"), "unknown");
    }

    #[test]
    fn a_marker_is_read_as_it_was_written() {
        let written = CopyMarker { from: "a\nb".to_owned(), ..marker("s", "r") };
        let read: CopyMarker = written.to_string().parse().unwrap();
        assert_eq!(read, CopyMarker { from: "a b".to_owned(), ..written });
    }

    #[tokio::test]
    async fn the_last_command_that_continues_a_copy_has_its_marker() {
        let engine = MemoryEngine::new(vec![KEYSPACE]);
        assert_eq!(of_database(&engine).await.unwrap(), None);
        let (first, second) = (marker("s", "1"), marker("s", "2"));
        let one = HeldMarker::put(&engine, None, &first).await.unwrap().expect("it is new");
        assert!(HeldMarker::put(&engine, None, &second).await.unwrap().is_none());

        let found = of_database(&engine).await.unwrap();
        assert_eq!(found.as_deref(), Some(&*first.to_string()));
        let two = HeldMarker::put(&engine, found, &second).await.unwrap().expect("it was read");
        assert!(!one.remove(&engine).await.unwrap());
        assert!(two.remove(&engine).await.unwrap());
        assert_eq!(of_database(&engine).await.unwrap(), None);
    }
}
