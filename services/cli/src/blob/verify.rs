//! `verify`: has the server read every byte of every blob, and reports what it cannot read.

use serde_json::json;
use tonic::Streaming;
use trestle_command::{
    client::Session,
    errors::CliError,
    output::{Context, Output, bytes, counted},
    retry::Retries,
};
use trestle_proto::blob::v1::{VerifyBlobsRequest, VerifyBlobsResponse};

use super::BlobAddress;
use crate::verify::{DamagedItem, VerifiedItems};

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
    let Context { session, output } = context;
    let mut verified = VerifiedItems::new(output.progress(None, 0));
    let found = &mut |damaged| report(output, damaged);
    read(session, (container, prefix), parallel, &mut verified, found).await?;
    let (items, read, damaged) = (verified.items, verified.bytes, verified.damaged);
    drop(verified);
    let text = format!("verified {} ({}), {damaged} damaged", counted(items, "blob"), bytes(read));
    let object = json!({ "verified": items, "damaged": damaged, "bytes": read });
    context.output.either(&text, &object)?;
    context.output.flush()?;
    if damaged > 0 { Err(CliError::Rejected) } else { Ok(()) }
}

/// Has the server read the blobs of a container whose name begins with a prefix. `found` is called with each that it
/// cannot read, and the rest is read.
///
/// # Errors
/// An error that retries did not end, and those of `found`.
pub(crate) async fn read(
    session: &Session,
    (container, prefix): (String, String),
    parallel: u8,
    verified: &mut VerifiedItems,
    found: &mut impl FnMut(VerifyBlobsResponse) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let max_parallel = Some(parallel.into());
    let mut request =
        VerifyBlobsRequest { container, prefix, max_parallel, ..VerifyBlobsRequest::default() };
    let (mut responses, mut retries) = (None, session.first_tries());
    loop {
        let response = match next(session, &request, &mut responses).await {
            Ok(Some(response)) => response,
            Ok(None) => return Ok(()),
            Err(error) => {
                responses = None;
                retries.wait(error).await?;
                continue;
            }
        };
        retries = Retries::default();
        request.resume_token.clone_from(&response.resume_token);
        verified.add(1, response.bytes, "blob");
        if response.error.is_some() {
            verified.damaged += 1;
            found(response)?;
        }
    }
}

/// What is damaged, for people.
pub(crate) fn damage(damaged: VerifyBlobsResponse) -> DamagedItem {
    let state = state_of(&damaged);
    let VerifyBlobsResponse { blob, error, .. } = damaged;
    let item = format!("{}{state}", blob.unwrap_or_default().name);
    DamagedItem { item, error: error.unwrap_or_default().message }
}

/// Which state of a blob it is, for people.
fn state_of(VerifyBlobsResponse { blob, staged_blocks, .. }: &VerifyBlobsResponse) -> String {
    let mut state = String::new();
    if let Some(blob) = blob {
        for (name, value) in [("snapshot", &blob.snapshot), ("version", &blob.version_id)] {
            if !value.is_empty() {
                state.push_str(&format!(", {name}=`{value}`"));
            }
        }
        if blob.delete_time.is_some() {
            state.push_str(", deleted");
        }
    }
    if *staged_blocks {
        state.push_str(", staged blocks");
    }
    state
}

/// The next response, of a call that continues behind the last one.
async fn next(
    session: &Session,
    request: &VerifyBlobsRequest,
    responses: &mut Option<Streaming<VerifyBlobsResponse>>,
) -> Result<Option<VerifyBlobsResponse>, CliError> {
    let stream = match responses {
        Some(stream) => stream,
        None => {
            let called = session.blobs().verify_blobs(request.clone()).await?;
            responses.insert(called.into_inner())
        }
    };
    Ok(stream.message().await?)
}

/// Prints the blob, or the state of it, that cannot be read.
fn report(output: &mut Output, verified: VerifyBlobsResponse) -> Result<(), CliError> {
    let state = state_of(&verified);
    let VerifyBlobsResponse { blob, staged_blocks, error, .. } = verified;
    let (blob, error) = (blob.unwrap_or_default(), error.unwrap_or_default().message);
    let is_deleted = blob.delete_time.is_some();
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
    output.either(&text, &object)?;
    output.flush()
}
