//! The accounts.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, Serializer};
use trestle_identity::account::AccountKey;
use trestle_model::name::AccountName;

use super::{DevelopmentAccount, ServerSettings, Settings};
use crate::{published_keys, roles::GATEWAY};

/// Shortest text that may be a key, in bytes. Keys of Azure Storage have 88.
const KEY_TEXT_MIN: usize = 40;
/// Most accounts of a process.
const ACCOUNTS_MAX: usize = 1024;

/// The sections `accounts.NAME`. Default: none. Processes without the role gateway ignore
/// them: credentials end at the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccountsSettings(pub BTreeMap<String, AccountSettings>);

/// A section `accounts.NAME`: one key or two, each set in the settings or in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountSettings {
    /// A key, in base64. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key1: Option<SecretSetting>,
    /// A file with a key, in base64. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key1_file: Option<PathBuf>,
    /// A second key, as good as the first. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key2: Option<SecretSetting>,
    /// A file with a second key. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key2_file: Option<PathBuf>,
    /// Whether the account is disabled: its credentials are rejected. Default: no.
    pub disabled: bool,
    /// Whether callers without credentials may read its containers that have a public access level. Default: no.
    pub allow_blob_public_access: bool,
}

/// A text that is never shown in logs or in printed settings.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SecretSetting(pub String);

/// Printed instead of a secret. Not base64, so that it is never a valid key.
const REDACTED: &str = "(redacted)";

impl fmt::Debug for SecretSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for SecretSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl AccountSettings {
    /// The keys: their names and sources.
    pub fn keys(
        &self,
    ) -> impl Iterator<Item = (&'static str, Option<&SecretSetting>, Option<&PathBuf>)> {
        let keys = [
            ("key1", self.key1.as_ref(), self.key1_file.as_ref()),
            ("key2", self.key2.as_ref(), self.key2_file.as_ref()),
        ];
        keys.into_iter().filter(|(_, text, file)| text.is_some() || file.is_some())
    }

    /// The problems of keys in place of paths, in a process with any role: printed settings have paths.
    fn misplaced(&self, account: &str) -> Vec<String> {
        let files = self.keys().filter_map(|(key, _, file)| Some((key, misplaced_key(file?)?)));
        files.map(|(key, rule)| format!("accounts.{account}.{key}_file: {rule}")).collect()
    }

    fn problems(&self, account: &str) -> Vec<String> {
        let mut problems = Vec::new();
        let mut problem = |key: &str, rule: &str| {
            problems.push(format!("accounts.{account}.{key}: {rule}"));
        };
        if self.keys().next().is_none() {
            problem("key1", "required, or key1_file");
        }
        for (key, text, file) in self.keys() {
            if text.is_some() && file.is_some() {
                problem(key, &format!("must not be set together with {key}_file"));
            }
            match text.map(|text| AccountKey::decode(&text.0)) {
                Some(Err(error)) => problem(key, &error.to_string()),
                Some(Ok(decoded)) => {
                    if let Some(rule) = published_keys::violation(&decoded) {
                        problem(key, rule);
                    }
                }
                None => {}
            }
        }
        problems
    }
}

impl AccountsSettings {
    /// The problems of the sections, each with its key; never with a value.
    pub(super) fn problems(
        &self,
        server: &ServerSettings,
        development: DevelopmentAccount,
    ) -> Vec<String> {
        let misplaced = self.0.iter().flat_map(|(name, account)| account.misplaced(name));
        let mut problems: Vec<_> = misplaced.collect();
        if !server.roles.has(GATEWAY.name) {
            return problems;
        }
        if self.0.len() > ACCOUNTS_MAX {
            problems.push(format!("accounts: must be at most {ACCOUNTS_MAX}"));
        }
        let own_name = AccountName::development();
        for (name, account) in &self.0 {
            if AccountName::parse(name).is_none() {
                let rule = "the name must be 3 to 24 lower-case letters and digits";
                problems.push(format!("accounts.{name}: {rule}"));
            }
            if name == own_name.as_str() && development != DevelopmentAccount::Off {
                problems.push(format!(
                    "accounts.{name}: is the development account, which has its key already; to \
                     give it another one set gateway.development_account = \"off\""
                ));
            }
            problems.extend(account.problems(name));
        }
        problems
    }

    /// Whether the development account exists.
    fn has_development(&self, server: &ServerSettings, development: DevelopmentAccount) -> bool {
        match development {
            DevelopmentAccount::Auto => self.0.is_empty() && reachable(server).is_empty(),
            DevelopmentAccount::Loopback => reachable(server).is_empty(),
            DevelopmentAccount::Off => false,
            DevelopmentAccount::Anywhere => true,
        }
    }

    /// The problem that a gateway has no account at all.
    pub(super) fn absence(
        &self,
        server: &ServerSettings,
        development: DevelopmentAccount,
    ) -> Option<String> {
        let is_needed =
            server.roles.has(GATEWAY.name) && !self.has_development(server, development);
        if !is_needed || !self.0.is_empty() {
            return None;
        }
        Some(match development {
            DevelopmentAccount::Off => {
                "accounts: none, so no client could call, since the development account is off; add \
                 accounts.NAME with key1_file"
                    .to_owned()
            }
            DevelopmentAccount::Auto
            | DevelopmentAccount::Loopback
            | DevelopmentAccount::Anywhere => format!(
                "accounts: none, so no client could call, since the development account, whose key is \
                 public, exists only where every listener for calls is on loopback; add accounts.NAME with \
                 key1_file, or allow the development account to \
                 all clients with gateway.development_account = \"anywhere\": {}",
                reachable(server).join(", ")
            ),
        })
    }
}

impl Settings {
    /// Whether this process is a gateway with the development account.
    #[must_use]
    pub fn has_development_account(&self) -> bool {
        let is_gateway = self.server.roles.has(GATEWAY.name);
        is_gateway && self.accounts.has_development(&self.server, self.gateway.development_account)
    }
}

/// The rule that the path of a key file violates which seems to be a key itself: there is no such file, and it is as
/// long as one, and in base64 with letters of both cases and digits, or part of a connection string. A path has rarely
/// all of that, and then only its text is missing in the error.
pub(crate) fn misplaced_key(file: &Path) -> Option<&'static str> {
    let text = file.to_string_lossy();
    let is_base64 = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=-_\r\n ".contains(&b));
    let has = |is_kind: fn(&u8) -> bool| text.as_bytes().iter().any(is_kind);
    let is_mixed =
        has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    let is_key = text.len() >= KEY_TEXT_MIN && is_base64 && is_mixed;
    let is_connection = text.to_ascii_lowercase().contains("accountkey=");
    let is_misplaced = (is_key || is_connection) && !file.exists();
    is_misplaced.then_some("must be the path of a file, and seems to be a key, which is not shown")
}

/// The listeners for calls that are not on loopback: key and address. One is enough to expose a public
/// key.
pub(crate) fn reachable(server: &ServerSettings) -> Vec<String> {
    let calls = server.calls().into_iter();
    let reachable = calls.filter(|(_, address)| !address.ip().to_canonical().is_loopback());
    reachable.map(|(key, address)| format!("{key}=`{address}`")).collect()
}
