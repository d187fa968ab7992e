//! `trestle blob`: one file for each kind of command.

use trestle_command::{
    client::Session,
    errors::CliError,
    flags::ClientArgs,
    output::{Context, Output},
};

mod address;
mod args;
mod blobs;
mod containers;
mod content;
mod copy;
mod lease;
mod listing;
mod protection;
mod snapshots;
mod tags;
pub(crate) mod verify;

pub use address::{BlobAddress, CopySide};
pub(crate) use args::TagsCommand;
pub use args::{BlobCommand, ContainerCommand, CopyBlobArgs, LeaseCommand};
use args::{BlobStateArgs, ListedStatesArgs};

/// Runs a command.
pub(crate) async fn run(command: BlobCommand, client: &ClientArgs) -> Result<(), CliError> {
    let session = Session::on_blob(client, command.path().as_deref())?;
    let mut context = Context { session, output: Output::standard(&client.output) };
    dispatch(&mut context, command, client).await?;
    context.output.finish()
}

async fn dispatch(
    context: &mut Context,
    command: BlobCommand,
    client: &ClientArgs,
) -> Result<(), CliError> {
    match command {
        BlobCommand::Container(command) => containers::run(context, command).await,
        BlobCommand::Cp(args) => Box::pin(copy::run(context, args, client)).await,
        BlobCommand::Ls { blobs, delimiter, states } => {
            blobs::list(context, (blobs, delimiter), states).await
        }
        BlobCommand::Cat { blob, offset, length, state } => {
            blobs::cat(context, (blob, state), offset, length).await
        }
        BlobCommand::Rm { blob, recursive: true, yes, .. } => {
            blobs::remove_below(context, blob, yes).await
        }
        BlobCommand::Rm { blob, lease_id, snapshots, state, .. } => {
            blobs::remove(context, (blob, state), (lease_id, snapshots)).await
        }
        BlobCommand::Snapshot { blob } => snapshots::create(context, blob).await,
        BlobCommand::Undelete { blob } => snapshots::undelete(context, blob).await,
        BlobCommand::Stat { blob, state } => blobs::stat(context, blob, state).await,
        BlobCommand::Protection { keep_deleted, keep_containers, versions } => {
            protection::run(context, (keep_deleted, keep_containers), versions).await
        }
        BlobCommand::Tags(command) => tags::run(context, command).await,
        BlobCommand::Find { filter, container } => tags::find(context, filter, container).await,
        BlobCommand::Lease(command) => lease::run(context, command).await,
        BlobCommand::Verify { blobs, parallel } => verify::run(context, blobs, parallel).await,
    }
}
