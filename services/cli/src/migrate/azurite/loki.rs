//! LokiJS databases, as Azurite keeps them: one JSON document with collections of documents, read
//! one document at a time however large the file is.

use std::{
    cell::Cell,
    fmt,
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
    rc::Rc,
};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::errors::CliError;

/// Largest document that is read, in bytes: an entity of 1 MiB takes at most about 6 MiB of JSON.
const DOCUMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How much is read from the disk at a time.
const BUFFER_BYTES: usize = 256 * 1024;
/// How often `bytes` of a reader is told, in bytes.
const TELL_EVERY: u64 = 1024 * 1024;

/// What is wanted of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// Nothing.
    Skip,
    /// Every document after the first so many.
    After(u64),
}

/// Who reads a database.
pub(super) trait Reader {
    /// What is wanted of a collection.
    fn interest(&mut self, collection: &str) -> Interest;
    /// Takes a document, counted from 1 in its collection.
    fn document(&mut self, collection: &str, number: u64, json: &str) -> Result<(), CliError>;
    /// A collection that was wanted has ended.
    fn end(&mut self, collection: &str) -> Result<(), CliError> {
        let _ = collection;
        Ok(())
    }
    /// So many more bytes were read.
    fn bytes(&mut self, more: u64) {
        let _ = more;
    }
}

/// Reads a database file from its beginning to its end.
pub(super) fn read(path: &Path, reader: &mut dyn Reader) -> Result<(), CliError> {
    let shown = path.display();
    let file = File::open(path).map_err(CliError::input(format!("cannot read `{shown}`")))?;
    read_from(file, &shown.to_string(), reader)
}

/// Reads a database; `name` is for messages.
pub(super) fn read_from(
    input: impl Read,
    name: &str,
    reader: &mut dyn Reader,
) -> Result<(), CliError> {
    let meter = Rc::new(Meter::default());
    let input = BufReader::with_capacity(BUFFER_BYTES, input);
    let mut failure = None;
    let seed = Database { reader, failure: &mut failure, meter: &meter };
    let mut json = serde_json::Deserializer::from_reader(Metered { input, meter: &meter });
    let read = seed.deserialize(&mut json).and_then(|()| json.end());
    match (failure, read) {
        // What the reader said, not how the parser wraps it.
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) if error.is_io() => {
            Err(CliError::file(format!("cannot read `{name}`"))(error.into()))
        }
        (None, Err(error)) => {
            let rule = "is no complete database of Azurite";
            Err(CliError::Usage(format!("{rule}: file=`{name}`, {error}")))
        }
    }
}

/// Counts bytes, and bounds those of a document.
#[derive(Default)]
struct Meter {
    read: Cell<u64>,
    /// Where reading has to stop; 0 is nowhere.
    limit: Cell<u64>,
}

struct Metered<'a, R> {
    input: R,
    meter: &'a Rc<Meter>,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let meter = self.meter;
        meter.read.set(meter.read.get().saturating_add(u64::try_from(count).unwrap_or(u64::MAX)));
        if meter.limit.get() > 0 && meter.read.get() > meter.limit.get() {
            let rule = format!("a document is larger than {DOCUMENT_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, rule));
        }
        Ok(count)
    }
}

/// What every level of the document passes down.
struct Database<'a, 'm> {
    reader: &'a mut dyn Reader,
    failure: &'a mut Option<CliError>,
    meter: &'m Meter,
}

impl<'a, 'm> Database<'a, 'm> {
    fn again(&mut self) -> Database<'_, 'm> {
        Database { reader: self.reader, failure: self.failure, meter: self.meter }
    }

    /// Keeps what the reader said, and ends the parser.
    fn keep<E: serde::de::Error>(&mut self, result: Result<(), CliError>) -> Result<(), E> {
        result.map_err(|failure| {
            *self.failure = Some(failure);
            E::custom("ended by its reader")
        })
    }
}

impl<'de> DeserializeSeed<'de> for Database<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Database<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a LokiJS database")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "collections" {
                found = true;
                map.next_value_seed(Collections(self.again()))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(A::Error::missing_field("collections")) }
    }
}

struct Collections<'a, 'm>(Database<'a, 'm>);

impl<'de> DeserializeSeed<'de> for Collections<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Collections<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of collections")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Collection(self.0.again()))?.is_some() {}
        Ok(())
    }
}

struct Collection<'a, 'm>(Database<'a, 'm>);

impl<'de> DeserializeSeed<'de> for Collection<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Collection<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a collection")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut name: Option<String> = None;
        while let Some(key) = map.next_key::<String>()? {
            match (key.as_str(), &name) {
                ("name", _) => name = Some(map.next_value()?),
                ("data", Some(name)) => {
                    map.next_value_seed(Documents { database: self.0.again(), name })?;
                }
                ("data", None) => return Err(A::Error::custom("a collection without a name")),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct Documents<'a, 'm> {
    database: Database<'a, 'm>,
    name: &'a str,
}

impl<'de> DeserializeSeed<'de> for Documents<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Documents<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of documents")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let meter = self.database.meter;
        let skipped = match self.database.reader.interest(self.name) {
            Interest::Skip => u64::MAX,
            Interest::After(count) => count,
        };
        let (mut number, mut told) = (0_u64, meter.read.get());
        loop {
            number = number.saturating_add(1);
            meter.limit.set(meter.read.get().saturating_add(DOCUMENT_BYTES_MAX));
            if number <= skipped {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    break;
                }
            } else {
                let Some(document) = seq.next_element::<Box<RawValue>>()? else { break };
                let taken = self.database.reader.document(self.name, number, document.get());
                self.database.keep(taken)?;
            }
            let more = meter.read.get().saturating_sub(told);
            if more >= TELL_EVERY {
                self.database.reader.bytes(more);
                told = meter.read.get();
            }
        }
        meter.limit.set(0);
        self.database.reader.bytes(meter.read.get().saturating_sub(told));
        if skipped == u64::MAX {
            return Ok(());
        }
        let ended = self.database.reader.end(self.name);
        self.database.keep(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what it is given of collections that do not begin with `-`.
    #[derive(Default)]
    struct Kept {
        after: u64,
        seen: Vec<(String, u64, String)>,
        ended: Vec<String>,
        refuse: bool,
    }

    impl Reader for Kept {
        fn interest(&mut self, collection: &str) -> Interest {
            match collection.starts_with('-') {
                true => Interest::Skip,
                false => Interest::After(self.after),
            }
        }

        fn document(&mut self, collection: &str, number: u64, json: &str) -> Result<(), CliError> {
            self.seen.push((collection.to_owned(), number, json.to_owned()));
            match self.refuse {
                true => Err(CliError::Refused),
                false => Ok(()),
            }
        }

        fn end(&mut self, collection: &str) -> Result<(), CliError> {
            self.ended.push(collection.to_owned());
            Ok(())
        }
    }

    const DATABASE: &str = r#"{"filename":"x","collections":[
        {"name":"-skipped","data":[{"a":[1,{"b":2}]}],"idIndex":[1]},
        {"name":"taken","data":[{"n":1}, {"n":2} ,{"n":3}],"maxId":3},
        {"name":"empty","data":[]}],"databaseVersion":1.5}"#;

    fn read_text(text: &str, kept: &mut Kept) -> Result<(), String> {
        read_from(text.as_bytes(), "db", kept).map_err(|error| error.to_string())
    }

    #[test]
    fn documents_of_the_wanted_collections_come_one_by_one_with_their_number() {
        let mut kept = Kept { after: 1, ..Kept::default() };

        read_text(DATABASE, &mut kept).unwrap();

        let taken = |number, json: &str| ("taken".to_owned(), number, json.to_owned());
        assert_eq!(kept.seen, [taken(2, r#"{"n":2}"#), taken(3, r#"{"n":3}"#)]);
        assert_eq!(kept.ended, ["taken", "empty"]);
    }

    #[test]
    fn files_that_are_no_databases_are_refused_with_the_place() {
        for (text, told) in [
            ("", "EOF"),
            ("[]", "a LokiJS database"),
            ("{}", "missing field `collections`"),
            (r#"{"collections":{}}"#, "an array of collections"),
            (r#"{"collections":[1]}"#, "a collection"),
            (r#"{"collections":[{"data":[]}]}"#, "without a name"),
            (r#"{"collections":[{"name":1}]}"#, "expected a string"),
            (r#"{"collections":[{"name":"a","data":{}}]}"#, "an array of documents"),
            (r#"{"collections":[]} x"#, "trailing characters"),
            (&DATABASE[..DATABASE.len() / 2], "line 3"),
            (&DATABASE[..DATABASE.len() - 1], "EOF"),
        ] {
            let error = read_text(text, &mut Kept::default()).unwrap_err();
            assert!(error.contains("file=`db`") && error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn a_document_that_never_ends_is_refused_before_it_fills_the_memory() {
        let start = r#"{"collections":[{"name":"a","data":[{"x":""#.as_bytes();
        let endless = start.chain(io::repeat(b'x').take(1 << 30));

        let error = read_from(endless, "db", &mut Kept::default()).unwrap_err().to_string();

        assert!(error.contains("larger than 16777216 bytes"), "{error}");
    }

    #[test]
    fn what_the_reader_says_ends_the_reading() {
        let mut kept = Kept { refuse: true, ..Kept::default() };

        let ended = read_from(DATABASE.as_bytes(), "db", &mut kept);

        assert!(matches!(ended, Err(CliError::Refused)));
        assert_eq!(kept.seen.len(), 1);
    }
}
