//! The command line of `trestle queue` and `trestle message`.

use clap::{Arg, Subcommand};
use trestle_command::errors::{QUEUE_EXIT_CODES as EXIT_CODES, with_help};

use crate::service::{PolicyCommand, PropertiesCommand};

mod messages;
mod settings;

pub use messages::{MessageArgs, MessageCommand, PeekArgs, ReceiptArgs, ReceiveArgs, WorkArgs};
pub(super) use settings::RemovedSettingsArgs;
pub use settings::{DrainArgs, LoadArgs, QueueSettingsArgs};

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
    /// end; Ctrl-C and SIGTERM complete the lines that are being written, and make visible again what was received and
    /// not written.
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
