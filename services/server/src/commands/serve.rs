//! `trestle serve`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use trestle::{
    args::ServeArgs, descriptors::DescriptorPlan, process_error::ProcessError,
    reload::SettingsSource, serve::Server,
};

use super::{
    configuration::{every_mistake, load, load_checked},
    process::{print, run_and_end, write_for_owner},
};

/// How long remaining work after a shutdown may take, such as a blocking step. If
/// that prevents the store from closing, it is opened as after a crash. The last flush or compaction is
/// always waited for.
const CLOSES_WITHIN: Duration = Duration::from_secs(1);

pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, ProcessError> {
    let file = args.config.file();
    let mut settings = load_checked(file.as_deref(), &args.flags())?;
    write_for_owner();
    let descriptors = DescriptorPlan::for_process(&settings)?;
    let configured =
        std::mem::replace(&mut settings.limits.connections_max, descriptors.connections_max);
    let threads = settings.server.worker_threads;
    let source = settings_source(file, args.flags(), (configured, descriptors.connections_max));
    let server = Server { settings, descriptors, source, backup: args.mount.clone() };
    run_and_end(threads, CLOSES_WITHIN, server.serve(print))?.map(|()| ExitCode::SUCCESS)
}

/// The settings of a running server, with the connections that the descriptors allow in place of those that were
/// configured at its start: another number is a change.
fn settings_source(
    file: Option<PathBuf>,
    flags: Vec<(String, String)>,
    (configured, allowed): (usize, usize),
) -> SettingsSource {
    let (of_mistakes, checked) = (file.clone(), flags.clone());
    let source = SettingsSource::new(file.clone(), move || {
        let mut settings = load(file.as_deref(), flags.clone())?;
        let connections = &mut settings.limits.connections_max;
        if *connections == configured {
            *connections = allowed;
        }
        Ok(settings)
    });
    source
        .with_mistakes(move || every_mistake(of_mistakes.as_deref(), &checked).unwrap_or_default())
}
