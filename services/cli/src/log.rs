//! `trestle log`: one file for each kind of command.

use trestle_command::{
    client::Session,
    errors::CliError,
    flags::ClientArgs,
    output::{Context, Output},
};

mod any_value;
mod append;
mod args;
mod exact_json;
mod export;
mod input;
mod print;
mod read;
mod segments;
mod settings;
mod severity;
mod stats;
mod streams;
mod tail;
mod temporality;
pub(crate) mod verify;
mod when;

pub use args::{
    AppendLogArgs, CreateStreamArgs, ExportLogArgs, LogCommand, LogStatsArgs, ReadLogArgs,
    SegmentsArgs, TailLogArgs, UpdateStreamArgs,
};
pub use input::LineFormat;
#[cfg(feature = "testing")]
pub use input::records_of_line;

/// Runs a command.
pub(crate) async fn run(command: LogCommand, client: &ClientArgs) -> Result<(), CliError> {
    let session = Session::new(client)?;
    let mut context = Context { session, output: Output::standard(&client.output) };
    dispatch(&mut context, command, client).await?;
    context.output.finish()
}

async fn dispatch(
    context: &mut Context,
    command: LogCommand,
    client: &ClientArgs,
) -> Result<(), CliError> {
    match command {
        LogCommand::Create(args) => streams::create(context, args).await,
        LogCommand::List { prefix } => streams::list(context, prefix).await,
        LogCommand::Show { stream } => streams::show(context, stream).await,
        LogCommand::Update(args) => streams::update(context, args).await,
        LogCommand::Delete { stream, yes } => streams::delete(context, stream, yes).await,
        LogCommand::Append(args) => Box::pin(append::run(context, *args, client)).await,
        LogCommand::Read(args) => read::run(context, args).await,
        LogCommand::Export(args) => Box::pin(export::run(context, args, client)).await,
        LogCommand::Stats(args) => stats::run(context, *args).await,
        LogCommand::Tail(args) => tail::run(context, args).await,
        LogCommand::Segments(args) => segments::list(context, args).await,
        LogCommand::Undelete { stream } => segments::undelete(context, stream).await,
        LogCommand::Verify(args) => verify::run(context, args).await,
        LogCommand::DropSegment { stream, id, yes } => {
            verify::drop_segment(context, (stream, id), yes).await
        }
        LogCommand::Flush { stream } => streams::flush(context, stream).await,
    }
}
