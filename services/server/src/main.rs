//! Trestle: from the command line to the exit code.

use std::{
    io::{self, Write as _},
    path::Path,
    pin::{Pin, pin},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Parser as _;
use tracing::{info, warn};
use trestle::{
    args::{Cli, Command, CompactArgs, ConfigCommand, HealthcheckArgs, RepairArgs, ServeArgs},
    compact,
    compose::{NodeDeps, compose},
    descriptors::DescriptorPlan,
    healthcheck,
    process_error::ProcessError,
    reload::SettingsSource,
    repair,
    roles::{BLOB, ROLES},
    running::{Listeners, Running, Signals},
    settings::Settings,
    storage,
};
use trestle_runtime::{
    config::{self, Sources},
    serve::Drained,
    telemetry::Telemetry,
};
use trestle_service::clock::SystemClock;

/// How long remaining work after a shutdown may take, such as a blocking step. If
/// that prevents the store from closing, it is opened as after a crash. The last flush or compaction is
/// always waited for.
const CLOSES_WITHIN: Duration = Duration::from_secs(1);
/// The exit code for a store that cannot be opened as it is, as of `serve`.
const REJECTED: u8 = 4;
/// How long a forced shutdown may take.
const FORCED_WITHIN: Duration = Duration::from_secs(2);

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(args) => serve(&args),
        Command::Healthcheck(args) => healthcheck(args),
        Command::Repair(args) => repair_store(&args),
        Command::Compact(args) => compact_store(&args),
        Command::Config { command: ConfigCommand::Print(args) } => print_config(&args),
        Command::Version => print_version(),
        Command::Table { command, client } => {
            run(None, Box::pin(trestle_cli::run_table(command, client)))
        }
        Command::Queue { command, client } => {
            run(None, Box::pin(trestle_cli::run_queue(command, client)))
        }
        Command::Blob { command, client } => {
            run(None, Box::pin(trestle_cli::run_blob(command, client)))
        }
        Command::Log { command, client } => {
            run(None, Box::pin(trestle_cli::run_log(command, client)))
        }
        Command::Import { command, client } => {
            run(None, Box::pin(trestle_import::run_import(command, client)))
        }
        Command::Sas(args) => Ok(trestle_cli::run_sas(args)),
        Command::Bench { command, client } => {
            run(None, Box::pin(trestle_cli::run_bench(command, client)))
        }
    };
    outcome.unwrap_or_else(|error| {
        report(&error.chain());
        error.exit_code()
    })
}

fn serve(args: &ServeArgs) -> Result<ExitCode, ProcessError> {
    let mut settings = load(args.config.as_deref(), args.flags())?;
    write_for_owner();
    let descriptors = DescriptorPlan::for_process(&settings)?;
    settings.limits.connections_max = descriptors.connections_max;
    let threads = settings.server.worker_threads;
    let (file, flags) = (args.config.clone(), args.flags());
    let source = SettingsSource::new(file.clone(), move || load(file.as_deref(), flags.clone()));
    let served = Box::pin(serve_until_signal(settings, descriptors, source));
    run_and_end(threads, CLOSES_WITHIN, served)?.map(|()| ExitCode::SUCCESS)
}

/// Data is for the user of the server alone: directories 0700, files 0600.
fn write_for_owner() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Runs a server.
async fn serve_until_signal(
    settings: Settings,
    descriptors: DescriptorPlan,
    source: SettingsSource,
) -> Result<(), ProcessError> {
    let telemetry = Telemetry::start(&settings.telemetry, rand::random)?;
    telemetry.install()?;
    let ended = serve_with(&telemetry, settings, descriptors, source).await;
    telemetry.shutdown().await;
    ended
}

async fn serve_with(
    telemetry: &Telemetry,
    settings: Settings,
    descriptors: DescriptorPlan,
    source: SettingsSource,
) -> Result<(), ProcessError> {
    descriptors.log();
    let mut signals = Signals::take()?;
    let listeners = Listeners::bind(&settings).await?;
    for (listener, address) in settings.server.exposed(&settings.tls) {
        warn!(listener, %address, "this address is not loopback and nothing is encrypted");
    }

    let meter = telemetry.meter();
    listeners.count_on(&meter);
    let exemplars = telemetry.traces().exemplars;
    let open = || storage::open(&settings.storage, descriptors.store_files, &meter, exemplars);
    let store = settings.owns_data(ROLES).then(open).transpose()?;
    let (engine, disk) = store.map(|store| (store.engine, store.disk)).unzip();
    let objects = match settings.server.roles.has(BLOB.name) {
        true => Some(storage::open_objects(&settings.storage, disk.flatten()).await?),
        false => None,
    };
    let deps = NodeDeps {
        engine,
        objects,
        clock: Arc::new(SystemClock),
        meter,
        traces: telemetry.traces(),
        access: telemetry.access(),
        random: rand::random,
        source: Some(source),
    };
    let mut node = compose(&settings, ROLES, deps).await?;
    listeners.watches().for_each(|task| node.watch(task));
    let ready = listeners.ready()?;
    let reload = node.reload.clone();
    let running = Running::start(node, listeners, &settings, telemetry.exposition());
    info!(roles = %settings.server.roles, "serving");
    print(&ready)?;

    let (watchdog, forced) = (running.watchdog(), running.forced());
    tokio::select! {
        () = signals.shutdown(&reload) => {}
        () = watchdog.failure() => {}
    }
    let mut stopping = pin!(running.stop());
    let drained = tokio::select! {
        drained = &mut stopping => Ok(drained),
        () = signals.shutdown(&reload) => {
            forced.cancel();
            tokio::time::timeout(FORCED_WITHIN, stopping).await
        }
    };
    match (watchdog.failed(), drained) {
        (Some(listener), _) => Err(ProcessError::Listener { listener: listener.to_owned() }),
        (None, Ok(Drained::Clean)) => Ok(()),
        (None, Ok(Drained::Cut(connections))) => Err(ProcessError::Cut { connections }),
        (None, Err(_)) => Err(ProcessError::Hung),
    }
}

fn healthcheck(args: HealthcheckArgs) -> Result<ExitCode, ProcessError> {
    let endpoint = match args.endpoint {
        Some(endpoint) => endpoint,
        None => healthcheck::endpoint(&load(args.config.as_deref(), Vec::new())?),
    };
    let check = healthcheck::check(&endpoint, &args.tls, args.service);
    let checked = run(Some(1), Box::pin(check))?;
    Ok(match checked {
        Ok(limited) => {
            if let Some(limited) = limited {
                print(&format!("{limited}\n"))?;
            }
            ExitCode::SUCCESS
        }
        Err(reason) => {
            report(&reason);
            ExitCode::FAILURE
        }
    })
}

fn repair_store(args: &RepairArgs) -> Result<ExitCode, ProcessError> {
    let settings = load_store(args.config.as_deref(), args.data_dir.as_deref())?;
    let repaired = repair::repair(&settings.storage, args.accept_loss)?;
    print(&repaired.report)?;
    Ok(if repaired.is_rejected { ExitCode::from(REJECTED) } else { ExitCode::SUCCESS })
}

fn compact_store(args: &CompactArgs) -> Result<ExitCode, ProcessError> {
    let settings = load_store(args.config.as_deref(), args.data_dir.as_deref())?;
    write_for_owner();
    let descriptors = DescriptorPlan::for_process(&settings)?;
    let compacted = compact::compact(&settings.storage, descriptors.store_files)?;
    print(&if args.json { compacted.json() } else { compacted.report() })?;
    Ok(ExitCode::SUCCESS)
}

/// The settings of a store that is used without a server.
fn load_store(file: Option<&Path>, data_dir: Option<&Path>) -> Result<Settings, ProcessError> {
    let flags =
        data_dir.iter().map(|dir| ("storage.data_dir".to_owned(), dir.display().to_string()));
    load(file, flags.collect())
}

fn print_config(args: &ServeArgs) -> Result<ExitCode, ProcessError> {
    let settings = load(args.config.as_deref(), args.flags())?;
    print(&config::print(&settings)?)?;
    Ok(ExitCode::SUCCESS)
}

fn print_version() -> Result<ExitCode, ProcessError> {
    print(&format!("trestle {}\n", env!("CARGO_PKG_VERSION")))?;
    Ok(ExitCode::SUCCESS)
}

fn load(file: Option<&Path>, flags: Vec<(String, String)>) -> Result<Settings, ProcessError> {
    let sources = Sources { file, environment: config::environment(), flags, ..Sources::default() };
    Ok(Settings::load(ROLES, sources)?)
}

/// Runs work to its end on this many threads; without a number, one for each core.
fn run<T>(
    threads: Option<usize>,
    work: Pin<Box<dyn Future<Output = T> + '_>>,
) -> Result<T, ProcessError> {
    run_and_end(threads, Duration::ZERO, work)
}

/// The same; tasks that are still running then have this long to end.
fn run_and_end<T>(
    threads: Option<usize>,
    ends_within: Duration,
    work: Pin<Box<dyn Future<Output = T> + '_>>,
) -> Result<T, ProcessError> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        runtime.worker_threads(threads);
    }
    let runtime = runtime.enable_all().build()?;
    let outcome = runtime.block_on(work);
    // A blocking step that hangs must not keep the process.
    runtime.shutdown_timeout(ends_within);
    Ok(outcome)
}

/// Standard output has results only.
fn print(text: &str) -> Result<(), ProcessError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(ProcessError::Output)
}

/// Reports a failure on standard error, unless that is closed.
fn report(text: &str) {
    let _ = writeln!(io::stderr(), "trestle: {text}");
}
