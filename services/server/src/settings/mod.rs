//! What an operator chooses: one file for each section. Everything here is plain data: live things
//! are passed beside it.

mod accounts;
mod gateway;
mod limits;
mod quotas;
mod server;
mod storage;
mod tls;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use trestle_runtime::{
    config::{self, ConfigError, Sources},
    telemetry::TelemetrySettings,
};

pub use self::{
    accounts::{AccountSettings, AccountsSettings, Secret},
    gateway::{DevelopmentAccount, GatewaySettings, RoleTlsSettings},
    limits::LimitSettings,
    quotas::{QuotaNumbers, QuotaSettings},
    server::{Listen, ServerSettings},
    storage::{Durability, StorageSettings},
    tls::{AskClients, TlsSettings},
};

pub(crate) use self::accounts::has_development;

/// Variables of the OpenTelemetry standard that set a key of ours.
const FOREIGN: &[(&str, &str)] = &[
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "telemetry.otlp_endpoint"),
    ("OTEL_SERVICE_NAME", "telemetry.service_name"),
];

/// The settings of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Listeners and process.
    pub server: ServerSettings,
    /// The encryption of the listeners.
    pub tls: TlsSettings,
    /// The store.
    pub storage: StorageSettings,
    /// Who may call.
    #[serde(default)]
    pub accounts: AccountsSettings,
    /// Where the gateway finds what is not in this process.
    pub gateway: GatewaySettings,
    /// The bounds of load.
    pub limits: LimitSettings,
    /// How much work an account and a partition may ask for.
    pub quotas: QuotaSettings,
    /// Logs, traces and metrics.
    pub telemetry: TelemetrySettings,
}

impl Settings {
    /// Settings out of their defaults and `sources`, checked. The standard variables of
    /// OpenTelemetry count too.
    ///
    /// # Errors
    /// Every kind of [`ConfigError`].
    pub fn load(sources: Sources<'_>) -> Result<Self, ConfigError> {
        let sources = Sources { foreign: FOREIGN, ..sources };
        let settings: Self = config::load(&Self::default(), sources)?;
        settings.check()?;
        Ok(settings)
    }

    /// Checks what the form of the values does not say.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with every problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        let sections = [
            self.server.problems(&self.tls),
            self.tls.problems(),
            self.storage.problems(),
            self.gateway.problems(&self.server.roles),
            self.accounts.problems(&self.server, self.gateway.development_account),
            self.limits.problems(),
            self.quotas.problems(),
            self.telemetry.problems(),
        ];
        let problems = sections.concat();
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid { problems }) }
    }
}

/// A number of a section: its key, what it is, and its range.
type Rule = (&'static str, u64, RangeInclusive<u64>);

/// The problems of the numbers of a section that are not in their ranges.
fn outside(section: &str, rules: impl IntoIterator<Item = Rule>) -> Vec<String> {
    let problem = |(key, value, range): Rule| {
        let rule = format!("must be {} to {}", range.start(), range.end());
        (!range.contains(&value)).then(|| format!("{section}.{key}: {rule}: value=`{value}`"))
    };
    rules.into_iter().filter_map(problem).collect()
}

/// A number as a rule has it.
fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
