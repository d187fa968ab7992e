//! `trestle doctor`.

use std::process::ExitCode;

use trestle::{args::DoctorArgs, doctor, process_error::ProcessError};
use trestle_command::output::OutputFormat;
use trestle_model::time::SystemClock;

use super::{
    configuration::{every_mistake, load, store_flags},
    process::{print, run},
};

/// Prints every finding, also where the settings are invalid.
pub(crate) fn diagnose(
    args: &DoctorArgs,
    form: Option<OutputFormat>,
) -> Result<ExitCode, ProcessError> {
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
    let report = run(Some(1), doctor::examine(&settings, &SystemClock))??;
    show(&report)?;
    Ok(if report.has_failure() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
