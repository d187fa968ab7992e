//! `trestle queue`: one file for each kind of command.

mod args;
mod drain;
mod load;
mod messages;
mod properties;
mod queues;

pub use args::{DrainArgs, LoadArgs, MessageArgs, PropertiesCommand, QueueCommand};
pub use messages::send_messages;

use std::time::Duration;

use crate::{
    args::ClientArgs,
    client::Session,
    errors::CliError,
    output::{Context, Output},
};

/// Runs a command.
pub(crate) async fn run(command: QueueCommand, client: &ClientArgs) -> Result<(), CliError> {
    let session = Session::on_queue(client, command.queue()).await?;
    let mut context = Context { session, output: Output::standard(client.json) };
    dispatch(&mut context, command, client).await?;
    context.output.flush()
}

async fn dispatch(
    context: &mut Context,
    command: QueueCommand,
    client: &ClientArgs,
) -> Result<(), CliError> {
    match command {
        QueueCommand::Create { queue, metadata, dead_letter, max_dequeue_count, window } => {
            let settings =
                queues::settings(queue, metadata, dead_letter.zip(max_dequeue_count), window)?;
            queues::create(context, settings).await
        }
        QueueCommand::List { prefix } => queues::list(context, prefix).await,
        QueueCommand::Stats { queue } => queues::stats(context, queue).await,
        QueueCommand::Clear { queue, yes } => queues::clear(context, queue, yes).await,
        QueueCommand::Delete { queue, message_id, receipt, yes } => match message_id.zip(receipt) {
            Some(message) => messages::delete(context, queue, message).await,
            None => queues::delete(context, queue, yes).await,
        },
        QueueCommand::Send(args) => messages::send(context, args).await,
        QueueCommand::Receive { queue, max, visibility_timeout, wait, delete } => {
            let options = messages::ReceiveOptions { queue, max, visibility_timeout, wait };
            messages::receive(context, options, delete).await
        }
        QueueCommand::Peek { queue, max } => messages::peek(context, queue, max).await,
        QueueCommand::Redrive { queue, to } => messages::redrive(context, queue, to).await,
        QueueCommand::Properties(PropertiesCommand::Get) => properties::get(context).await,
        QueueCommand::Properties(PropertiesCommand::Set { file }) => {
            properties::set(context, &file).await
        }
        QueueCommand::Drain(args) => drain::run(context, args, client).await,
        QueueCommand::Load(args) => load::run(context, args, client).await,
    }
}

/// A duration as a message; zero beyond 292 billion years.
#[must_use]
pub fn proto_duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(duration).unwrap_or_default()
}
