//! Settings: one file for each section. Everything in it is plain data; live parts are passed beside
//! it.

mod accounts;
mod backup;
mod gateway;
mod issuers;
mod limits;
mod per_role;
mod quotas;
mod server;
mod storage;
mod tls;

use std::{collections::HashMap, ops::RangeInclusive, sync::LazyLock};

use serde::{Deserialize, Serialize};
use trestle_model::name::AccountName;
use trestle_runtime::{
    config::{self, ConfigError, Exclusion, Sources},
    telemetry::TelemetrySettings,
};

use crate::roles::{BLOB, GATEWAY, LOG, ROLES, RoleSpec, Roles, TABLE};

pub use self::{
    accounts::{AccountSettings, AccountsSettings, SecretSetting},
    backup::BackupSettings,
    gateway::{DevelopmentAccount, EndpointText, GatewaySettings, RoleTlsSettings, ServerName},
    issuers::{IssuerSettings, IssuersSettings},
    limits::LimitSettings,
    per_role::{PerRole, RoleKey},
    quotas::{QuotaNumbers, QuotaSettings},
    server::{Listen, ServerSettings},
    storage::{DurabilitySetting, StorageSettings},
    tls::{ClientAuth, TlsSettings},
};

pub(crate) use self::{
    accounts::{misplaced_key, reachable},
    server::parse_address,
};

/// Variables of the OpenTelemetry standard that set a key of ours.
const FOREIGN: &[(&str, &str)] = &[
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "telemetry.otlp_endpoint"),
    ("OTEL_SERVICE_NAME", "telemetry.service_name"),
];

/// A store in memory has no directory.
const EXCLUSIVE: &[Exclusion<'_>] =
    &[Exclusion { switch: "storage.ephemeral", unused: "storage.data_dir" }];

/// The settings of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Listeners and process.
    pub server: ServerSettings,
    /// The encryption of the listeners.
    pub tls: TlsSettings,
    /// The store.
    pub storage: StorageSettings,
    /// The backups of the store.
    pub backup: BackupSettings,
    /// The accounts.
    #[serde(default)]
    pub accounts: AccountsSettings,
    /// The endpoints of roles that are not in this process.
    pub gateway: GatewaySettings,
    /// The bounds of load.
    pub limits: LimitSettings,
    /// The limits of accounts and partitions.
    pub quotas: QuotaSettings,
    /// Logs, traces and metrics.
    pub telemetry: TelemetrySettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self::defaults(ROLES)
    }
}

impl Settings {
    /// The defaults with these roles.
    #[must_use]
    pub fn defaults(roles: &[RoleSpec]) -> Self {
        Self {
            server: ServerSettings::defaults(roles),
            tls: TlsSettings::default(),
            storage: StorageSettings::default(),
            backup: BackupSettings::default(),
            accounts: AccountsSettings::default(),
            gateway: GatewaySettings::default(),
            limits: LimitSettings::default(),
            quotas: QuotaSettings::default(),
            telemetry: TelemetrySettings::default(),
        }
    }

    /// Settings from their defaults and `sources`, validated, with these roles. The standard
    /// variables of OpenTelemetry count too.
    ///
    /// # Errors
    /// Every kind of [`ConfigError`].
    pub fn load(roles: &[RoleSpec], sources: Sources<'_>) -> Result<Self, ConfigError> {
        let flags = flag_keys(&sources);
        let settings: Self = config::load(&Self::defaults(roles), with_rules(sources))?;
        settings.check(roles)?;
        let problems = settings.server.unserved_flags(&flags);
        if problems.is_empty() { Ok(settings) } else { Err(ConfigError::Invalid { problems }) }
    }

    /// Checks the rules that the types of the values do not express.
    ///
    /// # Errors
    /// [`ConfigError::UnknownKeys`], [`ConfigError::Invalid`] with every problem.
    pub fn check(&self, roles: &[RoleSpec]) -> Result<(), ConfigError> {
        let keys = self.unknown_keys(roles);
        if !keys.is_empty() {
            return Err(ConfigError::UnknownKeys { keys });
        }
        let problems = self.problems(roles);
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid { problems }) }
    }

    /// Every mistake in `sources`, each with its place: unknown keys, malformed values, violated rules, and those of
    /// `files` about the files that well-formed settings name.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn problems_of(
        roles: &[RoleSpec],
        sources: Sources<'_>,
        files: impl FnOnce(&Self) -> Vec<String>,
    ) -> Result<Vec<String>, ConfigError> {
        let flags = flag_keys(&sources);
        config::mistakes(&Self::defaults(roles), with_rules(sources), |settings: &Self| {
            let presumed = settings.with_presumed_roles(roles);
            let unknown = settings.unknown_keys(roles).into_iter();
            unknown
                .map(|key| format!("{key}: unknown key"))
                .chain(settings.problems(roles))
                .chain(presumed.server.unserved_flags(&flags))
                .chain(files(&presumed))
                .collect()
        })
    }

    /// The violated rules, each with its key.
    fn problems(&self, roles: &[RoleSpec]) -> Vec<String> {
        let wrong_roles = self.server.roles.problem(roles);
        let presumed = self.with_presumed_roles(roles);
        let (server, development) = (&presumed.server, self.gateway.development_account);
        // Which accounts a process needs depends on its roles.
        let no_accounts = match wrong_roles {
            None => self.accounts.absence(server, development),
            Some(_) => None,
        };
        let sections = [
            wrong_roles.into_iter().map(|rule| format!("server.roles: {rule}")).collect(),
            server.problems(&self.tls),
            self.tls.problems(),
            self.storage.problems(),
            self.database_problems(server),
            self.backup.problems(&self.storage),
            self.gateway.problems(&server.roles, roles),
            self.accounts.problems(server, development),
            no_accounts.into_iter().collect(),
            self.issuer_problems(server),
            self.limits.problems(),
            self.quotas.problems(),
            self.telemetry.problems(),
        ];
        sections.concat()
    }

    /// What a process cannot do over a database.
    fn database_problems(&self, server: &ServerSettings) -> Vec<String> {
        if self.storage.engine.is_none() {
            return Vec::new();
        }
        let has_objects = [BLOB, LOG].iter().any(|role| server.roles.has(role.name));
        let objects = (self.storage.blob_url.is_none() && has_objects).then_some(
            "storage.blob_url: required with storage.engine and the roles blob and log: objects must be where every \
             process of the database reaches them",
        );
        let backups = self.backup.target().map(|_| {
            "backup.target: cannot be used with storage.engine: back the database up with the tools of PostgreSQL"
        });
        objects.into_iter().chain(backups).map(str::to_owned).collect()
    }

    /// The violated rules of issuers. Processes without the role gateway ignore them, as they do accounts.
    fn issuer_problems(&self, server: &ServerSettings) -> Vec<String> {
        if !server.roles.has(GATEWAY.name) {
            return Vec::new();
        }
        let has_development = self.has_development_account();
        let is_account = |name: &str| {
            let is_development = has_development && name == AccountName::development().as_str();
            is_development || self.accounts.0.contains_key(name)
        };
        self.gateway.issuers.problems(is_account)
    }

    /// The settings with roles that exist. A wrong name may be that of any role: the rules for other settings are then
    /// those of a gateway with every role that has no endpoint, so that it hides no mistake and makes none.
    fn with_presumed_roles(&self, roles: &[RoleSpec]) -> Self {
        let mut presumed = self.clone();
        if self.server.roles.problem(roles).is_some() {
            let is_local = |role: &&RoleSpec| self.gateway.endpoints.get(role.name).is_none();
            let local = roles.iter().filter(is_local).map(|role| role.name.to_owned());
            presumed.server.roles = Roles::Named(local.collect());
        }
        presumed
    }

    /// Those of these roles that the process has, in their order.
    pub fn local<'r>(&self, roles: &'r [RoleSpec]) -> impl Iterator<Item = &'r RoleSpec> {
        roles.iter().filter(|role| self.server.roles.has(role.name))
    }

    /// Whether the process has one of these roles that owns data.
    #[must_use]
    pub fn owns_data(&self, roles: &[RoleSpec]) -> bool {
        self.local(roles).any(RoleSpec::owns_data)
    }

    /// Whether the process has one of these roles that keeps a part of its data in the object store.
    #[must_use]
    pub fn has_objects(&self, roles: &[RoleSpec]) -> bool {
        self.local(roles).any(|role| role.has_objects)
    }

    /// The sections whose settings were changed and have no effect, since this process has no role that uses them. The
    /// data directory does not count: images of containers set it for every role.
    #[must_use]
    pub fn unused_sections(&self) -> Vec<&'static str> {
        let storage =
            StorageSettings { data_dir: self.storage.data_dir.clone(), ..Default::default() };
        let has = |role: RoleSpec| self.server.roles.has(role.name);
        let stores = self.owns_data(ROLES) && self.quotas.bounds_storage();
        let quotas = has(TABLE) || has(GATEWAY) || stores;
        let sections = [
            ("storage", self.owns_data(ROLES), self.storage == storage),
            ("backup", self.owns_data(ROLES), self.backup == BackupSettings::default()),
            ("accounts", has(GATEWAY), self.accounts == AccountsSettings::default()),
            ("gateway", has(GATEWAY), self.gateway == GatewaySettings::default()),
            ("quotas", quotas, self.quotas == QuotaSettings::default()),
        ];
        let unused =
            sections.into_iter().filter(|(_, is_used, is_default)| !is_used && !is_default);
        unused.map(|(section, ..)| section).collect()
    }

    /// Whether a gateway with these settings serves a role: its own, or one in another process.
    #[must_use]
    pub fn serves(&self, role: &str) -> bool {
        self.server.roles.has(role) || self.gateway.endpoints.get(role).is_some()
    }

    /// Keys in sections with keys for each role that belong to no role.
    fn unknown_keys(&self, roles: &[RoleSpec]) -> Vec<String> {
        let names = |has: fn(&&RoleSpec) -> bool| -> Vec<_> {
            roles.iter().filter(has).map(|role| role.name).collect()
        };
        let (edges, services) =
            (names(|role| role.azure.is_some()), names(|role| !role.is_ingress()));
        [
            self.server.azure.unknown(&edges),
            self.gateway.endpoints.unknown(&services),
            self.gateway.tls.server_names.unknown(&services),
        ]
        .concat()
    }
}

/// The sources with what the settings of this process require of them.
fn with_rules(sources: Sources<'_>) -> Sources<'_> {
    Sources { foreign: FOREIGN, exclusive: EXCLUSIVE, range: Some(range_of), ..sources }
}

/// The keys of the set flags.
fn flag_keys(sources: &Sources<'_>) -> Vec<String> {
    sources.flags.iter().map(|(key, _)| key.clone()).collect()
}

/// A number of a section: its key, its value, and its range.
type NumberRule = (&'static str, u64, RangeInclusive<u64>);

/// The range of the number with a key.
fn range_of(key: &str) -> Option<RangeInclusive<u64>> {
    static RANGES: LazyLock<HashMap<String, RangeInclusive<u64>>> = LazyLock::new(|| {
        let settings = Settings::default();
        let sections = [
            ("server", settings.server.numbers().to_vec()),
            ("storage", settings.storage.numbers().to_vec()),
            ("backup", settings.backup.numbers().to_vec()),
            ("gateway", settings.gateway.numbers().to_vec()),
            ("limits", settings.limits.numbers().to_vec()),
            ("quotas", QuotaNumbers::ranges().to_vec()),
            ("telemetry", vec![("metrics_every_seconds", 1, 1..=u64::MAX)]),
        ];
        let ranges = sections.into_iter().flat_map(|(section, numbers)| {
            let key = move |(name, _, range)| (format!("{section}.{name}"), range);
            numbers.into_iter().map(key)
        });
        ranges.collect()
    });
    let of_account = || {
        let (_, name) = key.strip_prefix("quotas.accounts.")?.split_once('.')?;
        RANGES.get(&format!("quotas.{name}"))
    };
    RANGES.get(key).or_else(of_account).cloned()
}

/// The problems of the numbers of a section that are not in their ranges.
fn outside(section: &str, rules: impl IntoIterator<Item = NumberRule>) -> Vec<String> {
    let problem = |(key, value, range): NumberRule| {
        let rule = format!("must be {}", config::bounds(key, &range));
        (!range.contains(&value)).then(|| format!("{section}.{key}: {rule}: value=`{value}`"))
    };
    rules.into_iter().filter_map(problem).collect()
}

/// A number in the text of a rule.
fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
