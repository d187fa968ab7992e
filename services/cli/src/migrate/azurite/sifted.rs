//! A database of Azurite without its workspace, for tests: what becomes of bytes that nobody wrote.

use trestle_proto::table::v1::Entity;

use super::{
    documents::{self, MessageDocument, QueueDocument, TableDocument},
    loki::{self, Interest, Reader},
};
use crate::errors::CliError;

/// Documents by the name of their collection and their number in it, each with the entity that it
/// is, if it is one.
pub type Documents = Vec<(String, u64, Option<Entity>)>;

/// Reads a database: every document after the first `after` of each collection, taken for
/// everything that an import may take it for.
///
/// # Errors
/// Bytes that are no database, and why.
pub fn azurite_documents(database: &[u8], after: u64) -> Result<Documents, String> {
    let mut sieve = Sieve { after, found: Vec::new() };
    let read = loki::read_from(database, "bytes", &mut sieve);
    read.map(|()| sieve.found).map_err(|error| error.to_string())
}

/// Keeps everything.
struct Sieve {
    after: u64,
    found: Documents,
}

impl Reader for Sieve {
    fn interest(&mut self, _: &str) -> Interest {
        Interest::After(self.after)
    }

    fn document(&mut self, collection: &str, number: u64, json: &str) -> Result<(), CliError> {
        // What these are is compared nowhere; that they are read or refused is what matters.
        let _ = serde_json::from_str::<TableDocument>(json).map(|mut table| table.policies());
        let _ = serde_json::from_str::<QueueDocument>(json).map(|mut queue| queue.policies());
        let _ = serde_json::from_str::<MessageDocument>(json)
            .map(|message| (message.visible(), message.expires()));
        let entity = documents::entity(json, number).ok();
        self.found.push((collection.to_owned(), number, entity));
        Ok(())
    }
}
