//! Trestle: from the command line to the exit code.

mod commands;

use std::process::ExitCode;

use trestle::{
    args::{Cli, Command},
    huge_pages,
};
use trestle_cli::ClientCommand;

use commands::{backup, config, doctor, documents, healthcheck, process, serve, stopped_store};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    huge_pages::disable();
    let Cli { command, client } = Cli::of_process();
    let call = |command| process::call(client.clone(), |client| trestle_cli::run(command, client));
    let outcome = match command {
        Command::Serve(args) => serve::serve(&args),
        Command::Healthcheck(args) => healthcheck::healthcheck(args, client.is_quiet()),
        Command::Repair(args) => stopped_store::repair_store(&args),
        Command::Compact(args) => stopped_store::compact_store(&args, client.format()),
        Command::Store(command) => stopped_store::run_store(command, &client),
        Command::Backup(command) => backup::backup(command, client),
        Command::Doctor(args) => doctor::diagnose(&args, client.format()),
        Command::Config(command) => config::config(&command, client.is_quiet()),
        Command::Options => documents::print_options(),
        Command::Version => documents::print_version(client.format()),
        Command::Completions { shell } => documents::print_completions(shell),
        Command::Man { folder } => documents::write_man_pages(&folder, client.is_quiet()),
        Command::Context(command) => Ok(trestle_command::outcome::run_context(command, client)),
        Command::Sas(args) => Ok(match trestle_command::outcome::resolve(client) {
            Ok(client) => trestle_cli::run_sas(args, &client),
            Err(code) => code,
        }),
        Command::Token(args) => Ok(trestle_cli::run_token(args, client.is_quiet())),
        Command::Import(command) => {
            process::call(client, |client| trestle_import::run_import(command, client))
        }
        Command::Status => call(ClientCommand::Status),
        Command::Verify(args) => call(ClientCommand::Verify(args)),
        Command::Table(command) => call(ClientCommand::Table(command)),
        Command::Entity(command) => call(ClientCommand::Entity(command)),
        Command::Queue(command) => call(ClientCommand::Queue(command)),
        Command::Message(command) => call(ClientCommand::Message(command)),
        Command::Blob(command) => call(ClientCommand::Blob(command)),
        Command::Log(command) => call(ClientCommand::Log(command)),
        Command::Bench(command) => call(ClientCommand::Bench(command)),
    };
    outcome.unwrap_or_else(|error| {
        process::report(&error.chain());
        error.exit_code()
    })
}
