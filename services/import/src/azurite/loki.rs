//! LokiJS databases, as Azurite writes them: one JSON document with collections of documents.
//!
//! Azurite writes a database as one string of V8, which has at most 2^29 characters, so that every database of it fits
//! in memory. Documents are parsed one at a time.

use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use trestle_command::{errors::CliError, files};
use trestle_model::json_error::json_problem;

use super::regular_file;

/// Largest database that is read: 2^29 characters take up to three bytes each.
const DATABASE_BYTES_MAX: u64 = 3 << 29;

/// A database, over its text.
#[derive(Deserialize)]
pub(super) struct Database<'a> {
    #[serde(borrow)]
    pub(super) collections: Vec<Collection<'a>>,
}

/// Documents of one kind.
#[derive(Deserialize)]
pub(super) struct Collection<'a> {
    pub(super) name: String,
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
}

impl<'a> Collection<'a> {
    /// The documents after the first `after`, each with its number from 1.
    pub(super) fn documents(&self, after: u64) -> impl Iterator<Item = (u64, &'a str)> {
        let skipped = usize::try_from(after).unwrap_or(usize::MAX);
        (1..).zip(&self.data).skip(skipped).map(|(number, json)| (number, json.get()))
    }

    /// Bytes of the first `count` documents.
    pub(super) fn bytes(&self, count: u64) -> u64 {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let lengths = self.data.iter().take(count).map(|json| json.get().len());
        lengths.map(|bytes| u64::try_from(bytes).unwrap_or_default()).sum()
    }
}

/// The text of a database file.
pub(super) async fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let failed = || CliError::input(files::cannot("read", path));
    let file = regular_file::open(path).map(tokio::fs::File::from_std).map_err(failed())?;
    let bytes = file.metadata().await.map_err(failed())?.len();
    let too_large = |bytes: &str| {
        let rule = format!("a database of Azurite has at most {DATABASE_BYTES_MAX} bytes");
        CliError::Usage(format!("{rule}: file=`{}`, bytes={bytes}", path.display()))
    };
    if bytes > DATABASE_BYTES_MAX {
        return Err(too_large(&bytes.to_string()));
    }
    let mut text = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    let is_whole = read_within(file, DATABASE_BYTES_MAX, &mut text).await.map_err(failed())?;
    is_whole.then_some(text).ok_or_else(|| too_large("more"))
}

/// Reads at most `bytes_max` bytes, also of a file that grows meanwhile. False where there are more.
async fn read_within(
    file: impl AsyncRead + Unpin,
    bytes_max: u64,
    text: &mut Vec<u8>,
) -> std::io::Result<bool> {
    let mut file = file.take(bytes_max);
    file.read_to_end(text).await?;
    Ok(file.limit() > 0 || file.into_inner().read(&mut [0]).await? == 0)
}

/// Parses the text of a database; `name` is for the error. An editor may have added a byte order mark.
pub(super) fn parse<'a>(text: &'a [u8], name: &Path) -> Result<Database<'a>, CliError> {
    let text = text.strip_prefix(files::BYTE_ORDER_MARK.as_bytes()).unwrap_or(text);
    serde_json::from_slice(text).map_err(|error| {
        let (name, problem) =
            (name.display(), json_problem(&String::from_utf8_lossy(text), &error));
        CliError::Usage(format!(
            "the file is not a complete database of Azurite: file=`{name}`: {problem}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: &str = r#"{"filename":"x","collections":[
        {"name":"some","data":[{"n":1}, {"n":2} ,{"n":3}],"idIndex":[1],"maxId":3},
        {"name":"empty","data":[]}],"databaseVersion":1.5}"#;

    #[test]
    fn documents_of_a_collection_have_their_text_and_number() {
        let database = parse(DATABASE.as_bytes(), Path::new("db")).unwrap();

        let [some, empty] = &database.collections[..] else { panic!("two collections") };
        assert_eq!((some.name.as_str(), empty.name.as_str()), ("some", "empty"));
        let after_first: Vec<_> = some.documents(1).collect();
        assert_eq!(after_first, [(2, r#"{"n":2}"#), (3, r#"{"n":3}"#)]);
        assert_eq!((some.bytes(0), some.bytes(2), some.bytes(9)), (0, 14, 21));
        assert_eq!((some.documents(9).count(), empty.documents(0).count()), (0, 0));
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let text = format!("\u{feff}{DATABASE}");

        assert_eq!(parse(text.as_bytes(), Path::new("db")).unwrap().collections.len(), 2);
    }

    #[test]
    fn rejects_invalid_databases_with_the_position() {
        for (text, rule) in [
            ("", "it ends before it is complete"),
            ("{}", "collections: required"),
            (r#"{"collections":{}}"#, "collections: must be a list"),
            (r#"{"collections":[{"data":[]}]}"#, "name: required"),
            (r#"{"collections":[{"name":1}]}"#, "name: must be a string: value=`1`"),
            (r#"{"collections":[{"name":"a","data":{}}]}"#, "data: must be a list"),
            (r#"{"collections":[]} x"#, "syntax error at column 20"),
            (&DATABASE[..DATABASE.len() / 2], "it ends"),
            (&DATABASE[..DATABASE.len() - 1], "it ends"),
        ] {
            let error = parse(text.as_bytes(), Path::new("db")).map(drop).unwrap_err().to_string();
            assert!(error.contains("file=`db`") && error.contains(rule), "{text}: {error}");
        }
    }

    #[tokio::test]
    async fn rejects_a_file_that_azurite_cannot_have_written_before_it_fills_the_memory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("database");
        std::fs::File::create(&path).unwrap().set_len(DATABASE_BYTES_MAX + 1).unwrap();

        let error = read(&path).await.unwrap_err().to_string();

        assert!(error.contains("has at most 1610612736 bytes"), "{error}");
    }
    #[tokio::test]
    async fn reads_no_more_than_a_database_has_of_a_file_that_grows() {
        for (content, is_whole) in [("", true), ("1234", true), ("12345", false)] {
            let mut text = Vec::new();
            assert_eq!(read_within(content.as_bytes(), 4, &mut text).await.unwrap(), is_whole);
            assert_eq!(text.len(), content.len().min(4), "{content}");
        }
        let (mut text, endless) = (Vec::new(), tokio::io::repeat(b' '));
        assert!(!read_within(endless, 1_000_000, &mut text).await.unwrap());
        assert_eq!(text.len(), 1_000_000);
    }
}
