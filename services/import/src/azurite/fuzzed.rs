//! A database of Azurite without its workspace, for fuzz tests.

use std::path::Path;

use trestle_proto::table::v1::Entity;

use super::{
    blob_documents::{self, ContainerDocument},
    documents::{self, MessageDocument, QueueDocument, TableDocument},
    loki,
};
use crate::plan;

/// Documents by the name of their collection and their number in it, each with its entity, if it is one.
pub type Documents = Vec<(String, u64, Option<Entity>)>;

/// Reads a database: every document after the first `after` of each collection, read as
/// each type that an import reads.
///
/// # Errors
/// Why the bytes are not a database.
pub fn azurite_documents(database: &[u8], after: u64) -> Result<Documents, String> {
    let database = loki::parse(database, Path::new("bytes")).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for collection in &database.collections {
        for (number, json) in collection.documents(after) {
            // The results are not compared: these must be parsed or rejected.
            let policies = |read: Option<Vec<_>>| plan::policies(read.unwrap_or_default());
            let _ = serde_json::from_str(json).map(|read: TableDocument| policies(read.policies));
            let _ = serde_json::from_str(json).map(|read: QueueDocument| policies(read.policies));
            let _ = serde_json::from_str(json)
                .map(|message: MessageDocument| (message.visible(), message.expires()));
            let _ =
                serde_json::from_str(json).map(|read: ContainerDocument| policies(read.policies));
            let _ = blob_documents::blob(json, "b");
            found.push((collection.name.clone(), number, documents::entity(json, number).ok()));
        }
    }
    Ok(found)
}
