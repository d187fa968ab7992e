//! `trestle config`.

use std::{path::PathBuf, process::ExitCode};

use trestle::{
    args::{ConfigCommand, ServeArgs},
    doctor, named_files,
    process_error::ProcessError,
    roles::ROLES,
    serve,
    settings::Settings,
};
use trestle_command::output::report_lines;
use trestle_model::time::{Clock as _, SystemClock};
use trestle_runtime::config as layers;

use super::{
    configuration::{file_name, load_or_report, mistakes_with, rejected},
    process::print,
};

/// Runs a command on the configuration.
pub(crate) fn config(command: &ConfigCommand, is_quiet: bool) -> Result<ExitCode, ProcessError> {
    match command {
        ConfigCommand::Print(args) => print_config(args),
        ConfigCommand::Check(args) => check_config(args, is_quiet),
    }
}

fn print_config(args: &ServeArgs) -> Result<ExitCode, ProcessError> {
    let file = args.config.file();
    let mut settings = load_or_report(file.as_deref(), &args.flags())?;
    if settings.storage.ephemeral {
        // One of a lower layer has no effect: a file with both is rejected.
        settings.storage.data_dir = PathBuf::new();
    }
    print(&layers::print(&settings)?)?;
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
