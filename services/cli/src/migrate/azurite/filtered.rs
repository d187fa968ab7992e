//! A database of Azurite without its workspace, for fuzz tests.

use trestle_proto::table::v1::Entity;

use super::{
    documents::{self, MessageDocument, QueueDocument, TableDocument},
    loki::{self, DatabaseReader},
};
use crate::{errors::CliError, migrate::plan};

/// Documents by the name of their collection and their number in it, each with its entity, if it is one.
pub type Documents = Vec<(String, u64, Option<Entity>)>;

/// Reads a database: every document after the first `after` of each collection, read as
/// each type that an import reads.
///
/// # Errors
/// Why the bytes are not a database.
pub fn azurite_documents(database: &[u8], after: u64) -> Result<Documents, String> {
    let mut all = AllDocuments { after, found: Vec::new() };
    let read = loki::read_from(database, "bytes", &mut all);
    read.map(|()| all.found).map_err(|error| error.to_string())
}

/// Stores every document.
struct AllDocuments {
    after: u64,
    found: Documents,
}

impl DatabaseReader for AllDocuments {
    fn select(&mut self, _: &str) -> Option<u64> {
        Some(self.after)
    }

    fn document(&mut self, collection: &str, number: u64, json: &str) -> Result<(), CliError> {
        // The results are not compared: these must be parsed or rejected.
        let policies = |documents: Option<Vec<_>>| plan::policies(documents.unwrap_or_default());
        let _ = serde_json::from_str::<TableDocument>(json).map(|table| policies(table.policies));
        let _ = serde_json::from_str::<QueueDocument>(json).map(|queue| policies(queue.policies));
        let _ = serde_json::from_str::<MessageDocument>(json)
            .map(|message| (message.visible(), message.expires()));
        let entity = documents::entity(json, number).ok();
        self.found.push((collection.to_owned(), number, entity));
        Ok(())
    }
}
