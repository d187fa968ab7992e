//! `work`: runs a command for each message, one after the other, and deletes the message where the command succeeds.

use std::{pin::pin, process::ExitStatus, time::Duration};

use serde_json::json;
use trestle_command::{
    errors::{CliError, Halt},
    flags::ClientArgs,
    interrupt::Interrupts,
    output::{counted, report_line},
    retry::{Retries, Temporary as _},
};
use trestle_proto::queue::v1::{Delivery, Message};

use super::{
    Context, WorkArgs,
    messages::{ReceiveOptions, take},
};

mod held_message;
mod running_command;

use held_message::{HeldMessage, MessageEnd};
use running_command::RunningCommand;

/// How long one receive waits for a message. The server's limit.
const WAIT: Duration = Duration::from_secs(20);

/// Runs a command for each message.
pub(super) async fn run(
    context: &mut Context,
    args: WorkArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let options = ReceiveOptions {
        queue: args.queue.clone(),
        limit: 1,
        visibility_timeout: args.visibility_timeout,
        wait: (!args.until_empty).then_some(WAIT),
    };
    let mut worker = MessageWorker { args, options, deleted: 0, failed: 0, stopped: None };
    let mut interrupts = Interrupts::listen()?;
    let ended = worker.all(context, &mut interrupts).await;
    let (deleted, failed) = (worker.deleted, worker.failed);
    let handled = counted(deleted.saturating_add(failed), "message");
    let text = format!("ran the command for {handled}: {deleted} deleted, {failed} not");
    ended.map_err(|error| {
        error.halted(deleted + failed > 0, || Halt {
            endpoint: client.endpoint.clone(),
            progress: text.clone(),
            next: "repeat it: what was not deleted is received again".to_owned(),
        })
    })?;
    // Standard output is that of the commands.
    match context.output.is_json() {
        true => {
            let queue = &worker.args.queue;
            let object = json!({ "queue": queue, "deleted": deleted, "not_deleted": failed });
            report_line(&object.to_string());
        }
        false => context.output.note(&text),
    }
    match failed {
        0 => Ok(()),
        _ => Err(CliError::Rows(format!("{} not deleted", counted(failed, "message")))),
    }
}

/// A worker in progress.
struct MessageWorker {
    args: WorkArgs,
    options: ReceiveOptions,
    deleted: u64,
    /// Messages that were not deleted.
    failed: u64,
    /// The signal that came while a command was running.
    stopped: Option<CliError>,
}

impl MessageWorker {
    async fn all(
        &mut self,
        context: &mut Context,
        interrupts: &mut Interrupts,
    ) -> Result<(), CliError> {
        let mut retries = context.session.first_tries();
        loop {
            if let Some(signal) = self.stopped.take() {
                return Err(signal);
            }
            let handled = self.deleted.saturating_add(self.failed);
            if self.args.limit.is_some_and(|limit| handled >= limit) {
                return Ok(());
            }
            // A receive that is cancelled before its response leaves the message visible.
            let receiving = receive(context, &self.options, &mut retries);
            let delivery = interrupts.unless_pressed(receiving).await?;
            retries = Retries::default();
            match delivery {
                Some((delivery, message)) => {
                    self.handle(context, interrupts, &delivery, &message).await?;
                }
                None if self.args.until_empty => return Ok(()),
                None => {}
            }
        }
    }

    /// Runs the command for a message, and deletes it or makes it visible again.
    async fn handle(
        &mut self,
        context: &mut Context,
        interrupts: &mut Interrupts,
        delivery: &Delivery,
        message: &Message,
    ) -> Result<(), CliError> {
        let mut held = HeldMessage::new(&self.options, delivery);
        let command = match RunningCommand::start(&self.args, message) {
            Ok(command) => command,
            Err(error) => {
                // No other message would succeed.
                held.retry_after(context, Duration::ZERO).await;
                return Err(error);
            }
        };
        let (status, is_terminated) = self.ended(context, interrupts, command, &mut held).await?;
        let end = match status.success() {
            true => held.delete(context).await?,
            false => {
                let after =
                    if is_terminated { Some(Duration::ZERO) } else { self.args.retry_after };
                if let Some(after) = after {
                    held.retry_after(context, after).await;
                }
                MessageEnd::Kept(format!("the command failed: {status}"))
            }
        };
        match end {
            MessageEnd::Deleted => self.deleted += 1,
            MessageEnd::Kept(why) => {
                self.failed += 1;
                self.report(context, message, &why);
            }
        }
        Ok(())
    }

    /// Waits for the end of a command, which a second signal terminates; whether it did.
    async fn ended(
        &mut self,
        context: &Context,
        interrupts: &mut Interrupts,
        command: RunningCommand,
        held: &mut HeldMessage,
    ) -> Result<(ExitStatus, bool), CliError> {
        let group = command.group();
        let mut running = pin!(command.run(context, held));
        let mut is_terminated = false;
        loop {
            match interrupts.unless_pressed(&mut running).await {
                Err(signal) if signal.is_signal() => {
                    if self.stopped.is_some() {
                        running_command::terminate(group);
                        is_terminated = true;
                    } else if context.output.shows_notes() {
                        let text =
                            "ending after the running command; the next signal terminates it";
                        context.output.note(text);
                    }
                    self.stopped.get_or_insert(signal);
                }
                ended => return ended.map(|status| (status, is_terminated)),
            }
        }
    }

    fn report(&self, context: &Context, message: &Message, why: &str) {
        let (id, count) = (&message.message_id, message.dequeue_count);
        if context.output.is_json() {
            let object = json!({ "message_id": id, "dequeue_count": count, "error": why });
            report_line(&object.to_string());
        } else {
            report_line(&format!("{why}: message_id=`{id}`, dequeue_count=`{count}`"));
        }
    }
}

/// The next message, if there is one.
async fn receive(
    context: &mut Context,
    options: &ReceiveOptions,
    retries: &mut Retries,
) -> Result<Option<(Delivery, Message)>, CliError> {
    loop {
        match take(context, options).await {
            Ok(deliveries) => {
                let Some(delivery) = deliveries.into_iter().next() else { return Ok(None) };
                let message = delivery.message.clone();
                let message = message
                    .ok_or_else(|| CliError::Protocol("delivery without a message".to_owned()))?;
                return Ok(Some((delivery, message)));
            }
            Err(error) if error.is_temporary() => retries.wait(error).await?,
            Err(error) => return Err(error),
        }
    }
}
