//! The accounts of a process, and the issuers of tokens for them: read from its settings and key files, and reloaded.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read as _,
    path::Path,
    time::Duration,
};

use trestle_identity::{
    account::{Account, AccountKey, AccountSet, Accounts},
    bearer::{Issuer, Issuers, JWKS_BYTES_MAX, KeyMisses, PublicKeys, RoleValues},
};
use trestle_model::name::AccountName;
use trestle_runtime::{config::ConfigError, task::Task};

use crate::{
    key_sets::KeySets,
    published_keys,
    reload::{ReloadedKeys, Reloads, SettingsSource},
    roles::GATEWAY,
    settings::{AccountSettings, DevelopmentAccount, IssuerSettings, Settings, misplaced_key},
};

/// Longest key file that is read, in bytes; a key of the greatest length has less than 700.
const KEY_FILE_BYTES_MAX: u64 = 4096;

/// The accounts of the settings, and the development account where it exists. None for a process
/// without the role gateway. Blocks while key files are read.
///
/// # Errors
/// Every key that cannot be read, without its content.
pub(crate) fn read(settings: &Settings, key_sets: &KeySets) -> Result<AccountSet, ConfigError> {
    if !settings.server.roles.has(GATEWAY.name) {
        return Ok(AccountSet::default());
    }
    let mut problems = Vec::new();
    let mut accounts = Vec::new();
    if settings.has_development_account() {
        accounts.push(Account::development());
    }
    for (name, section) in &settings.accounts.0 {
        let account = account(name, section, &mut problems);
        accounts.extend(account);
    }
    let mut issuers = Vec::new();
    for (name, section) in &settings.gateway.issuers.0 {
        match issuer(name, section, key_sets) {
            Ok(issuer) => issuers.push(issuer),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        let accounts: AccountSet = accounts.into_iter().collect();
        Ok(accounts.with_issuers(Issuers::new(issuers)))
    } else {
        Err(ConfigError::Invalid { problems })
    }
}

fn account(name: &str, section: &AccountSettings, problems: &mut Vec<String>) -> Option<Account> {
    let mut keys = Vec::new();
    for (key, text, file) in section.keys() {
        let decoded = match (text, file) {
            (Some(text), _) => AccountKey::decode(&text.0)
                .map_err(|error| format!("accounts.{name}.{key}: {error}")),
            (None, Some(file)) => key_in(name, key, file),
            (None, None) => continue,
        };
        match decoded {
            Ok(key) => keys.push(key),
            Err(problem) => problems.push(problem),
        }
    }
    let name = AccountName::parse(name)?;
    let allows_public_access = section.allow_blob_public_access;
    Some(Account { name, keys, is_disabled: section.disabled, allows_public_access })
}

fn issuer(name: &str, section: &IssuerSettings, key_sets: &KeySets) -> Result<Issuer, String> {
    let (keys, misses) = match &section.jwks_url {
        Some(url) => key_sets.of(url),
        None => {
            let file = section.jwks_file.clone().unwrap_or_default();
            let keys = public_keys_in(&file)
                .map_err(|problem| format!("gateway.issuers.{name}.jwks_file: {problem}"))?;
            (keys, KeyMisses::default())
        }
    };
    Ok(Issuer {
        name: name.to_owned(),
        issuer: section.issuer.clone(),
        audience: section.audience.clone(),
        keys,
        misses,
        clock_skew: Duration::from_secs(section.clock_skew_seconds),
        accounts: section.account_names().filter_map(AccountName::parse).collect(),
        role_claim: section.role_claim.clone(),
        roles: RoleValues {
            delegator: section.delegator.clone(),
            reader: section.reader.clone(),
            contributor: section.contributor.clone(),
            owner: section.owner.clone(),
        },
    })
}

fn public_keys_in(path: &Path) -> Result<PublicKeys, String> {
    let fails = |problem: &dyn std::fmt::Display| format!("{problem}: file=`{}`", path.display());
    let mut document = Vec::new();
    let file = fs::File::open(path).map_err(|error| fails(&error))?;
    // One byte more, so that a longer file is rejected and not cut off.
    let bytes_max = u64::try_from(JWKS_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    file.take(bytes_max).read_to_end(&mut document).map_err(|error| fails(&error))?;
    PublicKeys::parse(&document).map_err(|error| fails(&error))
}

/// The problems of the key files alone, as [`read`] reports them. Blocks.
pub(crate) fn key_file_problems(settings: &Settings) -> Vec<String> {
    if !settings.server.roles.has(GATEWAY.name) {
        return Vec::new();
    }
    let files = settings.accounts.0.iter().flat_map(|(name, section)| {
        section.keys().filter_map(move |(key, _, file)| key_in(name, key, file?).err())
    });
    let issuers = settings.gateway.issuers.0.iter();
    let issuers = issuers.filter(|(_, section)| section.jwks_file.is_some());
    let issuers =
        issuers.filter_map(|(name, section)| issuer(name, section, &KeySets::default()).err());
    files.chain(issuers).collect()
}

fn key_in(account: &str, key: &str, file: &Path) -> Result<AccountKey, String> {
    key_of(file).map_err(|problem| format!("accounts.{account}.{key}_file: {problem}"))
}

fn key_of(path: &Path) -> Result<AccountKey, String> {
    if let Some(rule) = misplaced_key(path) {
        return Err(rule.to_owned());
    }
    let fails = |problem: &dyn std::fmt::Display| format!("{problem}: file=`{}`", path.display());
    let mut text = String::new();
    let file = fs::File::open(path).map_err(|error| fails(&error))?;
    file.take(KEY_FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| fails(&error))?;
    let key = AccountKey::decode(&text).map_err(|error| fails(&error))?;
    match published_keys::violation(&key) {
        Some(rule) => Err(fails(&rule)),
        None => Ok(key),
    }
}

/// A task that reloads `accounts` when the settings or their key files change.
pub(crate) fn watch(
    accounts: &Accounts,
    key_sets: &KeySets,
    source: SettingsSource,
    reloads: &Reloads,
) -> Task {
    let key_sets = key_sets.clone();
    let accounts = accounts.clone();
    let current = AccountSet::clone(&accounts.now());
    let (start, reloads) = (current.clone(), reloads.clone().located_in(source.clone()));
    let running = accounts.clone();
    let reread = move || match source.usable() {
        Some(settings) => {
            let read = read(&settings, &key_sets).map_err(|error| match error {
                ConfigError::Invalid { problems } => problems.join("; "),
                other => other.to_string(),
            });
            let is_auto = settings.gateway.development_account == DevelopmentAccount::Auto;
            read.map(|new| if is_auto { still_off(&running.now(), new) } else { new })
        }
        None => Ok(start.clone()),
    };
    reloads.task("accounts", current, reread, move |old, new| {
        accounts.replace(new.clone());
        ReloadedKeys::applied(changed(old, new))
    })
}

/// The new accounts, without the development account where it is off: a file that loses its accounts for a moment must
/// not open the server to the public key. It is on again after a start.
fn still_off(running: &AccountSet, new: AccountSet) -> AccountSet {
    let has_public_key = |set: &AccountSet| set.iter().any(Account::has_public_key);
    match has_public_key(running) {
        true => new,
        false => new.filtered(|account| !account.has_public_key()),
    }
}

/// The names of the accounts and of the issuers that differ.
fn changed(old: &AccountSet, new: &AccountSet) -> Vec<String> {
    let of = |set: &AccountSet| -> BTreeMap<String, Account> {
        set.iter().map(|account| (account.name.as_str().to_owned(), account.clone())).collect()
    };
    let issuers_of = |set: &AccountSet| -> BTreeMap<String, Issuer> {
        set.issuers().iter().map(|issuer| (issuer.name.clone(), issuer.clone())).collect()
    };
    let (old_issuers, new_issuers) = (issuers_of(old), issuers_of(new));
    let names: BTreeSet<_> = old_issuers.keys().chain(new_issuers.keys()).cloned().collect();
    let issuers = names.into_iter().filter(|name| old_issuers.get(name) != new_issuers.get(name));
    let (old, new) = (of(old), of(new));
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let accounts = names.into_iter().filter(|name| old.get(*name) != new.get(*name)).cloned();
    accounts.chain(issuers).collect()
}
