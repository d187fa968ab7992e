//! The limits of accounts: out of the settings, again and again.

use trestle_runtime::task::Task;
use trestle_service::quota::LiveQuotas;

use crate::{failure::Failure, reload, settings::Settings};

/// A task that keeps `quotas`, which are those of `settings` at first, up to date with the settings
/// that `load` reads.
pub fn watch(
    quotas: &LiveQuotas,
    settings: &Settings,
    load: impl Fn() -> Result<Settings, Failure> + Send + 'static,
) -> Task {
    let (quotas, current) = (quotas.clone(), settings.quotas.quotas());
    let reread = move || load().map(|now| now.quotas.quotas()).map_err(|failure| failure.chain());
    reload::task("quotas", current, reread, move |new| quotas.replace(new.clone()))
}
