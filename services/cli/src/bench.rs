//! `trestle bench`: closed-loop load of one kind of operation, with percentiles.
//!
//! A bench works in a table of its own, which it removes again.

use std::{collections::BTreeMap, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use hdrhistogram::Histogram;
use serde_json::{Map, json};
use tokio::{task::JoinSet, time::Instant};
use tonic::Code;
use trestle_proto::table::v1::{CreateTableRequest, DeleteTableRequest, Table};

use crate::{
    args::{ClientArgs, duration},
    client::Session,
    errors::{CliError, EXIT_CODES},
    output::{Output, thousands},
};

mod load;

use load::{BenchLoad, Worker};

/// What to put load on.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Operations on entities
    ///
    /// Works in a table of its own, `bench` and a random number, and removes it at the end.
    #[command(after_help = EXIT_CODES)]
    Table(TableBenchArgs),
}

/// Arguments of `bench table`.
#[derive(Debug, Clone, Args)]
pub struct TableBenchArgs {
    /// The operation
    #[arg(long, value_enum)]
    pub(crate) op: BenchOp,
    /// Callers, each with one call at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) clients: u32,
    /// Connections that the callers share
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) connections: u32,
    /// How long is measured
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) duration: Duration,
    /// How long load runs before it is measured
    #[arg(long, default_value = "2s", value_parser = duration, value_name = "TIME")]
    pub(crate) warmup: Duration,
    /// Size of the one binary property of each entity
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(0..=32_768))]
    pub(crate) entity_bytes: u32,
    /// Partitions over which entities are spread
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) partitions: u32,
    /// Entities in the table before a get, query or stream
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
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

/// Share of calls that took no longer, and its name.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Longest latency that is recorded, in microseconds: ten minutes.
const LATENCY_MICROS_MAX: u64 = 600_000_000;

/// The measurements of the callers.
pub(crate) struct BenchTally {
    latency_micros: Histogram<u64>,
    entities: u64,
    errors: BTreeMap<i32, u64>,
}

impl BenchTally {
    fn new() -> Self {
        let latency_micros = Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, 3)
            .expect("the bounds of the histogram are constant and valid");
        Self { latency_micros, entities: 0, errors: BTreeMap::new() }
    }

    pub(crate) fn call(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        self.latency_micros.saturating_record(micros);
    }

    pub(crate) fn entities(&mut self, count: usize) {
        self.entities += u64::try_from(count).unwrap_or_default();
    }

    pub(crate) fn error(&mut self, code: Code) {
        *self.errors.entry(code.into()).or_default() += 1;
    }

    fn add(&mut self, other: &Self) {
        // Same bounds, so adding cannot fail.
        let _ = self.latency_micros.add(&other.latency_micros);
        self.entities += other.entities;
        for (code, count) in &other.errors {
            *self.errors.entry(*code).or_default() += count;
        }
    }
}

/// Runs a bench and prints what it measured.
pub(crate) async fn run(command: BenchCommand, client: &ClientArgs) -> Result<(), CliError> {
    let BenchCommand::Table(args) = command;
    let session = Session::connect(client).await?;
    let table = format!("bench{:016x}", fastrand::u64(..));
    let request =
        CreateTableRequest { table: Some(Table { name: table.clone(), ..Table::default() }) };
    session.table().create_table(request).await?;
    let measured = tokio::select! {
        measured = measure(&args, client, &session, &table) => measured,
        _ = tokio::signal::ctrl_c() => Err(CliError::Usage("interrupted".to_owned())),
    };
    let request = DeleteTableRequest { table };
    let removed = session.table().delete_table(request).await;
    let tally = measured?;
    let mut output = Output::standard(client.json);
    print(&mut output, &args, &tally)?;
    output.flush()?;
    removed?;
    match tally.errors.values().sum::<u64>() {
        0 => Ok(()),
        failed => Err(CliError::Rows(format!("{} calls failed", thousands(failed)))),
    }
}

async fn measure(
    args: &TableBenchArgs,
    client: &ClientArgs,
    session: &Session,
    table: &str,
) -> Result<BenchTally, CliError> {
    let load = BenchLoad::new(args, table);
    if load.needs_entities() {
        load.fill(&mut session.table()).await?;
    }
    let mut clients = Vec::new();
    for _ in 0..args.connections {
        clients.push(Session::connect(client).await?.table());
    }
    let begin = Instant::now();
    let measured_from = begin.checked_add(args.warmup).unwrap_or(begin);
    let end = measured_from.checked_add(args.duration).unwrap_or(begin);
    let mut callers = JoinSet::new();
    for (number, client) in (0..args.clients).zip(clients.iter().cycle()) {
        let (load, client) = (load.clone(), client.clone());
        let worker = Worker { load, client, number, measured_from, end };
        callers.spawn(async move {
            let mut tally = BenchTally::new();
            worker.run(&mut tally).await;
            tally
        });
    }
    let mut total = BenchTally::new();
    let last = end.checked_add(client.timeout).unwrap_or(end);
    while let Ok(Some(tally)) = tokio::time::timeout_at(last, callers.join_next()).await {
        total.add(&tally.map_err(|error| CliError::Protocol(error.to_string()))?);
    }
    // Failed calls are counted, and calls without a response are cancelled.
    for _ in 0..callers.len() {
        total.error(Code::DeadlineExceeded);
    }
    Ok(total)
}

fn print(output: &mut Output, args: &TableBenchArgs, tally: &BenchTally) -> Result<(), CliError> {
    let seconds = args.duration.as_secs_f64();
    // Counts of a bench are far below 2^53, where this is exact.
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    let rate = |count: u64| count as f64 / seconds;
    let calls = tally.latency_micros.len();
    let errors: BTreeMap<_, _> = tally
        .errors
        .iter()
        .map(|(code, count)| (trestle_service::fault::code_name(Code::from(*code)), *count))
        .collect();
    let operation = args.op.to_possible_value().map(|op| op.get_name().to_owned());
    let operation = operation.unwrap_or_default();
    let mut latency: Map<_, _> = PERCENTILES
        .map(|(name, share)| {
            (name.to_owned(), json!(tally.latency_micros.value_at_quantile(share)))
        })
        .into_iter()
        .collect();
    latency.insert("max".to_owned(), json!(tally.latency_micros.max()));
    let record = json!({
        "op": operation,
        "clients": args.clients,
        "connections": args.connections,
        "entity_bytes": args.entity_bytes,
        "partitions": args.partitions,
        "seconds": seconds,
        "ops": calls,
        "ops_per_second": rate(calls),
        "entities_per_second": rate(tally.entities),
        "latency_us": latency,
        "errors": errors,
    });
    output.record(["Bench", ""], &record)
}
