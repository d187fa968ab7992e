//! `trestle backup`: on the files of a store, or through a server.

use std::process::ExitCode;

use trestle::{args::BackupCommands, backup, process_error::ProcessError};
use trestle_backup::BackupCommand;
use trestle_command::flags::ClientFlags;

use super::{
    configuration::load_store,
    process::{call, run, write_for_owner},
};

/// Runs a command on backups.
pub(crate) fn backup(
    command: BackupCommands,
    client: ClientFlags,
) -> Result<ExitCode, ProcessError> {
    match command {
        BackupCommands::Diff(args) => call(client, |client| backup::diff(args, client)),
        BackupCommands::Own(BackupCommand::Restore(args))
            if !args.named.selection.is_everything() =>
        {
            call(client, |client| backup::restore_named(args, client))
        }
        BackupCommands::Own(command) => back_up(command, &client),
    }
}

fn back_up(mut command: BackupCommand, flags: &ClientFlags) -> Result<ExitCode, ProcessError> {
    write_for_owner();
    backup::locate(&mut command, load_store)?;
    let (rules, output) = (backup::rules(), flags.output());
    run(None, trestle_backup::run_backup(command, rules, &output))
}
