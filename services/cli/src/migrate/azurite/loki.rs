//! LokiJS databases, as Azurite writes them: one JSON document with collections of documents, read
//! one document at a time however large the file is.

use std::{
    cell::Cell,
    fmt,
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::errors::CliError;

/// Largest document that is read, in bytes: an entity of 1 MiB takes at most about 6 MiB of JSON.
const DOCUMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The size of a read from the disk.
const BUFFER_BYTES: usize = 256 * 1024;
/// How often a reader receives the progress, in bytes.
const PROGRESS_EVERY: u64 = 1024 * 1024;

/// Receives the documents of a database.
pub(super) trait DatabaseReader {
    /// How many documents of a collection are skipped at its beginning; none for all of them.
    fn select(&mut self, collection: &str) -> Option<u64>;
    /// Receives a document, counted from 1 in its collection.
    fn document(&mut self, collection: &str, number: u64, json: &str) -> Result<(), CliError>;
    /// A selected collection has ended.
    fn end(&mut self, _: &str) -> Result<(), CliError> {
        Ok(())
    }
    /// So many more bytes were read.
    fn bytes(&mut self, _: u64) {}
}

/// Reads a database file from its beginning to its end.
pub(super) fn read(path: &Path, reader: &mut dyn DatabaseReader) -> Result<(), CliError> {
    let shown = path.display();
    let file = File::open(path).map_err(CliError::input(format!("cannot read `{shown}`")))?;
    read_from(file, &shown.to_string(), reader)
}

/// Reads a database; `name` is for messages.
pub(super) fn read_from(
    input: impl Read,
    name: &str,
    reader: &mut dyn DatabaseReader,
) -> Result<(), CliError> {
    let meter = Meter::default();
    let input = BufReader::with_capacity(BUFFER_BYTES, input);
    let mut failure = None;
    let seed = DatabaseNode {
        level: DatabaseLevel::Database,
        reader,
        failure: &mut failure,
        meter: &meter,
    };
    let mut json = serde_json::Deserializer::from_reader(Metered { input, meter: &meter });
    let read = seed.deserialize(&mut json).and_then(|()| json.end());
    match (failure, read) {
        // The error of the reader, not the one that the parser derived from it.
        (Some(failure), _) => Err(failure),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) if error.is_io() => {
            Err(CliError::file(format!("cannot read `{name}`"))(error.into()))
        }
        (None, Err(error)) => Err(CliError::Usage(format!(
            "is not a complete database of Azurite: file=`{name}`, {error}"
        ))),
    }
}

/// Counts bytes, and bounds those of a document.
#[derive(Default)]
struct Meter {
    read: Cell<u64>,
    /// The position at which reading has to stop; 0: no limit.
    limit: Cell<u64>,
}

struct Metered<'a, R> {
    input: R,
    meter: &'a Meter,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let read = self.meter.read.get() + u64::try_from(count).unwrap_or(u64::MAX);
        self.meter.read.set(read);
        if self.meter.limit.get() > 0 && read > self.meter.limit.get() {
            let rule = format!("a document is larger than {DOCUMENT_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, rule));
        }
        Ok(count)
    }
}

/// The kind of a part of the database.
#[derive(Clone, Copy)]
enum DatabaseLevel<'a> {
    Database,
    Collections,
    Collection,
    /// The documents of the collection of this name.
    Documents(&'a str),
}

/// A part of the database, read at the position of the parser.
struct DatabaseNode<'a> {
    level: DatabaseLevel<'a>,
    reader: &'a mut dyn DatabaseReader,
    failure: &'a mut Option<CliError>,
    meter: &'a Meter,
}

impl DatabaseNode<'_> {
    fn at<'a>(&'a mut self, level: DatabaseLevel<'a>) -> DatabaseNode<'a> {
        DatabaseNode { level, reader: self.reader, failure: self.failure, meter: self.meter }
    }

    /// Stores the error of the reader, and stops the parser.
    fn keep<E: serde::de::Error>(&mut self, result: Result<(), CliError>) -> Result<(), E> {
        result.map_err(|failure| {
            *self.failure = Some(failure);
            E::custom("ended by its reader")
        })
    }

    fn documents<'de, A: SeqAccess<'de>>(
        &mut self,
        name: &str,
        mut seq: A,
    ) -> Result<(), A::Error> {
        let meter = self.meter;
        let selected = self.reader.select(name);
        let skipped = selected.unwrap_or(u64::MAX);
        let (mut number, mut reported) = (0_u64, meter.read.get());
        loop {
            number += 1;
            meter.limit.set(meter.read.get().saturating_add(DOCUMENT_BYTES_MAX));
            if number <= skipped {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    break;
                }
            } else {
                let Some(document) = seq.next_element::<Box<RawValue>>()? else { break };
                let taken = self.reader.document(name, number, document.get());
                self.keep(taken)?;
            }
            let more = meter.read.get().saturating_sub(reported);
            if more >= PROGRESS_EVERY {
                self.reader.bytes(more);
                reported = meter.read.get();
            }
        }
        meter.limit.set(0);
        self.reader.bytes(meter.read.get().saturating_sub(reported));
        let ended = selected.map_or(Ok(()), |_| self.reader.end(name));
        self.keep(ended)
    }
}

impl<'de> DeserializeSeed<'de> for DatabaseNode<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.level {
            DatabaseLevel::Database | DatabaseLevel::Collection => {
                deserializer.deserialize_map(self)
            }
            DatabaseLevel::Collections | DatabaseLevel::Documents(_) => {
                deserializer.deserialize_seq(self)
            }
        }
    }
}

impl<'de> Visitor<'de> for DatabaseNode<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            DatabaseLevel::Database => "a LokiJS database",
            DatabaseLevel::Collections => "an array of collections",
            DatabaseLevel::Collection => "a collection",
            DatabaseLevel::Documents(_) => "an array of documents",
        })
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let (is_database, mut found) = (matches!(self.level, DatabaseLevel::Database), false);
        let mut name: Option<String> = None;
        while let Some(key) = map.next_key::<String>()? {
            match (is_database, key.as_str(), &name) {
                (true, "collections", _) => {
                    found = true;
                    map.next_value_seed(self.at(DatabaseLevel::Collections))?;
                }
                (false, "name", _) => name = Some(map.next_value()?),
                (false, "data", Some(name)) => {
                    map.next_value_seed(self.at(DatabaseLevel::Documents(name)))?;
                }
                (false, "data", None) => {
                    return Err(A::Error::custom("a collection without a name"));
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if is_database && !found { Err(A::Error::missing_field("collections")) } else { Ok(()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        if let DatabaseLevel::Documents(name) = self.level {
            return self.documents(name, seq);
        }
        while seq.next_element_seed(self.at(DatabaseLevel::Collection))?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests;
