//! The row of a database that names its object store, as the file `blob-store` does in a data directory.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use trestle_kv::{Engine, Keyspace, key_domain};
use trestle_objects::{BindingRecord, OpenObjectsError};

use super::text_row::replace_text;

/// The key of the row.
const OBJECTS: u8 = 0x0A;
/// Where it is.
pub(super) const KEYSPACE: Keyspace =
    Keyspace { name: "objects", kinds: OBJECTS..=OBJECTS, domain: key_domain };

/// The row in this engine.
pub(super) struct BindingRow(pub(super) Arc<dyn Engine>);

impl fmt::Debug for BindingRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BindingRow")
    }
}

fn failed(error: &impl ToString) -> OpenObjectsError {
    OpenObjectsError::Record(error.to_string())
}

#[async_trait]
impl BindingRecord for BindingRow {
    async fn read(&self) -> Result<Option<String>, OpenObjectsError> {
        let stored = self.0.get(&[OBJECTS]).await.map_err(|error| failed(&error))?;
        let text = stored.map(|stored| String::from_utf8(stored.to_vec())).transpose();
        text.map_err(|error| failed(&error))
    }

    async fn replace(&self, found: Option<&str>, text: &str) -> Result<bool, OpenObjectsError> {
        let (found, text) = (found.map(str::to_owned), Some(text.to_owned()));
        let replaced = replace_text(&*self.0, OBJECTS, found, text).await;
        replaced.map_err(|error| failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use trestle_kv::MemoryEngine;

    use super::*;

    #[tokio::test]
    async fn the_row_is_replaced_by_whoever_read_it_last() {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(vec![KEYSPACE]));
        let (one, two) = (BindingRow(Arc::clone(&engine)), BindingRow(engine));
        assert_eq!(one.read().await.unwrap(), None);

        assert!(one.replace(None, "first").await.unwrap());
        assert!(!two.replace(None, "other").await.unwrap());
        assert_eq!(two.read().await.unwrap().as_deref(), Some("first"));

        assert!(two.replace(Some("first"), "second").await.unwrap());
        assert!(!one.replace(Some("first"), "other").await.unwrap());
        assert_eq!(one.read().await.unwrap().as_deref(), Some("second"));
    }
}
