//! The limits of accounts: read from the settings, and reloaded.

use trestle_runtime::task::Task;
use trestle_service::quota::LiveQuotas;

use crate::{
    reload::{self, SettingsSource},
    settings::Settings,
};

/// A task that reloads `quotas`, at first those of `settings`, when the settings change.
pub fn watch(quotas: &LiveQuotas, settings: &Settings, source: SettingsSource) -> Task {
    let (quotas, current) = (quotas.clone(), settings.quotas.quotas());
    let reread = move || source.read().map(|now| now.quotas.quotas());
    reload::task("quotas", current, reread, move |new| quotas.replace(new.clone()))
}
