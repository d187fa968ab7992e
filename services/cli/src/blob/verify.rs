//! `verify`: has the server read every byte of every blob, and reports what it cannot read.

use serde_json::json;
use tonic::Streaming;
use trestle_command::{
    errors::CliError,
    output::{Context, bytes, counted},
    retry::Retries,
};
use trestle_proto::blob::v1::{VerifyBlobsRequest, VerifyBlobsResponse};

use super::BlobAddress;

/// Reads the blobs whose name begins with that of the address.
///
/// # Errors
/// [`CliError::Rejected`] where some cannot be read, which is reported on standard output.
pub(super) async fn run(
    context: &mut Context,
    blobs: BlobAddress,
    parallel: u8,
) -> Result<(), CliError> {
    let BlobAddress { container, name: prefix } = blobs;
    let max_parallel = Some(parallel.into());
    let mut request =
        VerifyBlobsRequest { container, prefix, max_parallel, ..VerifyBlobsRequest::default() };
    let progress = context.output.progress(None, 0);
    let (mut whole, mut read, mut damaged) = (0, 0, 0);
    let (mut responses, mut retries) = (None, context.session.first_tries());
    loop {
        let verified = match next(context, &request, &mut responses).await {
            Ok(Some(verified)) => verified,
            Ok(None) => break,
            Err(error) => {
                responses = None;
                retries.wait(error).await?;
                continue;
            }
        };
        retries = Retries::default();
        request.resume_token.clone_from(&verified.resume_token);
        read += verified.bytes;
        if verified.error.is_some() {
            damaged += 1;
            report(context, verified)?;
        } else {
            whole += 1;
        }
        progress.set_message(format!("{}, {}", counted(whole + damaged, "blob"), bytes(read)));
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

/// The next response, of a call that continues behind the last one.
async fn next(
    context: &Context,
    request: &VerifyBlobsRequest,
    responses: &mut Option<Streaming<VerifyBlobsResponse>>,
) -> Result<Option<VerifyBlobsResponse>, CliError> {
    let stream = match responses {
        Some(stream) => stream,
        None => {
            let called = context.session.blobs().verify_blobs(request.clone()).await?;
            responses.insert(called.into_inner())
        }
    };
    Ok(stream.message().await?)
}

/// Prints the blob, or the state of it, that cannot be read.
fn report(context: &mut Context, verified: VerifyBlobsResponse) -> Result<(), CliError> {
    let VerifyBlobsResponse { blob, staged_blocks, error, .. } = verified;
    let (blob, error) = (blob.unwrap_or_default(), error.unwrap_or_default().message);
    let is_deleted = blob.delete_time.is_some();
    let mut state = String::new();
    for (name, value) in [("snapshot", &blob.snapshot), ("version", &blob.version_id)] {
        if !value.is_empty() {
            state.push_str(&format!(", {name}=`{value}`"));
        }
    }
    if is_deleted {
        state.push_str(", deleted");
    }
    if staged_blocks {
        state.push_str(", staged blocks");
    }
    let name = blob.name;
    let text = format!("damaged: blob=`{name}`{state}, error=`{error}`");
    let mut object = json!({ "damaged": name, "error": error });
    if let Some(fields) = object.as_object_mut() {
        for (name, value) in [("snapshot", blob.snapshot), ("version_id", blob.version_id)] {
            if !value.is_empty() {
                fields.insert(name.to_owned(), value.into());
            }
        }
        for (name, is_set) in [("deleted", is_deleted), ("staged_blocks", staged_blocks)] {
            if is_set {
                fields.insert(name.to_owned(), true.into());
            }
        }
    }
    context.output.either(&text, &object)?;
    context.output.flush()
}
