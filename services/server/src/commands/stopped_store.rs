//! Commands on a store that no server has open: `trestle repair`, `trestle compact` and
//! `trestle store`.

use std::process::ExitCode;

use trestle::{
    args::{CompactArgs, RepairArgs, StoreCommand},
    compact,
    descriptors::DescriptorPlan,
    process_error::ProcessError,
    repair, store_copy,
};
use trestle_command::{flags::ClientFlags, outcome::finish, output::OutputFormat};

use super::{
    configuration::load_store,
    process::{print, run, write_for_owner},
};

/// The exit code for a store that cannot be opened as it is, as of `serve`.
const REJECTED: u8 = 4;

pub(crate) fn repair_store(args: &RepairArgs) -> Result<ExitCode, ProcessError> {
    let settings = load_store(args.config.file().as_deref(), args.data_dir.as_deref())?;
    write_for_owner();
    let repaired = repair::repair(&settings.storage, args.accept_loss)?;
    print(&repaired.report)?;
    Ok(if repaired.is_rejected { ExitCode::from(REJECTED) } else { ExitCode::SUCCESS })
}

pub(crate) fn compact_store(
    args: &CompactArgs,
    form: Option<OutputFormat>,
) -> Result<ExitCode, ProcessError> {
    let settings = load_store(args.config.file().as_deref(), args.data_dir.as_deref())?;
    write_for_owner();
    let descriptors = DescriptorPlan::for_process(&settings)?;
    let compacted = compact::compact(&settings.storage, descriptors.store_files)?;
    let is_json = args.json || matches!(form, Some(OutputFormat::Json | OutputFormat::Jsonl));
    print(&if is_json { compacted.json() } else { compacted.report() })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run_store(
    command: StoreCommand,
    client: &ClientFlags,
) -> Result<ExitCode, ProcessError> {
    write_for_owner();
    let output = client.output();
    let StoreCommand::Copy(args) = command;
    let copied = run(None, store_copy::run(&args, &output))?;
    Ok(finish(copied, output.is_json(), None))
}
