//! Commands on a store that no server has open: `trestle repair` and `trestle compact`.

use std::process::ExitCode;

use trestle::{
    args::{CompactArgs, RepairArgs},
    compact,
    descriptors::DescriptorPlan,
    process_error::ProcessError,
    repair,
};
use trestle_command::output::OutputFormat;

use super::{
    configuration::load_store,
    process::{print, write_for_owner},
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
