//! Trestle: from the command line to the exit code.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    pin::Pin,
    process::ExitCode,
    time::Duration,
};

use clap_complete::Shell;
use trestle::{
    args::{
        BackupCommands, Cli, Command, CompactArgs, ConfigCommand, DoctorArgs, HealthcheckArgs,
        RepairArgs, ServeArgs,
    },
    backup, compact,
    descriptors::DescriptorPlan,
    doctor, healthcheck, huge_pages, named_files,
    process_error::ProcessError,
    reload::SettingsSource,
    repair,
    roles::ROLES,
    serve::{self, Server},
    settings::Settings,
};
use trestle_backup::{BackupCommand, DiffArgs, RestoreArgs};
use trestle_cli::ClientCommand;
use trestle_command::{
    errors::without_number,
    flags::{ClientArgs, ClientFlags},
    outcome::{end_call, finish_call},
    output::{OutputFormat, report_line, report_lines},
};
use trestle_runtime::{
    build,
    config::{self, ConfigError, Sources},
};
use trestle_service::clock::{Clock as _, SystemClock};

/// How long remaining work after a shutdown may take, such as a blocking step. If
/// that prevents the store from closing, it is opened as after a crash. The last flush or compaction is
/// always waited for.
const CLOSES_WITHIN: Duration = Duration::from_secs(1);
/// The exit code for a store that cannot be opened as it is, as of `serve`.
const REJECTED: u8 = 4;
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    huge_pages::disable();
    let Cli { command, client } = Cli::of_process();
    let call = |command| call(client.clone(), |client| Box::pin(trestle_cli::run(command, client)));
    let outcome = match command {
        Command::Serve(args) => serve(&args),
        Command::Healthcheck(args) => healthcheck(args),
        Command::Repair(args) => repair_store(&args),
        Command::Compact(args) => compact_store(&args, client.format()),
        Command::Backup(BackupCommands::Diff(args)) => {
            self::call(client, |client| Box::pin(diff(args, client)))
        }
        Command::Backup(BackupCommands::Own(BackupCommand::Restore(args)))
            if !args.named.selection.is_everything() =>
        {
            self::call(client, |client| Box::pin(restore_named(args, client)))
        }
        Command::Backup(BackupCommands::Own(command)) => back_up(command, &client),
        Command::Doctor(args) => diagnose(&args, client.format()),
        Command::Config(ConfigCommand::Print(args)) => print_config(&args),
        Command::Config(ConfigCommand::Check(args)) => check_config(&args, client.is_quiet()),
        Command::Version => print_version(client.format()),
        Command::Completions { shell } => print_completions(shell),
        Command::Man { folder } => write_man_pages(&folder, client.is_quiet()),
        Command::Context(command) => Ok(trestle_command::outcome::run_context(command, client)),
        Command::Sas(args) => Ok(match trestle_command::outcome::resolve(client) {
            Ok(client) => trestle_cli::run_sas(args, &client),
            Err(code) => code,
        }),
        Command::Token(args) => Ok(trestle_cli::run_token(args, client.is_quiet())),
        Command::Import(command) => {
            self::call(client, |client| Box::pin(trestle_import::run_import(command, client)))
        }
        Command::Status => call(ClientCommand::Status),
        Command::Table(command) => call(ClientCommand::Table(command)),
        Command::Entity(command) => call(ClientCommand::Entity(command)),
        Command::Queue(command) => call(ClientCommand::Queue(command)),
        Command::Message(command) => call(ClientCommand::Message(command)),
        Command::Blob(command) => call(ClientCommand::Blob(command)),
        Command::Log(command) => call(ClientCommand::Log(command)),
        Command::Bench(command) => call(ClientCommand::Bench(command)),
    };
    outcome.unwrap_or_else(|error| {
        report(&error.chain());
        error.exit_code()
    })
}

/// Runs a client command against the server of its arguments.
fn call(
    flags: ClientFlags,
    command: impl for<'a> FnOnce(&'a ClientArgs) -> Pin<Box<dyn Future<Output = ExitCode> + 'a>>,
) -> Result<ExitCode, ProcessError> {
    match trestle_command::outcome::resolve(flags) {
        Ok(client) => run(None, command(&client)),
        Err(code) => Ok(code),
    }
}

fn serve(args: &ServeArgs) -> Result<ExitCode, ProcessError> {
    let file = args.config.file();
    let mut settings = load_checked(file.as_deref(), &args.flags())?;
    write_for_owner();
    let descriptors = DescriptorPlan::for_process(&settings)?;
    let configured =
        std::mem::replace(&mut settings.limits.connections_max, descriptors.connections_max);
    let threads = settings.server.worker_threads;
    let source = settings_source(file, args.flags(), (configured, descriptors.connections_max));
    let server = Server { settings, descriptors, source, backup: args.mount.clone() };
    run_and_end(threads, CLOSES_WITHIN, Box::pin(server.serve(print)))?.map(|()| ExitCode::SUCCESS)
}

/// The settings of a running server, with the connections that the descriptors allow in place of those that were
/// configured at its start: another number is a change.
fn settings_source(
    file: Option<PathBuf>,
    flags: Vec<(String, String)>,
    (configured, allowed): (usize, usize),
) -> SettingsSource {
    let (of_mistakes, checked) = (file.clone(), flags.clone());
    let source = SettingsSource::new(file.clone(), move || {
        let mut settings = load(file.as_deref(), flags.clone())?;
        let connections = &mut settings.limits.connections_max;
        if *connections == configured {
            *connections = allowed;
        }
        Ok(settings)
    });
    source
        .with_mistakes(move || every_mistake(of_mistakes.as_deref(), &checked).unwrap_or_default())
}

/// Data is for the user of the server alone: directories 0700, files 0600.
fn write_for_owner() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

fn healthcheck(args: HealthcheckArgs) -> Result<ExitCode, ProcessError> {
    let endpoint = match args.endpoint {
        Some(endpoint) => endpoint,
        None => healthcheck::endpoint(sources(args.config.file().as_deref(), Vec::new()))?,
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
            report_lines(&format!("error: {reason}"));
            ExitCode::FAILURE
        }
    })
}

fn repair_store(args: &RepairArgs) -> Result<ExitCode, ProcessError> {
    let settings = load_store(args.config.file().as_deref(), args.data_dir.as_deref())?;
    let repaired = repair::repair(&settings.storage, args.accept_loss)?;
    print(&repaired.report)?;
    Ok(if repaired.is_rejected { ExitCode::from(REJECTED) } else { ExitCode::SUCCESS })
}

fn compact_store(args: &CompactArgs, form: Option<OutputFormat>) -> Result<ExitCode, ProcessError> {
    let settings = load_store(args.config.file().as_deref(), args.data_dir.as_deref())?;
    write_for_owner();
    let descriptors = DescriptorPlan::for_process(&settings)?;
    let compacted = compact::compact(&settings.storage, descriptors.store_files)?;
    let is_json = args.json || matches!(form, Some(OutputFormat::Json | OutputFormat::Jsonl));
    print(&if is_json { compacted.json() } else { compacted.report() })?;
    Ok(ExitCode::SUCCESS)
}

fn back_up(mut command: BackupCommand, flags: &ClientFlags) -> Result<ExitCode, ProcessError> {
    write_for_owner();
    backup::locate(&mut command, load_store)?;
    let (rules, output) = (backup::rules(), flags.output());
    run(None, Box::pin(async { trestle_backup::run_backup(command, rules, &output).await }))
}

async fn restore_named(args: RestoreArgs, client: &ClientArgs) -> ExitCode {
    finish_call(backup::restore_named(args, client).await, client).await
}

async fn diff(args: DiffArgs, client: &ClientArgs) -> ExitCode {
    end_call(backup::diff(args, client).await, client, true).await
}

/// Prints every finding, also where the settings are invalid.
fn diagnose(args: &DoctorArgs, form: Option<OutputFormat>) -> Result<ExitCode, ProcessError> {
    let form = form.or(args.json.then_some(OutputFormat::Jsonl));
    let show = |report: &doctor::DoctorReport| {
        print(&match form {
            Some(OutputFormat::Json) => report.json(),
            Some(OutputFormat::Jsonl) => report.json_lines(),
            _ => report.text(),
        })
    };
    let (file, flags) = (args.config.file(), store_flags(args.data_dir.as_deref()));
    let settings = match load(file.as_deref(), flags.clone()) {
        Ok(settings) => settings,
        Err(error) => {
            let mistakes = every_mistake(file.as_deref(), &flags);
            show(&doctor::rejected(mistakes.unwrap_or_else(|| vec![error.chain()])))?;
            return Ok(error.exit_code());
        }
    };
    let report = run(Some(1), Box::pin(doctor::examine(&settings, &SystemClock)))??;
    show(&report)?;
    Ok(if report.has_failure() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The settings of a store that is used without a server.
fn load_store(file: Option<&Path>, data_dir: Option<&Path>) -> Result<Settings, ProcessError> {
    let settings = load_or_report(file, &store_flags(data_dir))?;
    if settings.storage.ephemeral {
        let rule = "true, so no store is on disk: set --data-dir to the directory of one";
        let problems = vec![format!("storage.ephemeral: {rule}")];
        return Err(ConfigError::Invalid { problems }.into());
    }
    Ok(settings)
}

/// A directory on the command line is that of a store, whatever a file or a variable sets.
fn store_flags(data_dir: Option<&Path>) -> Vec<(String, String)> {
    let data_dir = data_dir.map(Path::to_owned);
    ServeArgs { data_dir, ..ServeArgs::default() }.flags()
}

fn print_config(args: &ServeArgs) -> Result<ExitCode, ProcessError> {
    let file = args.config.file();
    let mut settings = load_or_report(file.as_deref(), &args.flags())?;
    if settings.storage.ephemeral {
        // One of a lower layer has no effect: a file with both is rejected.
        settings.storage.data_dir = PathBuf::new();
    }
    print(&config::print(&settings)?)?;
    Ok(ExitCode::SUCCESS)
}

fn check_config(args: &ServeArgs, is_quiet: bool) -> Result<ExitCode, ProcessError> {
    let file = args.config.file();
    let (mut unserved, mut unused, mut expiring) = (Vec::new(), Vec::new(), Vec::new());
    let problems = |settings: &Settings| {
        let (expired, soon) = doctor::expiries(settings, SystemClock.now());
        expiring = soon;
        unserved = settings.server.unserved_keys(ROLES);
        unused = settings.unused_sections();
        let files = named_files::problems(settings).into_iter();
        // A server starts with one, and warns.
        files.chain(expired).collect()
    };
    let mistakes = mistakes_with(file.as_deref(), &args.flags(), problems)?;
    if !mistakes.is_empty() {
        return Err(rejected(&mistakes, file.as_deref()));
    }
    for certificate in expiring {
        report_lines(&format!("warning: {certificate}; renew it"));
    }
    if !unserved.is_empty() {
        report_lines(&format!("warning: {}: {}", serve::UNSERVED, unserved.join(", ")));
    }
    if !unused.is_empty() {
        report_lines(&format!(
            "note: no effect in a process with these roles: {}",
            unused.join(", ")
        ));
    }
    if !is_quiet {
        print(&format!("the configuration is valid: {}\n", file_name(file.as_deref())))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Settings whose files can be used; else every mistake is reported.
fn load_checked(file: Option<&Path>, flags: &[(String, String)]) -> Result<Settings, ProcessError> {
    let settings = load_or_report(file, flags)?;
    let problems = named_files::problems(&settings);
    if problems.is_empty() {
        return Ok(settings);
    }
    let problems = || problems.into_iter().map(without_number).collect();
    let mistakes = every_mistake(file, flags).unwrap_or_else(problems);
    Err(rejected(&mistakes, file))
}

/// Settings; else every mistake in them is reported.
fn load_or_report(
    file: Option<&Path>,
    flags: &[(String, String)],
) -> Result<Settings, ProcessError> {
    load(file, flags.to_vec()).map_err(|error| match every_mistake(file, flags) {
        Some(mistakes) => rejected(&mistakes, file),
        None => error,
    })
}

/// The mistakes, unless the file can be read only once, as a pipe.
fn every_mistake(file: Option<&Path>, flags: &[(String, String)]) -> Option<Vec<String>> {
    let is_repeatable = file.is_none_or(|file| file.is_file() || file.is_dir() || !file.exists());
    let mistakes = is_repeatable.then(|| mistakes(file, flags).ok()).flatten()?;
    Some(mistakes).filter(|mistakes| !mistakes.is_empty())
}

/// Every mistake in the configuration, each with its place, without the numbers of errors of the system.
fn mistakes(file: Option<&Path>, flags: &[(String, String)]) -> Result<Vec<String>, ProcessError> {
    mistakes_with(file, flags, named_files::problems)
}

/// The same, where `problems` returns those of the files that the settings name.
fn mistakes_with(
    file: Option<&Path>,
    flags: &[(String, String)],
    problems: impl FnOnce(&Settings) -> Vec<String>,
) -> Result<Vec<String>, ProcessError> {
    let problems = Settings::problems_of(ROLES, sources(file, flags.to_vec()), problems)?;
    Ok(problems.into_iter().map(without_number).collect())
}

/// Reports mistakes; the error that ends the process.
fn rejected(mistakes: &[String], file: Option<&Path>) -> ProcessError {
    mistakes.iter().for_each(|mistake| report(mistake));
    // A mistake at a flag or a variable is not of the file.
    let is_elsewhere = |it: &String| ["--", "TRESTLE__", "OTEL_"].iter().any(|p| it.starts_with(p));
    let file = file.filter(|_| !mistakes.iter().all(is_elsewhere));
    let file = file.map(|file| file.display().to_string());
    ProcessError::Check { problems: mistakes.len(), file }
}

fn file_name(file: Option<&Path>) -> String {
    file.map_or_else(|| "no file".to_owned(), |file| file.display().to_string())
}

fn print_completions(shell: Shell) -> Result<ExitCode, ProcessError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::offered(), "trestle", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

fn write_man_pages(folder: &Path, is_quiet: bool) -> Result<ExitCode, ProcessError> {
    let written = fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::documented(), folder));
    let folder_name = folder.display().to_string();
    written.map_err(|source| ProcessError::ManPages { folder: folder_name, source })?;
    if !is_quiet {
        print(&format!("wrote the man pages to {}\n", folder.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_version(form: Option<OutputFormat>) -> Result<ExitCode, ProcessError> {
    let (version, revision) = (build::VERSION, build::REVISION);
    print(&match form {
        Some(OutputFormat::Json | OutputFormat::Jsonl) => {
            format!("{}\n", serde_json::json!({ "version": version, "revision": revision }))
        }
        _ => format!("trestle {}\n", build::DESCRIPTION),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn load(file: Option<&Path>, flags: Vec<(String, String)>) -> Result<Settings, ProcessError> {
    Ok(Settings::load(ROLES, sources(file, flags))?)
}

fn sources(file: Option<&Path>, flags: Vec<(String, String)>) -> Sources<'_> {
    Sources { file, environment: config::environment(), flags, ..Sources::default() }
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
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has closed the pipe, such as `head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(ProcessError::Output),
    }
}

/// Reports a failure in one line on standard error, unless that is closed.
fn report(text: &str) {
    report_line(&format!("error: {text}"));
}
