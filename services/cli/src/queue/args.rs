//! The command line of `trestle queue`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use crate::{
    args::duration,
    errors::{QUEUE_EXIT_CODES as EXIT_CODES, with_help},
};

const PROPERTIES_HELP: &str = "\
Such as {\"logging\":{\"read\":true,\"write\":true,\"delete\":true,\"retention_days\":7},
  \"hour_metrics\":{\"enabled\":true,\"include_apis\":true},
  \"cors\":[{\"allowed_origins\":[\"https://app.example\"],\"allowed_methods\":[\"GET\",\"POST\"],
            \"allowed_headers\":[\"content-type\"],\"exposed_headers\":[],\"max_age_seconds\":600}]}";

/// Commands on queues and messages.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum QueueCommand {
    /// Create a queue; an existing one with the same settings is unchanged
    Create {
        /// Name: 3 to 63 lower-case letters, digits and single dashes
        queue: String,
        /// Metadata, such as --metadata owner=me
        #[arg(long, value_name = "NAME=VALUE")]
        metadata: Vec<String>,
        /// Queue for messages that were received too often
        #[arg(long, value_name = "QUEUE", requires = "max_dequeue_count")]
        dead_letter: Option<String>,
        /// How often a message is delivered before it is dead-lettered
        #[arg(long, value_name = "N", requires = "dead_letter")]
        max_dequeue_count: Option<u32>,
        /// How long deduplication ids are remembered, such as 5m
        #[arg(long = "deduplication-window", value_parser = duration, value_name = "TIME")]
        window: Option<Duration>,
    },
    /// List queues, ordered by name
    List {
        /// Only queues whose name begins so
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        prefix: String,
    },
    /// Send messages
    Send(MessageArgs),
    /// Receive messages, which makes them invisible to others for the visibility timeout
    Receive {
        /// Name of the queue
        queue: String,
        /// At most this many
        #[arg(long, short = 'n', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
        max: u32,
        /// How long the messages are invisible to others, 1s to 7 days
        #[arg(long, value_parser = duration, default_value = "30s", value_name = "TIME")]
        visibility_timeout: Duration,
        /// How long to wait for a message, up to 20s
        #[arg(long, value_parser = duration, value_name = "TIME")]
        wait: Option<Duration>,
        /// Delete them at once
        #[arg(long)]
        delete: bool,
    },
    /// Show messages without receiving them
    Peek {
        /// Name of the queue
        queue: String,
        /// At most this many
        #[arg(long, short = 'n', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
        max: u32,
    },
    /// Delete a message by its receipt, or a whole queue
    ///
    /// Deleting a queue takes `--yes`, or its name typed at the prompt on a terminal. Without a terminal and without
    /// `--yes` nothing is deleted and the exit code is 2.
    Delete {
        /// Name of the queue
        queue: String,
        /// Id of the message; without it the whole queue is deleted
        #[arg(requires = "receipt")]
        message_id: Option<String>,
        /// Its last receipt
        receipt: Option<String>,
        /// Delete a queue without confirmation
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
    /// Show or change the settings of the service for the account: logging, metrics, cross-origin rules
    #[command(subcommand)]
    Properties(PropertiesCommand),
    /// Move every visible message into a file, one JSON object a line
    ///
    /// A message is deleted once its line is on stable storage, so one may be in the file twice
    /// after a failure, but none is lost. Lines are appended. Invisible messages remain in the queue, and their number
    /// is reported at the end; Ctrl-C makes visible again what was received and not written.
    Drain(DrainArgs),
    /// Send every line of a file as a message
    ///
    /// Lines as `drain` writes them are sent as they were; with --text every line is the text of a message. A load that
    /// was interrupted continues with --resume, and sends nothing twice within eight minutes; later, up to a hundred
    /// messages. As many may be sent twice, never left out, where the lines of an unfinished batch have changed, which
    /// is reported. Progress is kept in FILE.trestle-load until the load is complete: while that exists, a load
    /// without --resume is rejected, and with it one of a file that changed before the position where it stopped.
    Load(LoadArgs),
}

impl QueueCommand {
    /// The queue of the command, if it has one.
    pub(crate) fn queue(&self) -> Option<&str> {
        match self {
            Self::List { .. } | Self::Properties(_) => None,
            Self::Stats { queue } => queue.as_deref(),
            Self::Send(MessageArgs { queue, .. })
            | Self::Drain(DrainArgs { queue, .. })
            | Self::Load(LoadArgs { queue, .. })
            | Self::Create { queue, .. }
            | Self::Receive { queue, .. }
            | Self::Peek { queue, .. }
            | Self::Delete { queue, .. }
            | Self::Clear { queue, .. }
            | Self::Redrive { queue, .. } => Some(queue),
        }
    }
}

/// Commands on the settings of the service.
#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES, mut_subcommands = |it| with_help(it, EXIT_CODES))]
pub enum PropertiesCommand {
    /// Print them as a JSON object
    Get,
    /// Change them to a JSON object such as `get` prints; parts that it does not have are kept
    #[command(after_help = PROPERTIES_HELP)]
    Set {
        /// The file; `-` reads standard input
        file: PathBuf,
    },
}

/// Arguments of `send`.
#[derive(Debug, Args)]
pub struct MessageArgs {
    /// Name of the queue
    pub(crate) queue: String,
    /// Texts, a message each; `-` reads one from standard input
    #[arg(required = true)]
    pub(crate) texts: Vec<String>,
    /// Visibility delay, up to 7 days
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub(crate) delay: Option<Duration>,
    /// Time to live, 1s or more [default: 7 days]
    #[arg(long, value_parser = duration, value_name = "TIME", conflicts_with = "never_expires")]
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
