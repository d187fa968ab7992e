//! `trestle healthcheck`.

use std::process::ExitCode;

use trestle::{args::HealthcheckArgs, healthcheck, process_error::ProcessError};
use trestle_command::{endpoint::called_address, output::report_lines};

use super::{
    configuration::sources,
    process::{print, run},
};

pub(crate) fn healthcheck(args: HealthcheckArgs, is_quiet: bool) -> Result<ExitCode, ProcessError> {
    let endpoint = match args.endpoint {
        Some(endpoint) => endpoint,
        None => healthcheck::endpoint(sources(args.config.file().as_deref(), Vec::new()))?,
    };
    let checked = run(Some(1), healthcheck::check(&endpoint, &args.tls, args.service))?;
    Ok(match checked {
        Ok(limited) => {
            if !is_quiet {
                // Contexts of client commands do not count: the server is often another one.
                print(&format!("serving at {}\n", called_address(&endpoint, &args.tls)))?;
            }
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
