//! `trestle blob`: one file for each kind of command.

mod address;
mod args;
mod blobs;
mod containers;
mod content;
mod copy;
mod lease;
mod listing;
mod snapshots;
mod verify;

pub use address::{BlobAddress, CopySide};
pub use args::{BlobCommand, ContainerCommand, CopyBlobArgs, LeaseCommand};

use crate::{
    args::ClientArgs,
    client::Session,
    errors::CliError,
    output::{Context, Output},
};

/// Runs a command.
pub(crate) async fn run(command: BlobCommand, client: &ClientArgs) -> Result<(), CliError> {
    let session = Session::on_blob(client, command.path().as_deref()).await?;
    let mut context = Context { session, output: Output::standard(client.json) };
    dispatch(&mut context, command, client).await?;
    context.output.flush()
}

async fn dispatch(
    context: &mut Context,
    command: BlobCommand,
    client: &ClientArgs,
) -> Result<(), CliError> {
    match command {
        BlobCommand::Container(command) => containers::run(context, command).await,
        BlobCommand::Cp(args) => Box::pin(copy::run(context, args, client)).await,
        BlobCommand::Ls { blobs, delimiter } => blobs::list(context, blobs, delimiter).await,
        BlobCommand::Cat { blob, offset, length } => {
            blobs::cat(context, blob, offset, length).await
        }
        BlobCommand::Rm { blob, recursive: true, yes, .. } => {
            blobs::remove_below(context, blob, yes).await
        }
        BlobCommand::Rm { blob, lease_id, snapshots, .. } => {
            blobs::remove(context, blob, (lease_id, snapshots)).await
        }
        BlobCommand::Snapshot { blob } => snapshots::create(context, blob).await,
        BlobCommand::Undelete { blob } => snapshots::undelete(context, blob).await,
        BlobCommand::Stat { blob } => blobs::stat(context, blob).await,
        BlobCommand::Lease(command) => lease::run(context, command).await,
        BlobCommand::Verify { blobs, parallel } => verify::run(context, blobs, parallel).await,
    }
}
