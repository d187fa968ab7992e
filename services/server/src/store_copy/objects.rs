//! The objects that rows name, from the source to the target.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use trestle_backup::{NamedObject, ObjectName};
use trestle_command::errors::CliError;
use trestle_objects::{
    ObjectArea, ObjectStorage, ObjectTransfer, SourceObjects, TransferError, WriteObjectError,
    copy_object, object_size,
};

use super::summary::CopySummary;

/// Objects that are copied, or compared, at a time. Each is in memory whole: 8 MiB of a blob, a segment of a log.
const AT_ONCE: usize = 4;

/// Where objects are from, and where they go.
pub(crate) struct ObjectCopy<'a> {
    pub(crate) from: &'a SourceObjects,
    /// None where the target has no place for objects.
    pub(crate) to: &'a Option<ObjectStorage>,
    /// Whether what the source lacks is left out.
    pub(crate) accepts_loss: bool,
}

fn failed(error: &TransferError) -> CliError {
    use TransferError::{Read, Write};
    let busy = matches!(error, Read { .. } | Write(WriteObjectError::Store(_)));
    CliError::Source { text: error.to_string(), busy }
}

fn lost(name: &ObjectName, problem: &str) -> CliError {
    let text = format!(
        "{problem}: object=`{name}`; check where its objects are, or leave out what is lost with --accept-loss"
    );
    CliError::Source { text, busy: false }
}

impl ObjectCopy<'_> {
    fn area(&self, name: &ObjectName) -> Result<&ObjectArea, CliError> {
        let none = || {
            let text =
                format!("--to-blob-url is required: the source has objects, such as `{name}`");
            CliError::Usage(text)
        };
        let storage = self.to.as_ref().ok_or_else(none)?;
        Ok(name.of_area(&storage.blobs, &storage.logs))
    }

    /// Copies objects. One that the source lacks, or has not whole, ends the copy before the row that names it: the
    /// place may be a wrong one. Where that is accepted, it is reported when both are compared.
    pub(super) async fn copy(&self, named: Vec<NamedObject>) -> Result<(), CliError> {
        let copies = stream::iter(named).map(|object| async move {
            let name = &object.name;
            let (from, to) = (name.of_area(&self.from.blobs, &self.from.logs), self.area(name)?);
            let copied = copy_object(&**from, to, &name.path, object.bytes).await;
            match copied.map_err(|error| failed(&error))? {
                ObjectTransfer::Missing if !self.accepts_loss => {
                    Err(lost(name, "the source lacks an object that a row names"))
                }
                ObjectTransfer::OtherLength(found) if !self.accepts_loss => {
                    let problem = object.difference(found).unwrap_or_default();
                    Err(lost(name, &format!("an object of the source is not whole, {problem}")))
                }
                _ => Ok(()),
            }
        });
        copies.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Compares the lengths of objects, and counts them.
    pub(super) async fn compare(
        &self,
        named: Vec<NamedObject>,
        summary: &mut CopySummary,
    ) -> Result<(), CliError> {
        let sizes = stream::iter(named).map(|object| async move {
            let name = &object.name;
            let (from, to) = (name.of_area(&self.from.blobs, &self.from.logs), self.area(name)?);
            let source = object_size(&**from, &name.path).await.map_err(|error| failed(&error))?;
            let target =
                object_size(&*to.store, &name.path).await.map_err(|error| failed(&error))?;
            Ok::<_, CliError>((object, source, target))
        });
        let mut sizes = std::pin::pin!(sizes.buffer_unordered(AT_ONCE));
        while let Some((object, found, target)) = sizes.try_next().await? {
            let (name, difference) = (&object.name, found.and_then(|it| object.difference(it)));
            // One that is not whole is not copied.
            let source = found.filter(|_| difference.is_none());
            if source.is_none() {
                let problem = difference.map(|it| format!(": {it}")).unwrap_or_default();
                summary.missing.add(format!("{name}{problem}"));
            }
            if source != target {
                let bytes =
                    |size: Option<u64>| size.map_or("none".to_owned(), |size| size.to_string());
                summary.differences.add(format!(
                    "an object differs: object=`{name}`, source_bytes=`{}`, target_bytes=`{}`",
                    bytes(source),
                    bytes(target)
                ));
            }
            if let Some(bytes) = target {
                summary.objects += 1;
                summary.object_bytes += bytes;
            }
        }
        Ok(())
    }
}
