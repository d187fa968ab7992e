//! The command `doctor`: checks the machine and the surroundings of a server with these settings, with a hint for each
//! finding. Nothing is changed, but a file of the data directory that is removed again.

mod accounts;
mod certificates;
mod clock;
mod database;
mod disk;
mod finding;
mod reach;

pub use self::finding::{DoctorFinding, DoctorReport, Severity};

use futures::future::LocalBoxFuture;
use trestle_model::time::{Clock, Ticks};

use crate::{
    descriptors::DescriptorPlan, process_error::ProcessError, roles::ROLES, settings::Settings,
    storage,
};

/// Certificates of these settings that have expired, and those that expire within two weeks, each with its key. Blocks.
#[must_use]
pub fn expiries(settings: &Settings, now: Ticks) -> (Vec<String>, Vec<String>) {
    certificates::expiries(settings, now)
}

/// Checks everything that these settings use. The disk is measured for some seconds.
///
/// # Errors
/// The runtime ends, or [`ProcessError::Restoring`]: nothing else is of interest then.
pub fn examine<'a>(
    settings: &'a Settings,
    clock: &'static dyn Clock,
) -> LocalBoxFuture<'a, Result<DoctorReport, ProcessError>> {
    Box::pin(examine_all(settings, clock))
}

async fn examine_all(
    settings: &Settings,
    clock: &'static dyn Clock,
) -> Result<DoctorReport, ProcessError> {
    let has_store = settings.owns_data(ROLES)
        && !settings.storage.ephemeral
        && settings.storage.engine.is_none();
    if has_store {
        storage::check_restored(&settings.storage)?;
    }
    let mut findings = vec![DoctorFinding::ok("configuration", "valid")];
    findings.extend(accounts::check(settings));
    findings.push(descriptors(DescriptorPlan::for_process(settings)));
    let owned = settings.clone();
    let blocking = move || {
        let storage = &owned.storage;
        let mut findings = vec![clock::check(clock, &storage.data_dir)];
        if has_store {
            findings.extend(disk::check(storage));
        }
        findings.extend(certificates::check(&owned, clock.now()));
        findings
    };
    let local = tokio::task::spawn_blocking(blocking).await;
    findings.extend(local.map_err(|error| ProcessError::Process(error.into()))?);
    findings.extend(database::check(settings).await);
    findings.extend(reach::check_roles(settings).await);
    findings.extend(reach::check_objects(settings).await);
    Ok(DoctorReport(findings))
}

/// The report on settings that no server starts with: a finding for each mistake.
#[must_use]
pub fn rejected(mistakes: Vec<String>) -> DoctorReport {
    let remedy = "correct what is named; docs/configuration.md has every key";
    let finding = |mistake| DoctorFinding::failure("configuration", mistake, remedy);
    DoctorReport(mistakes.into_iter().map(finding).collect())
}

fn descriptors(plan: Result<DescriptorPlan, ProcessError>) -> DoctorFinding {
    const CHECK: &str = "limits";
    match plan {
        Err(error) => DoctorFinding::failure(
            CHECK,
            error.to_string(),
            "raise LimitNOFILE of the unit, or ulimit -Hn",
        ),
        Ok(plan) if plan.is_short() => DoctorFinding::warning(
            CHECK,
            format!("few file descriptors: {plan}"),
            "raise LimitNOFILE of the unit, or ulimit -Hn: fewer connections are accepted than the settings say",
        ),
        Ok(plan) => DoctorFinding::ok(CHECK, format!("file descriptors: {plan}")),
    }
}
