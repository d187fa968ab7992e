//! `trestle queue` and `trestle message`: one file for each kind of command.

mod args;
mod drain;
mod load;
mod messages;
mod queues;
mod work;

pub use args::{
    DrainArgs, LoadArgs, MessageArgs, MessageCommand, PeekArgs, QueueCommand, QueueSettingsArgs,
    ReceiptArgs, ReceiveArgs, WorkArgs,
};
pub(crate) use queues::service_record;

use trestle_command::{
    client::Session,
    errors::CliError,
    flags::ClientArgs,
    output::{Context, Output},
};

use crate::service::{DataService, PolicyOwner, run_policy, run_properties};

/// Runs a command on queues.
pub(crate) async fn run(command: QueueCommand, client: &ClientArgs) -> Result<(), CliError> {
    let session = Session::on_queue(client, command.queue())?;
    let mut context = Context { session, output: Output::standard(&client.output) };
    dispatch(&mut context, command, client).await?;
    context.output.finish()
}

/// Runs a command on messages.
pub(crate) async fn run_message(
    command: MessageCommand,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let session = Session::on_queue(client, Some(command.queue()))?;
    let mut context = Context { session, output: Output::standard(&client.output) };
    message(&mut context, client, command).await?;
    context.output.finish()
}

async fn dispatch(
    context: &mut Context,
    command: QueueCommand,
    client: &ClientArgs,
) -> Result<(), CliError> {
    match command {
        QueueCommand::Create(args) => queues::create(context, args).await,
        QueueCommand::Update { settings, removed } => {
            queues::update(context, settings, removed).await
        }
        QueueCommand::List { prefix } => queues::list(context, prefix).await,
        QueueCommand::Get { queue } => queues::stats(context, Some(queue)).await,
        QueueCommand::Stats { queue } => queues::stats(context, queue).await,
        QueueCommand::Clear { queue, yes } => queues::clear(context, queue, yes).await,
        QueueCommand::Delete { queue, message_id, receipt, yes } => match message_id.zip(receipt) {
            Some((message_id, receipt)) => {
                let args = ReceiptArgs { queue, message_id, receipt };
                message(context, client, MessageCommand::Delete(args)).await
            }
            None => queues::delete(context, queue, yes).await,
        },
        QueueCommand::Redrive { queue, to } => messages::redrive(context, queue, to).await,
        QueueCommand::Policy(command) => run_policy(context, PolicyOwner::Queue, command).await,
        QueueCommand::Properties(command) => {
            run_properties(context, DataService::Queue, command).await
        }
        QueueCommand::Drain(args) => drain::run(context, args, client).await,
        QueueCommand::Load(args) => load::run(context, args, client).await,
        QueueCommand::Send(args) => message(context, client, MessageCommand::Send(args)).await,
        QueueCommand::Receive(args) => {
            message(context, client, MessageCommand::Receive(args)).await
        }
        QueueCommand::Peek(args) => message(context, client, MessageCommand::Peek(args)).await,
    }
}

async fn message(
    context: &mut Context,
    client: &ClientArgs,
    command: MessageCommand,
) -> Result<(), CliError> {
    match command {
        MessageCommand::Send(args) => messages::send(context, args).await,
        MessageCommand::Receive(args) => {
            let ReceiveArgs { queue, count, visibility_timeout, wait, delete } = args;
            let limit = count.limit;
            let options = messages::ReceiveOptions { queue, limit, visibility_timeout, wait };
            messages::receive(context, options, delete).await
        }
        MessageCommand::Peek(args) => messages::peek(context, args).await,
        MessageCommand::Delete(args) => messages::delete(context, args).await,
        MessageCommand::Extend { receipt, visibility_timeout, text } => {
            messages::extend(context, receipt, visibility_timeout, text).await
        }
        MessageCommand::Release(args) => messages::release_one(context, args).await,
        MessageCommand::Work(args) => Box::pin(work::run(context, args, client)).await,
    }
}
