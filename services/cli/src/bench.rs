//! `trestle bench`: closed-loop load of one kind of operation, with percentiles.
//!
//! A bench works in a table or a queue of its own, which it removes again.

use std::{collections::BTreeMap, pin::Pin, time::Duration};

use clap::ValueEnum;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use tokio::{task::JoinSet, time::Instant};
use tonic::{Code, Status};
use trestle_command::{
    client::Session,
    errors::{CliError, Halt},
    flags::ClientArgs,
    output::{Output, thousands, with_fields},
};

mod args;
mod queue;
mod table;

pub use args::{BenchCommand, BenchLoadArgs, BenchOp, TableBenchArgs};
pub use queue::{QueueBenchArgs, QueueBenchOp};

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

/// The measured time.
#[derive(Debug, Clone, Copy)]
struct MeasuredTime {
    from: Instant,
    end: Instant,
}

impl MeasuredTime {
    /// Whether a call began and ended within it.
    fn has(&self, began: Instant, ended: Instant) -> bool {
        began >= self.from && ended <= self.end
    }
}

/// Runs a bench and prints what it measured.
pub(crate) async fn run(command: BenchCommand, client: &ClientArgs) -> Result<(), CliError> {
    let session = Session::connect(client).await?;
    let name = format!("bench{:016x}", fastrand::u64(..));
    let measuring: Pin<Box<dyn Future<Output = _> + Send>> = match &command {
        BenchCommand::Table(args) => Box::pin(table::run(args, client, &session, name)),
        BenchCommand::Queue(args) => Box::pin(queue::run(args, client, &session, name)),
    };
    let CompletedBench { record, tally, removed } = measuring.await?;
    let mut output = Output::standard(&client.output);
    output.record(["Bench", ""], &with_fields(record, tally.record(&command)))?;
    output.finish()?;
    removed?;
    match tally.errors.values().sum::<u64>() {
        0 => Ok(()),
        failed => Err(CliError::Rows(format!("{} calls failed", thousands(failed)))),
    }
}

impl BenchCommand {
    fn load(&self) -> &BenchLoadArgs {
        match self {
            Self::Table(args) => &args.load,
            Self::Queue(args) => &args.load,
        }
    }
}

/// Runs callers, each with its number, over several connections, and adds up what they measured.
async fn measure<F: Future<Output = BenchTally> + Send + 'static>(
    args: &BenchLoadArgs,
    client: &ClientArgs,
    caller: impl Fn(Session, u32, MeasuredTime) -> F,
) -> Result<BenchTally, CliError> {
    let mut sessions = Vec::new();
    for _ in 0..args.connections {
        sessions.push(Session::connect(client).await?);
    }
    let begin = Instant::now();
    let from = begin.checked_add(args.warmup).unwrap_or(begin);
    let span = MeasuredTime { from, end: from.checked_add(args.duration).unwrap_or(begin) };
    let mut callers = JoinSet::new();
    for (number, session) in (0..args.clients).zip(sessions.iter().cycle()) {
        callers.spawn(caller(session.clone(), number, span));
    }
    let mut total = BenchTally::new();
    let last = span.end.checked_add(client.timeout).unwrap_or(span.end);
    while let Ok(Some(tally)) = tokio::time::timeout_at(last, callers.join_next()).await {
        total.add(&tally.map_err(|error| CliError::Protocol(error.to_string()))?);
    }
    // Failed calls are counted, and calls without a response are cancelled.
    for _ in 0..callers.len() {
        total.error(Code::DeadlineExceeded);
    }
    Ok(total)
}

/// What a bench measured.
struct CompletedBench {
    /// Its arguments.
    record: Value,
    tally: BenchTally,
    /// Whether its table or queue was removed; where it was not, the server usually stopped under the load.
    removed: Result<(), CliError>,
}

impl CompletedBench {
    /// A bench in something of its own, such as ``table `bench1` ``, which remains unless it was `removed`.
    fn new<T>(
        record: Value,
        measured: Result<BenchTally, CliError>,
        removed: Result<T, Status>,
        whose: &str,
        client: &ClientArgs,
    ) -> Result<Self, CliError> {
        let remains = |error: CliError| {
            error.halted(true, || Halt {
                endpoint: client.endpoint.clone(),
                progress: "calls were made".to_owned(),
                next: format!("{whose} may remain: delete it"),
            })
        };
        match measured {
            Err(error) if removed.is_err() => Err(remains(error)),
            measured => {
                let removed = removed.map(drop).map_err(|status| remains(status.into()));
                Ok(Self { record, tally: measured?, removed })
            }
        }
    }
}

/// The name of an operation on the command line.
fn op_name(op: &impl ValueEnum) -> String {
    op.to_possible_value().map(|op| op.get_name().to_owned()).unwrap_or_default()
}

impl BenchTally {
    /// The load and its measurements.
    fn record(&self, command: &BenchCommand) -> Value {
        let load = command.load();
        let seconds = load.duration.as_secs_f64();
        // Counts of a bench are far below 2^53, where this is exact.
        #[expect(clippy::cast_precision_loss, reason = "see above")]
        let rate = |count: u64| count as f64 / seconds;
        let name = |code: i32| trestle_rpc::status::code_name(Code::from(code));
        let errors = self.errors.iter().map(|(code, count)| (name(*code), *count));
        let mut latency: Map<_, _> = PERCENTILES
            .map(|(name, share)| {
                (name.to_owned(), json!(self.latency_micros.value_at_quantile(share)))
            })
            .into_iter()
            .collect();
        latency.insert("max".to_owned(), json!(self.latency_micros.max()));
        let items = match command {
            BenchCommand::Table(_) => "entities_per_second",
            BenchCommand::Queue(_) => "messages_per_second",
        };
        json!({
            "clients": load.clients,
            "connections": load.connections,
            "seconds": seconds,
            "ops": self.latency_micros.len(),
            "ops_per_second": rate(self.latency_micros.len()),
            items: rate(self.entities),
            "latency_us": latency,
            "errors": errors.collect::<BTreeMap<_, _>>(),
        })
    }
}
