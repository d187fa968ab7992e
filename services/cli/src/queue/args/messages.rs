//! The command line of `trestle message`.

use std::{ffi::OsString, time::Duration};

use clap::{Args, Subcommand};
use trestle_command::{
    errors::{QUEUE_EXIT_CODES as EXIT_CODES, with_help},
    values::{DURATION_MAX, time_between, whole_number},
};

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
    /// Run a command for each message
    #[command(after_long_help = WORK_HELP)]
    Work(WorkArgs),
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

/// Arguments of `work`.
#[derive(Debug, Args)]
pub struct WorkArgs {
    /// Name of the queue
    pub(crate) queue: String,
    /// How long a message is invisible to others, 1s to 7 days; extended while its command runs
    #[arg(long, alias = "visibility", value_parser = time_between("1s", "7d"))]
    #[arg(default_value = "30s", value_name = "TIME")]
    pub(crate) visibility_timeout: Duration,
    /// End after this many messages
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(1..=u64::MAX))]
    pub(crate) limit: Option<u64>,
    /// End when no message is visible, instead of waiting for one
    #[arg(long)]
    pub(crate) until_empty: bool,
    /// Make a message whose command fails visible again after this time, up to 7 days; `0s` is at once [default: when
    /// its visibility timeout ends]
    #[arg(long, value_parser = time_between("0s", "7d"), value_name = "TIME")]
    pub(crate) retry_after: Option<Duration>,
    /// The command and its arguments, which follow `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

const WORK_HELP: &str = "\
The command reads the body of the message from its standard input, and has these variables:
  TRESTLE_QUEUE           the name of the queue
  TRESTLE_MESSAGE_ID      the id of the message
  TRESTLE_DEQUEUE_COUNT   how many times the message was received, this time included

The message is deleted when the command ends with exit code 0. Otherwise it remains in the queue and is
received again, so the command must be idempotent; a queue with a dead-letter queue limits how often.
Messages are received one at a time; run several workers to run several commands at once.

Ctrl-C and SIGTERM end the worker after the running command; a second one terminates the command, whose
message is then visible at once. The exit code is 1 where a command failed, or a
message could not be deleted because its visibility timeout ended.";

/// Arguments of `peek`.
#[derive(Debug, Args)]
pub struct PeekArgs {
    /// Name of the queue
    pub(crate) queue: String,
    /// How many
    #[command(flatten)]
    pub(crate) count: MessageCountArgs,
    /// Every message: also those that are delayed, received, or behind another one of their ordering group
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
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

impl MessageCommand {
    /// The queue of the command.
    pub(crate) fn queue(&self) -> &str {
        match self {
            Self::Send(MessageArgs { queue, .. })
            | Self::Receive(ReceiveArgs { queue, .. })
            | Self::Peek(PeekArgs { queue, .. })
            | Self::Delete(ReceiptArgs { queue, .. })
            | Self::Release(ReceiptArgs { queue, .. })
            | Self::Work(WorkArgs { queue, .. })
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
