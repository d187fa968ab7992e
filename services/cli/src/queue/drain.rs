//! `drain`: moves every visible message into a file, without loss.

use std::{
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use indicatif::ProgressBar;
use serde_json::json;
use tonic::Status;
use trestle_command::{
    errors::{CliError, Halt},
    files::{self, OutputTarget},
    flags::ClientArgs,
    interrupt::Interrupts,
    output::{counted, report_line, standard_output},
};
use trestle_proto::queue::v1::{Delivery, GetQueueRequest};

use super::{
    Context, DrainArgs,
    messages::{ReceiveOptions, delete_all, release, take, to_json},
};
use crate::datetime;

/// Most messages of one receive. The server's limit.
const RECEIVE_MAX: u32 = 32;
/// Visibility timeout while messages are written.
const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a reader of a pipe may take after a signal to read what is being written.
const PIPE_WITHIN: Duration = Duration::from_millis(500);
/// How long each call may take after a signal: orchestrators kill a process that does not end.
const CALL_WITHIN: Duration = Duration::from_secs(5);

/// Drains a queue.
pub(super) async fn run(
    context: &mut Context,
    args: DrainArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let sink = Sink::open(&args.to)?;
    let options = ReceiveOptions {
        queue: args.queue,
        limit: RECEIVE_MAX,
        visibility_timeout: VISIBILITY_TIMEOUT,
        wait: None,
    };
    let progress = context.output.progress(None, 0);
    let mut drain =
        QueueDrain { options, sink, progress, drained: 0, held: HeldMessages::None, stopped: None };
    let mut interrupts = Interrupts::listen()?;
    let outcome = match drain.all(context, &mut interrupts).await {
        Ok(()) => {
            let left = left(context, &drain.options.queue);
            interrupts.unless_pressed(async { Ok(left.await) }).await
        }
        Err(error) => Err(error),
    };
    drain.progress.finish_and_clear();
    let drained = counted(drain.drained, "message");
    let left = outcome.map_err(|error| {
        let is_holding = !matches!(drain.held, HeldMessages::None);
        error.halted(drain.drained > 0 || is_holding, || Halt {
            endpoint: client.endpoint.clone(),
            progress: format!("{drained} drained"),
            next: drain.held.advice(),
        })
    })?;
    let name = &drain.sink.name;
    let mut text = format!("drained {drained} to {name}");
    if let Some(left) = left.filter(|left| *left > 0) {
        let left = counted(left, "message");
        // The queue is not empty, though the drain is complete.
        let _ = write!(text, "; {left} invisible or new in the queue");
    }
    let (queue, drained) = (&drain.options.queue, drain.drained);
    let object = json!({ "queue": queue, "drained": drained, "file": name, "left": left });
    match (&drain.sink.file, context.output.is_json()) {
        (None, true) => report_line(&object.to_string()),
        (None, false) => context.output.note(&text),
        _ => context.output.either(&text, &object)?,
    }
    Ok(())
}

/// The number of messages in the queue; none without the permission to read it.
async fn left(context: &mut Context, queue: &str) -> Option<u64> {
    let request = GetQueueRequest { queue: queue.to_owned() };
    let answer = context.session.queues().get_queue(request).await.ok()?;
    Some(answer.into_inner().stats?.approximate_message_count)
}

/// Messages that were received and are neither deleted nor released.
enum HeldMessages {
    None,
    /// Those of a receive without an answer.
    Unknown,
    /// So many, and when they become visible again.
    Until(u64, String),
}

impl HeldMessages {
    /// The first `count` of these, as they were received together.
    fn of(deliveries: &[Delivery], count: usize) -> Self {
        let visible = deliveries.iter().filter_map(|delivery| delivery.next_visible_time.as_ref());
        let last = visible.max_by_key(|time| (time.seconds, time.nanos));
        match (u64::try_from(count), last.and_then(datetime::format)) {
            (Ok(0), _) => Self::None,
            (Ok(count), Some(time)) => Self::Until(count, time),
            _ => Self::Unknown,
        }
    }

    /// When to drain again.
    fn advice(&self) -> String {
        match self {
            Self::None => "repeat it: what was not written can be received again".to_owned(),
            Self::Unknown => "repeat it later: some may be invisible for 5 minutes".to_owned(),
            Self::Until(count, time) => {
                format!("repeat it later: {} invisible until {time}", counted(*count, "message"))
            }
        }
    }
}

/// A drain in progress.
struct QueueDrain {
    options: ReceiveOptions,
    sink: Sink,
    progress: ProgressBar,
    drained: u64,
    held: HeldMessages,
    /// The signal that came while messages were written.
    stopped: Option<CliError>,
}

impl QueueDrain {
    async fn all(
        &mut self,
        context: &mut Context,
        interrupts: &mut Interrupts,
    ) -> Result<(), CliError> {
        loop {
            interrupts.none_yet().await?;
            let deliveries = self.receive(context, interrupts).await?;
            if deliveries.is_empty() {
                return Ok(());
            }
            self.held = HeldMessages::of(&deliveries, deliveries.len());
            if let Err(error) = self.write(&deliveries, interrupts).await {
                self.release(context, &deliveries).await;
                return Err(error);
            }
            let deleting = delete_all(context, &self.options.queue, &deliveries);
            let stopped = self.stopped.take();
            match &stopped {
                None => deleting.await?,
                Some(_) => within(deleting).await?,
            }
            self.held = HeldMessages::None;
            self.drained = self.drained.saturating_add(deliveries.len().try_into().unwrap_or(0));
            if let Some(signal) = stopped {
                return Err(signal);
            }
            self.progress.set_message(format!("{} drained", counted(self.drained, "message")));
        }
    }

    /// Receives messages; those that arrive after a signal are released.
    async fn receive(
        &mut self,
        context: &mut Context,
        interrupts: &mut Interrupts,
    ) -> Result<Vec<Delivery>, CliError> {
        let (received, signal) = {
            let mut receiving = pin!(take(context, &self.options));
            match interrupts.unless_pressed(&mut receiving).await {
                // Not cancelled: the receipts of its messages would be lost.
                Err(signal) if signal.is_signal() => (within(receiving).await, Some(signal)),
                received => (received, None),
            }
        };
        let error = match (received, signal) {
            (Ok(deliveries), None) => return Ok(deliveries),
            (Ok(deliveries), Some(signal)) => {
                self.release(context, &deliveries).await;
                return Err(signal);
            }
            (Err(error), signal) => {
                // The response may have arrived all the same.
                if error.is_unavailable() {
                    self.held = HeldMessages::Unknown;
                }
                signal.unwrap_or(error)
            }
        };
        self.sink.withdraw(self.drained)?;
        Err(error)
    }

    async fn write(
        &mut self,
        deliveries: &[Delivery],
        interrupts: &mut Interrupts,
    ) -> Result<(), CliError> {
        let mut writing = pin!(self.sink.write(deliveries));
        match interrupts.unless_pressed(&mut writing).await {
            // Lines that are being written would be in the file and in the queue: they are completed. Only a pipe may
            // have no reader.
            Err(signal) if signal.is_signal() && self.sink.is_file => {
                self.stopped = Some(signal);
                writing.await
            }
            Err(signal) if signal.is_signal() => {
                match tokio::time::timeout(PIPE_WITHIN, writing).await {
                    Ok(written) => {
                        self.stopped = Some(signal);
                        written
                    }
                    Err(_) => Err(signal),
                }
            }
            written => written,
        }
    }

    /// Makes messages visible again that were not written.
    async fn release(&mut self, context: &mut Context, deliveries: &[Delivery]) {
        let remaining = release(context, &self.options.queue, deliveries, CALL_WITHIN).await;
        self.held = HeldMessages::of(deliveries, remaining);
    }
}

/// The result of a call after a signal.
async fn within<T>(call: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let called = tokio::time::timeout(CALL_WITHIN, call).await;
    called.unwrap_or_else(|_| Err(Status::unavailable("no answer after the signal").into()))
}

/// The destination of messages.
struct Sink {
    /// None for standard output.
    file: Option<Arc<File>>,
    /// Whether it is on stable storage: not a pipe or a device.
    is_stored: bool,
    /// Whether it is a file, also as standard output: a write to it ends.
    is_file: bool,
    /// Its path, if the file did not exist before.
    made: Option<PathBuf>,
    name: String,
}

impl Sink {
    fn open(path: &Path) -> Result<Self, CliError> {
        let name = path.display().to_string();
        let (path, is_stored) = match files::target_in_folder(path)? {
            OutputTarget::Standard => {
                let name = "standard output".to_owned();
                let is_file = fs::metadata("/dev/stdout").is_ok_and(|found| found.is_file());
                return Ok(Self { file: None, is_stored: false, is_file, made: None, name });
            }
            OutputTarget::Stream => (path.to_owned(), false),
            OutputTarget::File(path) => (path, true),
        };
        let existed = path.exists();
        let file = OpenOptions::new().create(is_stored).append(true).open(&path);
        let file = file.map_err(CliError::input(format!("cannot write `{name}`")))?;
        let made = (!existed).then_some(path);
        Ok(Self { file: Some(Arc::new(file)), is_stored, is_file: is_stored, made, name })
    }

    /// Writes messages to stable storage, if the destination has it, before they are deleted: a crash duplicates
    /// lines and loses none.
    async fn write(&self, deliveries: &[Delivery]) -> Result<(), CliError> {
        let mut lines = String::new();
        for message in deliveries.iter().filter_map(|delivery| delivery.message.as_ref()) {
            let _ = writeln!(lines, "{}", to_json(message));
        }
        let (file, is_stored) = (self.file.clone(), self.is_stored);
        // On another thread: a pipe without a reader blocks, and a signal is received meanwhile.
        let written = tokio::task::spawn_blocking(move || {
            let Some(file) = file else {
                let mut out = standard_output();
                return out.write_all(lines.as_bytes()).and_then(|()| out.flush());
            };
            (&*file).write_all(lines.as_bytes())?;
            if is_stored { file.sync_data() } else { Ok(()) }
        });
        written
            .await
            .map_err(|error| CliError::Protocol(format!("writer failed: {error}")))?
            // Messages have been deleted.
            .map_err(files::unread)
            .map_err(CliError::file(format!("cannot write `{}`", self.name)))
    }

    /// Removes the file of a drain that received nothing, unless it existed before.
    fn withdraw(&self, drained: u64) -> Result<(), CliError> {
        self.made.as_ref().filter(|_| drained == 0).map_or(Ok(()), |path| files::remove(path))
    }
}
