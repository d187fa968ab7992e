//! The objects that the rows of a restored instant name.

use std::collections::HashMap;

use futures::{StreamExt as _, TryStreamExt as _};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use trestle_command::errors::CliError;
use trestle_kv_fjall::StoreWriter;
use trestle_objects::ObjectStorage;

use super::{Restore, contents::RestoredObjects};
use crate::{
    failure::broken,
    lists::{Damage, ObjectRef},
    rules::{ObjectName, StoreRules},
    verify::AT_ONCE,
};

/// Objects that wait to be written.
const AHEAD: usize = 16;

/// What the rows of an instant name.
#[derive(Debug, Default)]
pub(super) struct InstantContents {
    /// Rows.
    pub(super) rows: u64,
    /// The bytes of their keys and values.
    pub(super) row_bytes: u64,
    /// The objects.
    pub(super) objects: RestoredObjects,
}

impl Restore<'_> {
    /// Writes the objects that the rows of a store name.
    ///
    /// # Errors
    /// A target that cannot be read, or an object that cannot be written.
    pub(super) async fn named_objects(
        &self,
        writer: StoreWriter,
        objects: HashMap<ObjectName, ObjectRef>,
        storage: &ObjectStorage,
    ) -> Result<(StoreWriter, InstantContents), CliError> {
        let (sender, received) = mpsc::channel(AHEAD);
        let rules = self.store.rules.clone();
        let read = tokio::task::spawn_blocking(move || {
            let named = named(&writer, &rules, objects, &sender);
            named.map(|named| (writer, named))
        });
        let put = ReceiverStream::new(received).map(|object| self.object(storage, object));
        let put = put.buffer_unordered(AT_ONCE).try_fold(
            RestoredObjects::default(),
            async |mut restored, object| {
                restored.add(object);
                Ok(restored)
            },
        );
        let put = put.await;
        let read = read.await.map_err(|error| broken(&error))?;
        let put = put?;
        let (writer, named) = read?;
        Ok((writer, InstantContents { objects: named.objects.and(put), ..named }))
    }
}

/// Sends each object that rows name once.
fn named(
    writer: &StoreWriter,
    rules: &StoreRules,
    objects: HashMap<ObjectName, ObjectRef>,
    sender: &mpsc::Sender<ObjectRef>,
) -> Result<InstantContents, CliError> {
    let mut named = InstantContents::default();
    let mut remaining: HashMap<_, _> =
        objects.into_iter().map(|(name, object)| (name, Some(object))).collect();
    let note = |named: &mut InstantContents, object: String, reason: &str| {
        named.objects.lose(Damage { object, reason: reason.to_owned() });
    };
    for keyspace in &rules.keyspaces {
        for row in writer.rows(keyspace.name, None).map_err(|error| broken(&error))? {
            let row = row.map_err(|error| broken(&error))?;
            named.rows += 1;
            named.row_bytes += (row.key.len() + row.value.len()) as u64;
            let names = match (rules.objects_of)(&row) {
                Ok(names) => names,
                Err(reason) => {
                    let key = crate::rows::shown_key(&row.key);
                    let object = format!("objects of a row of `{}`: {key}", keyspace.name);
                    note(&mut named, object, &reason);
                    continue;
                }
            };
            for object in names {
                let Some(found) = remaining.get_mut(&object.name) else {
                    let reason = "it is missing from the backup and from the changes";
                    note(&mut named, object.name.to_string(), reason);
                    remaining.insert(object.name, None);
                    continue;
                };
                // An earlier version copied what was cut short. Another row may still name what is there.
                let difference = found.as_ref().and_then(|found| object.difference(found.bytes));
                if let Some(reason) = difference {
                    note(&mut named, object.name.to_string(), &reason);
                } else if let Some(found) = found.take()
                    && sender.blocking_send(found).is_err()
                {
                    // The error is that of the object before it.
                    return Ok(named);
                }
            }
        }
    }
    Ok(named)
}
