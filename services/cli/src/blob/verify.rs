//! `verify`: reads every byte of every blob, and reports the damaged ones.

use futures::TryStreamExt as _;
use serde_json::json;
use tonic::Code;
use trestle_command::{
    client::Session,
    errors::CliError,
    output::{Context, bytes, counted},
};

use super::{BlobAddress, content::BlobContent, listing::BlobListing};

/// A blob that was read.
enum VerifiedBlob {
    /// Every byte is as it was stored.
    Whole { bytes: u64 },
    /// It was deleted since it was listed.
    Deleted,
    /// Some bytes are not.
    Damaged { name: String, error: String },
}

/// Reads the blobs whose name begins with that of the address.
///
/// # Errors
/// [`CliError::Rejected`] where some are damaged, which is reported on standard output.
pub(super) async fn run(
    context: &mut Context,
    blobs: BlobAddress,
    parallel: u8,
) -> Result<(), CliError> {
    let session = context.session.clone();
    let progress = context.output.progress(None, 0);
    let listing = BlobListing::new(&session, blobs.clone(), String::new()).blobs();
    let reads = listing.map_ok(|blob| verify(&session, blobs.with_name(blob.name)));
    let mut reads = std::pin::pin!(reads.try_buffer_unordered(parallel.into()));
    let (mut whole, mut read, mut damaged) = (0, 0, 0);
    while let Some(verified) = reads.try_next().await? {
        match verified {
            VerifiedBlob::Whole { bytes } => (whole, read) = (whole + 1, read + bytes),
            VerifiedBlob::Deleted => {}
            VerifiedBlob::Damaged { name, error } => {
                damaged += 1;
                let text = format!("damaged: blob=`{name}`, error=`{error}`");
                context.output.either(&text, &json!({ "damaged": name, "error": error }))?;
                context.output.flush()?;
            }
        }
        progress.set_message(format!("{}, {}", counted(whole, "blob"), bytes(read)));
        progress.tick();
    }
    progress.finish_and_clear();
    let text = format!(
        "verified {} ({}), {damaged} damaged",
        counted(whole + damaged, "blob"),
        bytes(read)
    );
    let object = json!({ "verified": whole + damaged, "damaged": damaged, "bytes": read });
    context.output.either(&text, &object)?;
    context.output.flush()?;
    if damaged > 0 { Err(CliError::Rejected) } else { Ok(()) }
}

async fn verify(session: &Session, blob: BlobAddress) -> Result<VerifiedBlob, CliError> {
    let name = blob.name.clone();
    match length(BlobContent::new(session, blob)).await {
        Ok(bytes) => Ok(VerifiedBlob::Whole { bytes }),
        Err(CliError::Call(status)) if status.code() == Code::DataLoss => {
            let error = status.message().to_owned();
            Ok(VerifiedBlob::Damaged { name, error })
        }
        Err(CliError::Call(status)) if status.code() == Code::NotFound => Ok(VerifiedBlob::Deleted),
        Err(error) => Err(error),
    }
}

async fn length(mut content: BlobContent) -> Result<u64, CliError> {
    let mut bytes = 0;
    while let Some(data) = content.next().await? {
        bytes += data.len() as u64;
    }
    Ok(bytes)
}
