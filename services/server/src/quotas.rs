//! The limits of accounts: read from the settings, and reloaded.

use trestle_rpc::quota::LiveQuotas;
use trestle_runtime::task::Task;

use crate::{
    changed_keys::changed,
    reload::{ReloadedKeys, Reloads, SettingsSource},
    settings::{QuotaSettings, Settings},
};

/// A task that reloads `quotas`, at first those of `settings`, when the settings change.
pub fn watch(
    quotas: &LiveQuotas,
    settings: &Settings,
    source: SettingsSource,
    reloads: &Reloads,
) -> Task {
    let (quotas, current) = (quotas.clone(), numbers(settings.quotas.clone()));
    let start = current.clone();
    let reread =
        move || Ok(source.usable().map_or_else(|| start.clone(), |now| numbers(now.quotas)));
    reloads.task("quotas", current, reread, move |old, new| {
        quotas.replace(new.quotas());
        ReloadedKeys::applied(changed("quotas", old, new))
    })
}

/// Without the key that is read at the start only.
fn numbers(settings: QuotaSettings) -> QuotaSettings {
    QuotaSettings { show_partition_keys: false, ..settings }
}
