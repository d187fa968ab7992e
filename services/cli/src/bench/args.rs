//! The command line of `trestle bench`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use trestle_command::{
    errors::EXIT_CODES,
    values::{duration, whole_number},
};

use super::QueueBenchArgs;

/// What to put load on.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Operations on entities
    ///
    /// Works in a table of its own, `bench` and a random number, and removes it at the end.
    #[command(after_help = EXIT_CODES)]
    Table(TableBenchArgs),
    /// Operations on messages
    ///
    /// Works in a queue of its own, `bench` and a random number, and removes it at the end.
    #[command(after_help = EXIT_CODES)]
    Queue(QueueBenchArgs),
}

/// The load of a bench.
#[derive(Debug, Clone, Args)]
pub struct BenchLoadArgs {
    /// Callers, each with one call at a time
    #[arg(long, default_value_t = 64, value_parser = whole_number::<u32>(1..=4096))]
    pub(crate) clients: u32,
    /// Connections that the callers share
    #[arg(long, default_value_t = 4, value_parser = whole_number::<u32>(1..=256))]
    pub(crate) connections: u32,
    /// How long is measured
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) duration: Duration,
    /// How long load runs before it is measured
    #[arg(long, default_value = "2s", value_parser = duration, value_name = "TIME")]
    pub(crate) warmup: Duration,
}

/// Arguments of `bench table`.
#[derive(Debug, Clone, Args)]
pub struct TableBenchArgs {
    /// The operation
    #[arg(long, value_enum, default_value_t = BenchOp::Insert)]
    pub(crate) op: BenchOp,
    /// The load
    #[command(flatten)]
    pub(crate) load: BenchLoadArgs,
    /// Size of the one binary property of each entity
    #[arg(long, default_value_t = 1024, value_parser = whole_number::<u32>(0..=32_768))]
    pub(crate) entity_bytes: u32,
    /// Partitions over which entities are spread
    #[arg(long, default_value_t = 16, value_parser = whole_number::<u32>(1..=1_000_000))]
    pub(crate) partitions: u32,
    /// Entities in the table before a get, query or stream
    #[arg(long, default_value_t = 10_000, value_parser = whole_number::<u32>(1..=u32::MAX.into()))]
    pub(crate) entities: u32,
}

/// An operation to put load on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchOp {
    /// Read one entity by its key
    Get,
    /// Insert a new entity
    Insert,
    /// Insert or replace an entity
    Upsert,
    /// Merge into one and the same entity
    MergeHot,
    /// Insert 100 entities of one partition as a batch
    Batch,
    /// Read a page of 100 entities of one partition
    Query,
    /// Stream the whole table
    Stream,
    /// Import chunks of 100 entities
    Import,
}
