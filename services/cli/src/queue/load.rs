//! `load`: every line of a file as a message.
//!
//! Notes beside the file say up to where every message is sent and which batch is under way, so that a load that was
//! killed can go on. A batch is sent under a request id that follows from the load, the place where the batch begins
//! and its messages: the one that was under way is sent again as the same request, which the server recognises, so no
//! message is sent twice. Where its lines have changed it is another request, so none is lost.

mod lines;
mod notes;

use indicatif::ProgressBar;
use serde_json::json;
use tonic::Code;
use trestle_proto::queue::v1::{GetQueueRequest, OutgoingMessage};

use self::{
    lines::{Lines, Message},
    notes::{Job, Notes, Place},
};
use super::{
    Context, LoadArgs,
    messages::{BATCH_MAX, send_batch},
};
use crate::{
    args::ClientArgs,
    client::{Random, Retries},
    datetime,
    errors::CliError,
    interrupt::Interrupts,
    output::{counted, thousands},
};

/// Most bytes of the messages of one call, under the server's limit.
const BATCH_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Loads a file.
pub(super) async fn run(
    context: &mut Context,
    args: LoadArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let is_pipe = lines::is_pipe(&args.file);
    if is_pipe && args.resume {
        return Err(CliError::Usage("--resume needs a file, not a pipe".to_owned()));
    }
    let job = job(context, &args, client).await?;
    let notes = Notes::begin(job, (!is_pipe).then_some(args.file.as_path()), args.resume)?;
    let started_at = notes.done;
    let (mut lines, bytes) = Lines::open(&args.file, args.text, started_at)?;
    let progress = context.output.progress(bytes);
    let mut load = Load { context, notes, progress };
    let outcome = if is_pipe {
        // Ctrl-C ends the process as ever: a pipe that says nothing blocks.
        load.send_all(&mut lines).await
    } else {
        Interrupts::listen()?.unless_pressed(load.send_all(&mut lines)).await
    };
    load.progress.finish_and_clear();
    let Load { context, mut notes, .. } = load;
    let loaded = notes.done.messages - started_at.messages;
    if let Err(error) = outcome {
        return Err(notes.stopped(error));
    }
    notes.close()?;
    let mut text = format!("loaded {} into {}", counted(loaded, "message"), args.queue);
    if started_at.line > 0 {
        text.push_str(&format!(", resumed after line {}", thousands(started_at.line)));
    }
    let object =
        json!({ "queue": args.queue, "loaded": loaded, "resumed_at_line": started_at.line });
    context.output.either(&text, &object)
}

/// What is loaded, and where to; fails early when the queue does not exist.
async fn job(context: &mut Context, args: &LoadArgs, client: &ClientArgs) -> Result<Job, CliError> {
    let request = context.session.request(GetQueueRequest { queue: args.queue.clone() });
    let queue_created = match context.queues.get_queue(request).await {
        Ok(found) => {
            let queue = found.into_inner().queue;
            queue.and_then(|queue| queue.create_time).as_ref().and_then(datetime::format)
        }
        // Who may send need not be allowed to look.
        Err(status) if status.code() == Code::PermissionDenied => None,
        Err(status) => return Err(status.into()),
    };
    let (endpoint, queue) = (client.endpoint.clone(), args.queue.clone());
    Ok(Job { endpoint, queue, queue_created, text: args.text })
}

/// A load under way.
struct Load<'a> {
    context: &'a mut Context,
    notes: Notes,
    progress: ProgressBar,
}

impl Load<'_> {
    /// Sends what the lines say, in batches.
    async fn send_all(&mut self, lines: &mut Lines) -> Result<(), CliError> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        loop {
            let before = lines.place();
            let message = match lines.next() {
                Ok(message) => message,
                Err(error) => {
                    // What stands before the line that is wrong is sent, so that the line can be mended.
                    self.send(&mut batch, before).await?;
                    return Err(error);
                }
            };
            let Some(Message { body, body_bytes }) = message else {
                return self.send(&mut batch, before).await;
            };
            let ended_here = self.notes.batch_end().is_some_and(|end| end.line <= before.line);
            if batch.len() == BATCH_MAX || bytes + body_bytes > BATCH_BYTES_MAX || ended_here {
                self.send(&mut batch, before).await?;
                bytes = 0;
            }
            bytes += body_bytes;
            batch.push(OutgoingMessage { body: Some(body), ..Default::default() });
        }
    }

    /// Sends a batch that ends before `end`, again if that may help, and notes that it is sent.
    async fn send(&mut self, batch: &mut Vec<OutgoingMessage>, end: Place) -> Result<(), CliError> {
        if batch.is_empty() {
            return Ok(());
        }
        let request_id = self.notes.begin_batch(end, batch)?;
        let mut retries = Retries::new(Random::from_system());
        let queue = self.notes.job.queue.clone();
        loop {
            match send_batch(self.context, &queue, batch.clone(), &request_id).await {
                Ok(_) => break,
                Err(CliError::Call(status)) => match retries.next(&status) {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => return Err(CliError::Call(status)),
                },
                Err(error) => return Err(error),
            }
        }
        batch.clear();
        self.notes.sent(end);
        self.progress.set_position(end.byte);
        self.progress.set_message(counted(end.messages, "message"));
        Ok(())
    }
}
