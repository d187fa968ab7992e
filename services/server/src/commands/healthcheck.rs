//! `trestle healthcheck`.

use std::process::ExitCode;

use trestle::{args::HealthcheckArgs, healthcheck, process_error::ProcessError};
use trestle_command::output::report_lines;

use super::{
    configuration::sources,
    process::{print, run},
};

pub(crate) fn healthcheck(args: HealthcheckArgs) -> Result<ExitCode, ProcessError> {
    let endpoint = match args.endpoint {
        Some(endpoint) => endpoint,
        None => healthcheck::endpoint(sources(args.config.file().as_deref(), Vec::new()))?,
    };
    let checked = run(Some(1), healthcheck::check(&endpoint, &args.tls, args.service))?;
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
