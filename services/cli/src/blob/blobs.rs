//! `ls`, `cat`, `rm` and `stat`.

use std::io::{self, Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::TryStreamExt as _;
use serde_json::{Value, json};
use tonic::Code;
use trestle_command::{
    client::Session,
    confirm::confirm,
    errors::CliError,
    output::{Context, counted, report_line},
    retry::repeated,
};
use trestle_proto::blob::v1::{
    Blob, BlobConditions, DeleteBlobRequest, DeleteSnapshots, GetBlobRequest, listed_blob::Item,
};

use super::{
    BlobAddress, BlobStateArgs, ListedStatesArgs, args::SnapshotsToDelete, content::BlobContent,
    copy::is_of_item, lease, listing::BlobListing,
};
use crate::datetime;

/// Deletes at a time.
const DELETES_MAX: usize = 16;

/// Prints blobs and groups of them.
pub(super) async fn list(
    context: &mut Context,
    (blobs, delimiter): (BlobAddress, String),
    states: ListedStatesArgs,
) -> Result<(), CliError> {
    let has_prefixes = !delimiter.is_empty();
    let listing = BlobListing::new(&context.session, blobs, delimiter);
    let mut listing = listing.with_states(states);
    let mut columns = vec!["blob"];
    if has_prefixes {
        columns.insert(0, "prefix");
    }
    columns.extend(states.snapshots.then_some("snapshot"));
    columns
        .extend(states.versions.then_some(["version_id", "is_current_version"]).iter().flatten());
    columns.extend(states.deleted.then_some("delete_time"));
    columns.extend(["size_bytes", "last_modified", "content_type"]);
    if !context.output.is_table() {
        columns.extend(["etag", "create_time", "lease", "metadata"]);
    }
    let mut printed = false;
    while let Some(items) = listing.next().await? {
        let record = |item: &Item| match item {
            Item::Blob(blob) => record(blob),
            Item::Prefix(prefix) => json!({ "prefix": prefix }),
        };
        let records: Vec<_> = items.iter().map(record).collect();
        context.output.records(&records, &columns)?;
        printed |= !records.is_empty();
    }
    context.output.unless_empty(printed, "no blobs")
}

/// Prints a blob without its content.
pub(super) async fn stat(
    context: &mut Context,
    blob: BlobAddress,
    BlobStateArgs { snapshot, version_id }: BlobStateArgs,
) -> Result<(), CliError> {
    let BlobAddress { container, name: blob } = blob.of_blob()?;
    let request = GetBlobRequest { container, blob, snapshot, version_id, ..Default::default() };
    let found = context.session.blobs().get_blob(request).await?.into_inner().blob;
    let found = found.ok_or_else(|| CliError::Protocol("no blob".to_owned()))?;
    context.output.record(["Property", "Value"], &record(&found))
}

fn record(blob: &Blob) -> Value {
    let properties = blob.properties.clone().unwrap_or_default();
    let text = |text: String| Some(text).filter(|text| !text.is_empty());
    json!({
        "blob": blob.name,
        "snapshot": text(blob.snapshot.clone()),
        "version_id": text(blob.version_id.clone()),
        "is_current_version": (!blob.version_id.is_empty()).then_some(blob.is_current_version),
        "delete_time": blob.delete_time.as_ref().and_then(datetime::format),
        "size_bytes": blob.size,
        "etag": blob.etag,
        "last_modified": blob.last_modified.as_ref().and_then(datetime::format),
        "create_time": blob.create_time.as_ref().and_then(datetime::format),
        "content_type": text(properties.content_type),
        "content_encoding": text(properties.content_encoding),
        "content_language": text(properties.content_language),
        "content_disposition": text(properties.content_disposition),
        "cache_control": text(properties.cache_control),
        "content_md5": text(STANDARD.encode(&properties.content_md5)),
        "lease": lease::state(blob.lease.as_ref()),
        "metadata": blob.metadata,
    })
}

/// Writes the content of a blob to standard output.
pub(super) async fn cat(
    context: &mut Context,
    (blob, state): (BlobAddress, BlobStateArgs),
    offset: u64,
    length: Option<u64>,
) -> Result<(), CliError> {
    let content = BlobContent::new(&context.session, blob.of_blob()?).of_state(state);
    let mut content = content.with_range(offset, length);
    let mut out = io::stdout();
    let failed = || CliError::file("cannot write to standard output");
    while let Some(data) = content.next().await? {
        out.write_all(&data).map_err(failed())?;
    }
    out.flush().map_err(failed())
}

/// Deletes a blob.
pub(super) async fn remove(
    context: &mut Context,
    (blob, state): (BlobAddress, BlobStateArgs),
    (lease_id, snapshots): (String, Option<SnapshotsToDelete>),
) -> Result<(), CliError> {
    let blob = blob.of_blob()?;
    delete(&context.session, (&blob, &state), (lease_id, snapshots)).await?;
    let text = match snapshots {
        Some(SnapshotsToDelete::Only) => format!("deleted the snapshots of blob {blob}"),
        _ if !state.snapshot.is_empty() => format!("deleted a snapshot of blob {blob}"),
        _ if !state.version_id.is_empty() => format!("deleted a version of blob {blob}"),
        _ => format!("deleted blob {blob}"),
    };
    let object = json!({ "container": blob.container, "blob": blob.name, "deleted": 1 });
    context.output.either(&text, &object)
}

/// Deletes every blob in a folder.
pub(super) async fn remove_below(
    context: &mut Context,
    blob: BlobAddress,
    yes: bool,
) -> Result<(), CliError> {
    confirm(yes, "deleting a folder", "folder", &blob.to_string())?;
    let folder = blob.folder();
    let session = &context.session;
    let blobs = BlobListing::new(session, folder.clone(), String::new()).blobs();
    let removed = blobs.map_ok(|blob| {
        let blob = folder.with_name(blob.name);
        async move {
            let state = BlobStateArgs::default();
            let delete = async || delete(session, (&blob, &state), Default::default()).await;
            match repeated(delete).await {
                Ok(()) => Ok(true),
                // Deleted meanwhile, or by a call whose answer was lost.
                Err(CliError::Call(status)) if status.code() == Code::NotFound => Ok(true),
                // Such as one with a lease or snapshots: the others are deleted.
                Err(error) if is_of_item(&error) => {
                    report_line(&format!("not deleted: `{}`: {error}", blob.name));
                    Ok(false)
                }
                Err(error) => Err(error),
            }
        }
    });
    let count = async |(deleted, left), is_deleted: bool| {
        Ok(if is_deleted { (deleted + 1, left) } else { (deleted, left + 1) })
    };
    let removed = removed.try_buffer_unordered(DELETES_MAX);
    let (deleted, left) = removed.try_fold((0_u64, 0_u64), count).await?;
    let text = format!("deleted {}", counted(deleted, "blob"));
    let (container, prefix) = (&folder.container, &folder.name);
    let object = json!({ "container": container, "prefix": prefix, "deleted": deleted, "not_deleted": left });
    context.output.either(&text, &object)?;
    context.output.flush()?;
    match left {
        0 => Ok(()),
        _ => Err(CliError::Rows(format!("{} not deleted, as reported", counted(left, "blob")))),
    }
}

async fn delete(
    session: &Session,
    (blob, state): (&BlobAddress, &BlobStateArgs),
    (lease_id, snapshots): (String, Option<SnapshotsToDelete>),
) -> Result<(), CliError> {
    let BlobAddress { container, name: blob } = blob.clone();
    let BlobStateArgs { snapshot, version_id } = state.clone();
    let conditions = Some(BlobConditions { lease_id, ..Default::default() });
    let delete_snapshots = match snapshots {
        None => DeleteSnapshots::Unspecified,
        Some(SnapshotsToDelete::Include) => DeleteSnapshots::Include,
        Some(SnapshotsToDelete::Only) => DeleteSnapshots::Only,
    };
    let delete_snapshots = delete_snapshots.into();
    let request =
        DeleteBlobRequest { container, blob, conditions, snapshot, delete_snapshots, version_id };
    session.blobs().delete_blob(request).await?;
    Ok(())
}
