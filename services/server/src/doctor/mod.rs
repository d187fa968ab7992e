//! The command `doctor`: checks the machine and the surroundings of a server with these settings, and says what to do.
//! Nothing is changed, but a file of the data directory that is removed again.

mod certificates;
mod clock;
mod disk;
mod finding;
mod reach;

pub use self::finding::{Finding, Report, Severity};

use trestle_service::clock::Clock;

use crate::{
    descriptors::DescriptorPlan, process_error::ProcessError, roles::ROLES, settings::Settings,
};

/// Checks everything that these settings use. The disk is measured for some seconds.
///
/// # Errors
/// The runtime ends.
pub async fn examine(
    settings: &Settings,
    clock: &'static dyn Clock,
) -> Result<Report, ProcessError> {
    let mut findings = vec![Finding::ok("configuration", "valid")];
    findings.push(descriptors(DescriptorPlan::for_process(settings)));
    let owned = settings.clone();
    let blocking = move || {
        let storage = &owned.storage;
        let mut findings = vec![clock::check(clock, &storage.data_dir)];
        if owned.owns_data(ROLES) && !storage.ephemeral {
            findings.extend(disk::check(storage));
        }
        findings.extend(certificates::check(&owned, clock.now()));
        findings
    };
    let local = tokio::task::spawn_blocking(blocking).await;
    findings.extend(local.map_err(|error| ProcessError::Process(error.into()))?);
    findings.extend(reach::check_roles(settings).await);
    findings.extend(reach::check_objects(settings).await);
    Ok(Report(findings))
}

/// The report on settings that no server starts with.
#[must_use]
pub fn rejected(error: &ProcessError) -> Report {
    let remedy = "correct what is named; docs/configuration.md has every key";
    Report(vec![Finding::failure("configuration", error.chain(), remedy)])
}

fn descriptors(plan: Result<DescriptorPlan, ProcessError>) -> Finding {
    const CHECK: &str = "limits";
    match plan {
        Err(error) => Finding::failure(
            CHECK,
            error.to_string(),
            "raise LimitNOFILE of the unit, or ulimit -Hn",
        ),
        Ok(plan) if plan.is_short() => Finding::warning(
            CHECK,
            format!("few file descriptors: {plan}"),
            "raise LimitNOFILE of the unit, or ulimit -Hn: fewer connections are accepted than the settings say",
        ),
        Ok(plan) => Finding::ok(CHECK, format!("file descriptors: {plan}")),
    }
}
