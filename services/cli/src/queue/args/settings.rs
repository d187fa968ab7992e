//! The settings of a queue, and the files of its messages, on the command line.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use trestle_command::values::{time_between, whole_number};

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
