//! `snapshot` and `undelete`.

use serde_json::json;
use trestle_command::{errors::CliError, output::Context};
use trestle_proto::blob::v1::{SnapshotBlobRequest, UndeleteBlobRequest};

use super::BlobAddress;

/// Takes a snapshot of a blob, and prints its name.
pub(super) async fn create(context: &mut Context, blob: BlobAddress) -> Result<(), CliError> {
    let BlobAddress { container, name } = blob.of_blob()?;
    let request = SnapshotBlobRequest {
        container: container.clone(),
        blob: name.clone(),
        ..Default::default()
    };
    let response = context.session.blobs().snapshot_blob(request).await?.into_inner();
    let snapshot = response.snapshot.ok_or_else(|| CliError::Protocol("no snapshot".to_owned()))?;
    let snapshot = snapshot.snapshot;
    let object = json!({ "container": container, "blob": name, "snapshot": snapshot });
    context.output.either(&snapshot, &object)
}

/// Restores a deleted blob and its deleted snapshots.
pub(super) async fn undelete(context: &mut Context, blob: BlobAddress) -> Result<(), CliError> {
    let blob = blob.of_blob()?;
    let text = format!("restored blob {blob}");
    let BlobAddress { container, name } = blob;
    let object = json!({ "container": container, "blob": name, "restored": true });
    let request = UndeleteBlobRequest { container, blob: name };
    context.session.blobs().undelete_blob(request).await?;
    context.output.either(&text, &object)
}
