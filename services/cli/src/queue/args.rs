//! The command line of `trestle queue` and `trestle message`.

use std::{path::PathBuf, time::Duration};

use clap::{Arg, Args, Subcommand};
use trestle_command::{
    errors::{QUEUE_EXIT_CODES as EXIT_CODES, with_help},
    values::{DURATION_MAX, time_between, whole_number},
};

use crate::service::{PolicyCommand, PropertiesCommand};

/// Commands on queues.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum QueueCommand {
    /// Create a queue; an existing one with the same settings is unchanged
    Create(QueueSettingsArgs),
    /// List queues, ordered by name
    List {
        /// Only queues whose name begins so
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        prefix: String,
    },
    /// Show the settings and the statistics of a queue
    Get {
        /// Name of the queue
        queue: String,
    },
    /// Change the given settings of a queue
    Update {
        /// The new settings
        #[command(flatten)]
        settings: QueueSettingsArgs,
        /// The settings to remove
        #[command(flatten)]
        removed: RemovedSettingsArgs,
    },
    /// Delete a queue with its messages
    ///
    /// Takes `--yes`, or its name typed at the prompt on a terminal. Without a terminal and without `--yes` nothing is
    /// deleted and the exit code is 2.
    #[command(mut_args = hide_message)]
    Delete {
        /// Name of the queue
        queue: String,
        /// Id of a message, as before
        #[arg(requires = "receipt")]
        message_id: Option<String>,
        /// Its last receipt
        receipt: Option<String>,
        /// Delete the queue without confirmation
        #[arg(long, short = 'y')]
        yes: bool,
    },
    /// Delete every message of a queue; takes `--yes`, or its name typed at the prompt on a terminal
    Clear {
        /// Name of the queue
        queue: String,
        /// Delete them without confirmation
        #[arg(long, short = 'y')]
        yes: bool,
    },
    /// Show the statistics of a queue, or of the service
    Stats {
        /// Name of the queue
        queue: Option<String>,
    },
    /// Redrive messages of a dead-letter queue to their source queues
    Redrive {
        /// Name of the dead-letter queue
        queue: String,
        /// Redrive them to this queue instead
        #[arg(long, value_name = "QUEUE", default_value = "", hide_default_value = true)]
        to: String,
    },
    /// Show or change the stored access policies of a queue
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Show or change the settings of the service for the account: logging, metrics, cross-origin rules
    #[command(subcommand)]
    Properties(PropertiesCommand),
    /// Move every visible message into a file, one JSON object a line
    ///
    /// A message is deleted once its line is on stable storage, so up to 32 may be in the file twice after a crash, but
    /// none is lost. Lines are appended. Invisible messages remain in the queue, and their number is reported at the
    /// end; Ctrl-C completes the lines that are being written, and makes visible again what was received and not
    /// written.
    Drain(DrainArgs),
    /// Send every line of a file as a message
    ///
    /// Lines as `drain` writes them are sent as they were; with --text every line is the text of a message. A load that
    /// was interrupted continues with --resume, and sends nothing twice within eight minutes; later, up to a hundred
    /// messages. As many may be sent twice, never left out, where the lines of an unfinished batch have changed, which
    /// is reported. Progress is kept in FILE.trestle-load until the load is complete: while that exists, a load
    /// without --resume is rejected, and with it one of a file that changed before the position where it stopped.
    Load(LoadArgs),
    /// Earlier spelling of `trestle message send`
    #[command(hide = true)]
    Send(MessageArgs),
    /// Earlier spelling of `trestle message receive`
    #[command(hide = true)]
    Receive(ReceiveArgs),
    /// Earlier spelling of `trestle message peek`
    #[command(hide = true)]
    Peek(PeekArgs),
}

/// Hides the arguments for a message, which commands on queues took before.
fn hide_message(arg: Arg) -> Arg {
    let is_shown = matches!(arg.get_id().as_str(), "queue" | "yes");
    if is_shown { arg } else { arg.hide(true) }
}

/// Commands on messages.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum MessageCommand {
    /// Send messages
    Send(MessageArgs),
    /// Receive messages, which makes them invisible to others for the visibility timeout
    Receive(ReceiveArgs),
    /// Show messages without receiving them
    Peek(PeekArgs),
    /// Delete a received message
    Delete(ReceiptArgs),
    /// Keep a received message invisible for longer, or change its text; prints the new receipt
    Extend {
        /// The message
        #[command(flatten)]
        receipt: ReceiptArgs,
        /// How long it is invisible to others from now on, up to 7 days
        #[arg(long, value_parser = time_between("0s", "7d"), default_value = "30s", value_name = "TIME")]
        visibility_timeout: Duration,
        /// The new text
        #[arg(long)]
        text: Option<String>,
    },
    /// Make a received message visible again at once
    Release(ReceiptArgs),
}

/// How many messages a call returns at most.
#[derive(Debug, Args)]
pub(crate) struct MessageCountArgs {
    /// At most this many
    #[arg(
        long,
        short = 'n',
        visible_alias = "max",
        default_value_t = 1,
        value_name = "N",
        value_parser = whole_number::<u32>(1..=32)
    )]
    pub(crate) limit: u32,
}

/// Arguments of `receive`.
#[derive(Debug, Args)]
pub struct ReceiveArgs {
    /// Name of the queue
    pub(crate) queue: String,
    /// How many
    #[command(flatten)]
    pub(crate) count: MessageCountArgs,
    /// How long the messages are invisible to others, 1s to 7 days
    #[arg(long, value_parser = time_between("1s", "7d"), default_value = "30s", value_name = "TIME")]
    pub(crate) visibility_timeout: Duration,
    /// How long to wait for a message, up to 20s
    #[arg(long, value_parser = time_between("0s", "20s"), value_name = "TIME")]
    pub(crate) wait: Option<Duration>,
    /// Delete them at once
    #[arg(long)]
    pub(crate) delete: bool,
}

/// Arguments of `peek`.
#[derive(Debug, Args)]
pub struct PeekArgs {
    /// Name of the queue
    pub(crate) queue: String,
    /// How many
    #[command(flatten)]
    pub(crate) count: MessageCountArgs,
}

/// A received message.
#[derive(Debug, Args)]
pub struct ReceiptArgs {
    /// Name of the queue
    pub(crate) queue: String,
    /// Id of the message
    pub(crate) message_id: String,
    /// Its last receipt
    pub(crate) receipt: String,
}

/// The settings that `update` removes.
#[derive(Debug, Clone, Copy, Args)]
pub struct RemovedSettingsArgs {
    /// Remove all metadata
    #[arg(long, conflicts_with = "metadata")]
    pub(crate) no_metadata: bool,
    /// Stop dead-lettering
    #[arg(long, conflicts_with = "dead_letter")]
    pub(crate) no_dead_letter: bool,
    /// Stop deduplication: messages with a deduplication id are rejected from then on
    #[arg(long, conflicts_with = "window")]
    pub(crate) no_deduplication_window: bool,
}

/// The settings of a queue.
#[derive(Debug, Args)]
pub struct QueueSettingsArgs {
    /// Name: 3 to 63 lower-case letters, digits and single dashes
    pub(crate) queue: String,
    /// Metadata, such as --metadata owner=me
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) metadata: Vec<String>,
    /// Queue for messages that were received too often
    #[arg(long, value_name = "QUEUE", requires = "max_dequeue_count")]
    pub(crate) dead_letter: Option<String>,
    /// How often a message is delivered before it is dead-lettered, 1 to 1000
    #[arg(long, value_name = "N", requires = "dead_letter")]
    #[arg(value_parser = whole_number::<u32>(1..=1000))]
    pub(crate) max_dequeue_count: Option<u32>,
    /// How long deduplication ids are remembered, 1s to 7 days, such as 5m
    #[arg(long = "deduplication-window", value_parser = time_between("1s", "7d"), value_name = "TIME")]
    pub(crate) window: Option<Duration>,
}

impl QueueCommand {
    /// The queue of the command, if it has one.
    pub(crate) fn queue(&self) -> Option<&str> {
        match self {
            Self::List { .. } | Self::Properties(_) => None,
            Self::Stats { queue } => queue.as_deref(),
            Self::Policy(command) => Some(command.name()),
            Self::Send(MessageArgs { queue, .. })
            | Self::Drain(DrainArgs { queue, .. })
            | Self::Load(LoadArgs { queue, .. })
            | Self::Create(QueueSettingsArgs { queue, .. })
            | Self::Update { settings: QueueSettingsArgs { queue, .. }, .. }
            | Self::Get { queue }
            | Self::Receive(ReceiveArgs { queue, .. })
            | Self::Peek(PeekArgs { queue, .. })
            | Self::Delete { queue, .. }
            | Self::Clear { queue, .. }
            | Self::Redrive { queue, .. } => Some(queue),
        }
    }
}

impl MessageCommand {
    /// The queue of the command.
    pub(crate) fn queue(&self) -> &str {
        match self {
            Self::Send(MessageArgs { queue, .. })
            | Self::Receive(ReceiveArgs { queue, .. })
            | Self::Peek(PeekArgs { queue, .. })
            | Self::Delete(ReceiptArgs { queue, .. })
            | Self::Release(ReceiptArgs { queue, .. })
            | Self::Extend { receipt: ReceiptArgs { queue, .. }, .. } => queue,
        }
    }
}

/// Arguments of `send`.
#[derive(Debug, Args)]
pub struct MessageArgs {
    /// Name of the queue
    pub(crate) queue: String,
    /// Texts, a message each; `-` reads one from standard input
    #[arg(required = true)]
    pub(crate) texts: Vec<String>,
    /// How long the messages are invisible at first, up to 7 days
    #[arg(
        long = "visibility-timeout",
        alias = "delay",
        value_parser = time_between("0s", "7d"),
        value_name = "TIME"
    )]
    pub(crate) delay: Option<Duration>,
    /// Time to live, 1s or more [default: 7 days]
    #[arg(long, value_name = "TIME", conflicts_with = "never_expires")]
    #[arg(value_parser = time_between("1s", DURATION_MAX))]
    pub(crate) ttl: Option<Duration>,
    /// No expiry
    #[arg(long)]
    pub(crate) never_expires: bool,
    /// Ordering group: its messages are delivered one at a time, in the order in which they were sent
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub(crate) group: String,
    /// Deduplication id, for one message
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(crate) id: String,
}

/// Arguments of `drain`.
#[derive(Debug, Args)]
pub struct DrainArgs {
    /// Name of the queue
    pub(crate) queue: String,
    /// The file; `-` writes to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
}

/// Arguments of `load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Name of the queue
    pub(crate) queue: String,
    /// The file; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Every line is the text of a message
    #[arg(long)]
    pub(crate) text: bool,
    /// Continue an interrupted load of this file; up to a hundred messages may be sent twice if the lines of an
    /// unfinished batch have changed
    #[arg(long)]
    pub(crate) resume: bool,
}
