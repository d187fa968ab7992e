//! The objects that rows name, from the source to the target.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use trestle_backup::{ObjectAreaName, ObjectName};
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

/// An object, for people.
fn shown(name: &ObjectName) -> String {
    let area = match name.area {
        ObjectAreaName::Blobs => "blob",
        ObjectAreaName::Logs => "log",
    };
    format!("{area}/{}", name.path)
}

fn lacking(name: &ObjectName) -> CliError {
    let text = format!(
        "the source lacks an object that a row names: object=`{}`; check where its objects are, or leave out what is \
         lost with --accept-loss",
        shown(name)
    );
    CliError::Source { text, busy: false }
}

impl ObjectCopy<'_> {
    fn area(&self, name: &ObjectName) -> Result<&ObjectArea, CliError> {
        let none = || {
            let text = format!(
                "--to-blob-url is required: the source has objects, such as `{}`",
                shown(name)
            );
            CliError::Usage(text)
        };
        let storage = self.to.as_ref().ok_or_else(none)?;
        Ok(match name.area {
            ObjectAreaName::Blobs => &storage.blobs,
            ObjectAreaName::Logs => &storage.logs,
        })
    }

    /// Copies objects. One that the source lacks ends the copy, before the row that names it: the place may be a wrong
    /// one. Where that is accepted, it is reported when both are compared.
    pub(super) async fn copy(&self, names: Vec<ObjectName>) -> Result<(), CliError> {
        let copies = stream::iter(names).map(|name| async move {
            let area = self.area(&name)?;
            let copied = match name.area {
                ObjectAreaName::Blobs => copy_object(&*self.from.blobs, area, &name.path).await,
                ObjectAreaName::Logs => copy_object(&*self.from.logs, area, &name.path).await,
            };
            match copied.map_err(|error| failed(&error))? {
                ObjectTransfer::Missing if !self.accepts_loss => Err(lacking(&name)),
                _ => Ok(()),
            }
        });
        copies.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Compares the lengths of objects, and counts them.
    pub(super) async fn compare(
        &self,
        names: Vec<ObjectName>,
        summary: &mut CopySummary,
    ) -> Result<(), CliError> {
        let sizes = stream::iter(names).map(|name| async move {
            let area = self.area(&name)?;
            let found = match name.area {
                ObjectAreaName::Blobs => object_size(&*self.from.blobs, &name.path).await,
                ObjectAreaName::Logs => object_size(&*self.from.logs, &name.path).await,
            };
            let source = found.map_err(|error| failed(&error))?;
            let target = object_size(&*area.store, &name.path).await;
            Ok::<_, CliError>((name, source, target.map_err(|error| failed(&error))?))
        });
        let mut sizes = std::pin::pin!(sizes.buffer_unordered(AT_ONCE));
        while let Some((name, source, target)) = sizes.try_next().await? {
            if source.is_none() {
                summary.missing.add(shown(&name));
            }
            if source != target {
                let bytes =
                    |size: Option<u64>| size.map_or("none".to_owned(), |size| size.to_string());
                summary.differences.add(format!(
                    "an object differs: object=`{}`, source_bytes=`{}`, target_bytes=`{}`",
                    shown(&name),
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
