//! What the command prints about itself: its version, completions of shells, man pages.

use std::{fs, path::Path, process::ExitCode};

use clap_complete::Shell;
use trestle::{
    args::{Cli, shared_options},
    process_error::ProcessError,
};
use trestle_command::output::OutputFormat;
use trestle_runtime::build;

use super::process::print;

pub(crate) fn print_version(form: Option<OutputFormat>) -> Result<ExitCode, ProcessError> {
    let (version, revision) = (build::VERSION, build::REVISION);
    print(&match form {
        Some(OutputFormat::Json | OutputFormat::Jsonl) => {
            format!("{}\n", serde_json::json!({ "version": version, "revision": revision }))
        }
        _ => format!("trestle {}\n", build::DESCRIPTION),
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn print_options() -> Result<ExitCode, ProcessError> {
    print(&shared_options())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn print_completions(shell: Shell) -> Result<ExitCode, ProcessError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::offered(), "trestle", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn write_man_pages(folder: &Path, is_quiet: bool) -> Result<ExitCode, ProcessError> {
    let written = fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::documented(), folder));
    let folder_name = folder.display().to_string();
    written.map_err(|source| ProcessError::ManPages { folder: folder_name, source })?;
    if !is_quiet {
        print(&format!("wrote the man pages to {}\n", folder.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
