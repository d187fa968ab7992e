//! `load`: every line of a file as a message.
//!
//! A checkpoint records up to where every message is sent and which batch is pending, so that a load that was killed
//! can be resumed. A batch is sent under a request id that is derived from the load, the position where the batch
//! begins and its messages: the pending one is sent again as the same request, which the server deduplicates, so no
//! message is sent twice. Where its lines have changed it is another request, so none is lost.

mod batches;
mod lines;

use indicatif::ProgressBar;
use serde_json::{Value, json};
use tonic::Code;
use trestle_command::{
    checkpoint::Checkpoint,
    errors::CliError,
    files::{self, InputFile},
    flags::ClientArgs,
    interrupt::Interrupts,
    lines::{FilePosition, Lines},
    output::{counted, thousands},
    retry::repeated,
};
use trestle_proto::queue::v1::{GetQueueRequest, OutgoingMessage};

use self::{
    batches::Batches,
    lines::{LINE_BYTES_MAX, MessageLines},
};
use super::{
    Context, LoadArgs,
    messages::{BATCH_MAX, send_batch},
};
use crate::datetime;

/// Most bytes of the messages of one call, under the server's limit.
const BATCH_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Loads a file.
pub(super) async fn run(
    context: &mut Context,
    args: LoadArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let input = InputFile::find(&args.file, args.resume)?;
    let mut checkpoint = Checkpoint::new(job(context, &args, client).await?, Batches::new());
    if let Some(file) = input.file() {
        checkpoint.keep(files::with_suffix(file, ".trestle-load"), Some(file))?;
    }
    checkpoint.load(args.resume)?;
    batches::warn_of_repeats(&checkpoint);
    let start = checkpoint.state.sent;
    let opened = input.open(start.byte);
    let opened = opened.map_err(CliError::input(files::cannot("read", &args.file)))?;
    let lines = Lines::new(opened, start, LINE_BYTES_MAX);
    let mut lines = MessageLines { lines, name: input.name(), is_text: args.text };
    let progress = context.output.progress(input.bytes, start.byte);
    let mut load = QueueLoad { context, checkpoint, progress, queue: &args.queue };
    let outcome = if input.bytes.is_none() {
        // Ctrl-C ends the process as usual: reading a pipe without data blocks.
        load.send_all(&mut lines).await
    } else {
        Interrupts::listen()?.unless_pressed(load.send_all(&mut lines)).await
    };
    load.progress.finish_and_clear();
    let QueueLoad { context, mut checkpoint, .. } = load;
    if let Err(error) = outcome {
        return Err(batches::stopped(&mut checkpoint, error, &client.endpoint));
    }
    checkpoint.remove()?;
    let loaded = checkpoint.state.sent.row - start.row;
    let mut text = format!("loaded {} into {}", counted(loaded, "message"), args.queue);
    if start.line > 0 {
        text.push_str(&format!(", resumed after line {}", thousands(start.line)));
    }
    let object = json!({ "queue": args.queue, "loaded": loaded, "resumed_at_line": start.line });
    context.output.either(&text, &object)
}

/// The source and the target of a load; fails early if the queue does not exist.
async fn job(
    context: &mut Context,
    args: &LoadArgs,
    client: &ClientArgs,
) -> Result<Value, CliError> {
    let request = GetQueueRequest { queue: args.queue.clone() };
    let queue_created = match context.session.queues().get_queue(request).await {
        Ok(found) => {
            let queue = found.into_inner().queue;
            queue.and_then(|queue| queue.create_time).as_ref().and_then(datetime::format)
        }
        // The caller may have permission to send but not to read.
        Err(status) if status.code() == Code::PermissionDenied => None,
        Err(status) => return Err(status.into()),
    };
    // A queue that was created again is another queue.
    Ok(json!({
        "endpoint": client.endpoint, "queue": args.queue, "queue_created": queue_created,
        "--text": args.text,
    }))
}

/// A load in progress.
struct QueueLoad<'a> {
    context: &'a mut Context,
    checkpoint: Checkpoint<Batches>,
    progress: ProgressBar,
    queue: &'a str,
}

impl QueueLoad<'_> {
    /// Sends the messages of the lines, in batches.
    async fn send_all(&mut self, lines: &mut MessageLines) -> Result<(), CliError> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        loop {
            let before = lines.lines.at;
            let message = match lines.next() {
                Ok(message) => message,
                Err(error) => {
                    // The lines before the invalid one are sent, so that a resumed load can
                    // continue once it is fixed.
                    self.send(&mut batch, before).await?;
                    return Err(error);
                }
            };
            let Some((body, body_bytes)) = message else {
                return self.send(&mut batch, before).await;
            };
            let pending = self.checkpoint.state.pending_end();
            let ended_here = pending.is_some_and(|end| end.line <= before.line);
            if batch.len() == BATCH_MAX || bytes + body_bytes > BATCH_BYTES_MAX || ended_here {
                self.send(&mut batch, before).await?;
                bytes = 0;
            }
            bytes += body_bytes;
            batch.push(OutgoingMessage { body: Some(body), ..Default::default() });
        }
    }

    /// Sends a batch that ends before `end`, and records that it is sent.
    async fn send(
        &mut self,
        batch: &mut Vec<OutgoingMessage>,
        end: FilePosition,
    ) -> Result<(), CliError> {
        if batch.is_empty() {
            return Ok(());
        }
        let request_id = batches::begin(&mut self.checkpoint, end, batch)?;
        let (context, queue) = (&mut *self.context, self.queue);
        repeated(async || send_batch(context, queue, batch.clone(), &request_id).await).await?;
        batch.clear();
        self.checkpoint.state.sent = end;
        self.progress.set_position(end.byte);
        self.progress.set_message(counted(end.row, "message"));
        Ok(())
    }
}
