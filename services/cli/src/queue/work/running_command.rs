//! The process of a command that runs for a message.

use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
};
use trestle_command::{errors::CliError, output::escaped};
use trestle_proto::queue::v1::{Message, message::Body};

use super::{super::Context, WorkArgs, held_message::HeldMessage};

/// A running command.
pub(super) struct RunningCommand {
    child: Child,
}

impl RunningCommand {
    /// Starts the command, with the body of the message as its standard input.
    ///
    /// The process is the first of a group of its own: Ctrl-C on a terminal is sent to the group of the worker, and the
    /// command is to be completed.
    pub(super) fn start(args: &WorkArgs, message: &Message) -> Result<Self, CliError> {
        let (program, rest) = args
            .command
            .split_first()
            .ok_or_else(|| CliError::Usage("the command is required, after `--`".to_owned()))?;
        let mut command = Command::new(program);
        command.args(rest).stdin(Stdio::piped()).process_group(0);
        command.env("TRESTLE_QUEUE", &args.queue);
        command.env("TRESTLE_MESSAGE_ID", &message.message_id);
        command.env("TRESTLE_DEQUEUE_COUNT", message.dequeue_count.to_string());
        let name = escaped(&program.to_string_lossy());
        let failed = CliError::input(format!("cannot run `{name}`"));
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut input) = child.stdin.take() {
            let body = body(message);
            // A command need not read its input, so that the pipe may break, or stay full until it ends.
            tokio::spawn(async move { input.write_all(&body).await });
        }
        Ok(Self { child })
    }

    /// The group of the process; none once it has ended.
    pub(super) fn group(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()?).ok()?)
    }

    /// Waits for the end of the command, and holds the message until then.
    pub(super) async fn run(
        mut self,
        context: &Context,
        held: &mut HeldMessage,
    ) -> Result<ExitStatus, CliError> {
        loop {
            tokio::select! {
                biased;
                ended = self.child.wait() => {
                    return ended.map_err(CliError::file("cannot wait for the command"));
                }
                () = held.until_due() => {}
            }
            // Never cancelled: the response has the receipt that deletes the message.
            held.extend(context).await;
        }
    }
}

/// Terminates a command with what it started. Not by SIGINT, which a shell defers and a background process ignores.
pub(super) fn terminate(group: Option<Pid>) {
    // A group that has ended needs no signal.
    let _ = group.map(|group| kill_process_group(group, Signal::TERM));
}

fn body(message: &Message) -> Vec<u8> {
    match &message.body {
        Some(Body::Text(text)) => text.clone().into_bytes(),
        Some(Body::Data(data)) => data.to_vec(),
        None => Vec::new(),
    }
}
