//! The keys of settings that differ between two versions of a configuration file, never their values.

use std::collections::BTreeMap;

use opentelemetry::metrics::Meter;
use serde::Serialize;
use serde_json::Value;
use trestle_runtime::task::Task;

use crate::{
    reload::{ReloadedKeys, Reloads, SettingsSource},
    settings::{AccountsSettings, IssuersSettings, Settings},
};

/// The keys of `section` that `old` and `new` have with different values, or only one of them has.
pub(crate) fn changed<T: Serialize>(section: &str, old: &T, new: &T) -> Vec<String> {
    let (old, new) = (values(section, old), values(section, new));
    let differs = |key: &&String| old.get(*key) != new.get(*key);
    let mut keys: Vec<_> = old.keys().chain(new.keys()).filter(differs).cloned().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The values of a section, by their full keys.
fn values<T: Serialize>(section: &str, settings: &T) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    collect(section.to_owned(), serde_json::to_value(settings).unwrap_or_default(), &mut values);
    values
}

fn collect(key: String, value: Value, values: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let key = if key.is_empty() { name } else { format!("{key}.{name}") };
                collect(key, value, values);
            }
        }
        value => {
            values.insert(key, value);
        }
    }
}

/// The settings that are read at the start only. Accounts, with their issuers, and quotas have tasks of their own.
fn read_at_start(mut settings: Settings) -> Settings {
    settings.accounts = AccountsSettings::default();
    settings.gateway.issuers = IssuersSettings::default();
    let quotas = std::mem::take(&mut settings.quotas);
    settings.quotas.show_partition_keys = quotas.show_partition_keys;
    settings
}

/// What the log has where every change that needed a restart is undone.
const UNDONE: &str = "every change that needed a restart is undone";

/// A task that logs which settings differ from those that run, and apply at the next start only. It is the one that
/// reports settings that cannot be used: a mistake is one line of the log, however many tasks read the settings.
pub(crate) fn watch(settings: &Settings, source: SettingsSource, meter: &Meter) -> Task {
    let running = read_at_start(settings.clone());
    let read = move || source.read().map(read_at_start);
    let current = running.clone();
    let apply = move |_: &Settings, new: &Settings| compared(&running, new);
    Reloads::new(meter).task("settings", current, read, apply)
}

/// How changed settings differ from those that run.
fn compared(running: &Settings, new: &Settings) -> ReloadedKeys {
    match changed("", running, new) {
        none if none.is_empty() => ReloadedKeys::applied(vec![UNDONE.to_owned()]),
        needs_restart => ReloadedKeys { applied: Vec::new(), needs_restart },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::IssuerSettings;

    #[test]
    fn names_the_keys_that_changed_and_no_values() {
        let old = Settings::default();
        let mut new = old.clone();
        new.limits.calls_max += 1;
        new.storage.durability = crate::settings::DurabilitySetting::Os;
        new.tls.cert_file = Some("a.pem".into());

        let keys = changed("", &old, &new);

        assert_eq!(keys, ["limits.calls_max", "storage.durability", "tls.cert_file"]);
        assert!(changed("", &old, &old).is_empty());
    }

    #[test]
    fn changes_are_those_from_what_runs_not_from_the_last_file() {
        let running = Settings::default();
        let (mut first, mut second) = (running.clone(), running.clone());
        first.limits.calls_max += 1;
        second.limits.calls_max += 1;
        second.storage.cache_bytes += 1;

        let keys = |new| compared(&running, new).needs_restart;

        assert_eq!(keys(&first), ["limits.calls_max"]);
        assert_eq!(keys(&second), ["limits.calls_max", "storage.cache_bytes"]);
        assert_eq!(keys(&first), ["limits.calls_max"]);
        assert_eq!(compared(&running, &running), ReloadedKeys::applied(vec![UNDONE.to_owned()]));
    }

    #[test]
    fn what_is_reloaded_is_not_read_at_the_start_only() {
        let old = Settings::default();
        let mut new = old.clone();
        new.quotas.account_entities_per_second = Some(1);
        new.gateway.issuers.0.insert("corp".to_owned(), IssuerSettings::default());

        assert_eq!(read_at_start(old.clone()), read_at_start(new.clone()));
        assert_eq!(
            changed("quotas", &old.quotas, &new.quotas),
            ["quotas.account_entities_per_second"]
        );
        new.quotas.show_partition_keys = true;
        assert_ne!(read_at_start(old), read_at_start(new));
    }
}
