//! Loads the settings of a command, and reports every mistake in them.

use std::path::Path;

use trestle::{
    args::ServeArgs, named_files, process_error::ProcessError, roles::ROLES, settings::Settings,
};
use trestle_command::errors::without_number;
use trestle_runtime::config::{self, ConfigError, Sources};

use super::process::report;

pub(crate) fn load(
    file: Option<&Path>,
    flags: Vec<(String, String)>,
) -> Result<Settings, ProcessError> {
    Ok(Settings::load(ROLES, sources(file, flags))?)
}

pub(crate) fn sources(file: Option<&Path>, flags: Vec<(String, String)>) -> Sources<'_> {
    Sources { file, environment: config::environment(), flags, ..Sources::default() }
}

/// The settings of a store that is used without a server.
pub(crate) fn load_store(
    file: Option<&Path>,
    data_dir: Option<&Path>,
) -> Result<Settings, ProcessError> {
    let settings = load_or_report(file, &store_flags(data_dir))?;
    if settings.storage.ephemeral {
        let rule = "true, so no store is on disk: set --data-dir to the directory of one";
        let problems = vec![format!("storage.ephemeral: {rule}")];
        return Err(ConfigError::Invalid { problems }.into());
    }
    Ok(settings)
}

/// A directory on the command line is that of a store, whatever a file or a variable sets.
pub(crate) fn store_flags(data_dir: Option<&Path>) -> Vec<(String, String)> {
    let data_dir = data_dir.map(Path::to_owned);
    ServeArgs { data_dir, ..ServeArgs::default() }.flags()
}

/// Settings whose files can be used; else every mistake is reported.
pub(crate) fn load_checked(
    file: Option<&Path>,
    flags: &[(String, String)],
) -> Result<Settings, ProcessError> {
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
pub(crate) fn load_or_report(
    file: Option<&Path>,
    flags: &[(String, String)],
) -> Result<Settings, ProcessError> {
    load(file, flags.to_vec()).map_err(|error| match every_mistake(file, flags) {
        Some(mistakes) => rejected(&mistakes, file),
        None => error,
    })
}

/// The mistakes, unless the file can be read only once, as a pipe.
pub(crate) fn every_mistake(
    file: Option<&Path>,
    flags: &[(String, String)],
) -> Option<Vec<String>> {
    let is_repeatable = file.is_none_or(|file| file.is_file() || file.is_dir() || !file.exists());
    let mistakes = is_repeatable.then(|| mistakes(file, flags).ok()).flatten()?;
    Some(mistakes).filter(|mistakes| !mistakes.is_empty())
}

/// Every mistake in the configuration, each with its place, without the numbers of errors of the system.
fn mistakes(file: Option<&Path>, flags: &[(String, String)]) -> Result<Vec<String>, ProcessError> {
    mistakes_with(file, flags, named_files::problems)
}

/// The same, where `problems` returns those of the files that the settings name.
pub(crate) fn mistakes_with(
    file: Option<&Path>,
    flags: &[(String, String)],
    problems: impl FnOnce(&Settings) -> Vec<String>,
) -> Result<Vec<String>, ProcessError> {
    let problems = Settings::problems_of(ROLES, sources(file, flags.to_vec()), problems)?;
    Ok(problems.into_iter().map(without_number).collect())
}

/// Reports mistakes; the error that ends the process.
pub(crate) fn rejected(mistakes: &[String], file: Option<&Path>) -> ProcessError {
    mistakes.iter().for_each(|mistake| report(mistake));
    // A mistake at a flag or a variable is not of the file.
    let is_elsewhere = |it: &String| ["--", "TRESTLE__", "OTEL_"].iter().any(|p| it.starts_with(p));
    let file = file.filter(|_| !mistakes.iter().all(is_elsewhere));
    let file = file.map(|file| file.display().to_string());
    ProcessError::Check { problems: mistakes.len(), file }
}

pub(crate) fn file_name(file: Option<&Path>) -> String {
    file.map_or_else(|| "no file".to_owned(), |file| file.display().to_string())
}
