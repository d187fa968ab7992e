//! The first lines of the log of a server: what runs, with which settings.

use std::time::Duration;

use tracing::info;
use trestle_runtime::build;

use crate::{
    roles::ROLES,
    settings::{DurabilitySetting, Settings, StorageSettings},
    storage,
};

/// What a start did.
pub struct StartReport<'a> {
    /// The configuration file.
    pub config: Option<&'a str>,
    /// The backup that the server shows, if it has no store of its own.
    pub backup: Option<&'a str>,
    /// How long opening the store took.
    pub recovery: Duration,
    /// The line with the listeners.
    pub ready: &'a str,
}

/// Logs what a start did.
pub fn log(settings: &Settings, start: &StartReport<'_>) {
    let StartReport { config, backup, recovery, ready } = *start;
    let storage = &settings.storage;
    let owns_data = settings.owns_data(ROLES);
    let has_store = owns_data && backup.is_none();
    let engine = storage.database().filter(|_| has_store).and_then(Result::ok);
    let data_dir = (has_store && engine.is_none()).then(|| place(storage));
    let engine = engine.map(|address| address.shown());
    let durability = (has_store && !storage.ephemeral && engine.is_none())
        .then(|| durability(storage.durability));
    let recovery_ms = owns_data.then(|| u64::try_from(recovery.as_millis()).unwrap_or(u64::MAX));
    let unused = settings.unused_sections();
    let unused_sections = (!unused.is_empty()).then(|| unused.join(", "));
    info!(
        version = build::VERSION,
        revision = build::REVISION,
        roles = %settings.server.roles,
        config = config.unwrap_or("none"),
        data_dir,
        engine,
        backup,
        durability,
        recovery_ms,
        listeners = ready.trim_start_matches("ready ").trim_end(),
        tls = settings.tls.grpc().is_some(),
        development_account = is_open(settings),
        unused_sections,
        "serving"
    );
}

/// Whether callers without credentials, or with the public key, work in the development account.
fn is_open(settings: &Settings) -> &'static str {
    match settings.has_development_account() {
        true => "on",
        false => "off",
    }
}

fn place(storage: &StorageSettings) -> String {
    match storage.ephemeral {
        true => "none: in memory only".to_owned(),
        false => storage::data_dir(storage),
    }
}

fn durability(setting: DurabilitySetting) -> &'static str {
    match setting {
        DurabilitySetting::Always => "always",
        DurabilitySetting::Interval => "interval",
        DurabilitySetting::Os => "os",
    }
}
