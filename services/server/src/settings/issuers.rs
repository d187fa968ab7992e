//! The issuers of bearer tokens.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::PathBuf,
};

use http::Uri;
use serde::{Deserialize, Serialize};
use trestle_identity::bearer::Role;
use trestle_model::name::AccountName;
use trestle_runtime::config::shown;

/// Most issuers of a process.
const ISSUERS_MAX: usize = 32;
/// Longest text of a setting of an issuer, in bytes.
const TEXT_BYTES_MAX: usize = 1024;
/// Largest difference of clocks, in seconds.
const CLOCK_SKEW_SECONDS_MAX: u64 = 300;

/// The sections `gateway.issuers.NAME`. Default: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IssuersSettings(pub BTreeMap<String, IssuerSettings>);

/// A section `gateway.issuers.NAME`: an issuer of bearer tokens (OpenID Connect) that the gateway accepts. The file of
/// its keys is reloaded when it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IssuerSettings {
    /// The claim `iss` of its tokens, which no other issuer has, such as `https://login.example.com`. Required.
    pub issuer: String,
    /// What the claim `aud` of its tokens must have. Required.
    pub audience: String,
    /// A file with its public keys, as a JSON Web Key Set of at most 64 KiB and 32 keys: RSA of 2048 to 8192 bits for
    /// RS256, EC of P-256 for ES256. Required, unless `jwks_url` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_file: Option<PathBuf>,
    /// The URL of such a set instead: `https`, or `http` on loopback. It is fetched after the start, each ten minutes,
    /// and within a minute for a token with another key; redirects are not followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// The accounts that its tokens act for, separated by commas. Required.
    pub accounts: String,
    /// How much its clock may differ from that of the gateway, in seconds, up to 300. Default: 60.
    pub clock_skew_seconds: u64,
    /// The claim with the role of the caller: a text, or an array of texts, of which the highest role counts.
    /// Default: `roles`.
    pub role_claim: String,
    /// The value of that claim for callers that only request user delegation keys. Default: `delegator`.
    pub delegator: String,
    /// The value of that claim for callers that read. Default: `reader`.
    pub reader: String,
    /// The value of that claim for callers that also write and delete. Default: `contributor`.
    pub contributor: String,
    /// The value of that claim for callers that may do everything, access policies and service settings included.
    /// Default: `owner`.
    pub owner: String,
}

impl Default for IssuerSettings {
    fn default() -> Self {
        let name = |role: Role| role.as_str().to_owned();
        Self {
            issuer: String::new(),
            audience: String::new(),
            jwks_file: None,
            jwks_url: None,
            accounts: String::new(),
            clock_skew_seconds: 60,
            role_claim: "roles".to_owned(),
            delegator: name(Role::Delegator),
            reader: name(Role::Reader),
            contributor: name(Role::Contributor),
            owner: name(Role::Owner),
        }
    }
}

impl IssuerSettings {
    /// The names of the accounts, as they were written.
    pub fn account_names(&self) -> impl Iterator<Item = &str> {
        self.accounts.split(',').map(str::trim).filter(|name| !name.is_empty())
    }

    /// The problems of a section, each with its key. The accounts must be among those of `is_account`.
    fn problems(&self, name: &str, is_account: impl Fn(&str) -> bool) -> Vec<String> {
        let mut problems = Vec::new();
        let mut problem = |key: &str, rule: &str| {
            problems.push(format!("gateway.issuers.{name}.{key}: {rule}"));
        };
        let texts = [
            ("issuer", &self.issuer),
            ("audience", &self.audience),
            ("role_claim", &self.role_claim),
            ("delegator", &self.delegator),
            ("reader", &self.reader),
            ("contributor", &self.contributor),
            ("owner", &self.owner),
        ];
        for (key, text) in texts {
            let is_visible = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            if text.is_empty() {
                problem(key, "required");
            } else if text.len() > TEXT_BYTES_MAX || !is_visible {
                problem(key, &format!("must be visible ASCII of at most {TEXT_BYTES_MAX} bytes"));
            }
        }
        let roles = [&self.delegator, &self.reader, &self.contributor, &self.owner];
        if BTreeSet::from(roles).len() < roles.len() {
            problem("owner", "the values of delegator, reader, contributor and owner must differ");
        }
        match (&self.jwks_file, &self.jwks_url) {
            (None, None) => problem("jwks_file", "required, or jwks_url"),
            (Some(_), Some(_)) => problem("jwks_url", "must not be set beside jwks_file"),
            (None, Some(url)) if !is_key_url(url) => {
                let rule = "must be a URL of https, or of http on loopback, without credentials";
                problem("jwks_url", &format!("{rule}, of at most {TEXT_BYTES_MAX} bytes"));
            }
            _ => {}
        }
        if self.clock_skew_seconds > CLOCK_SKEW_SECONDS_MAX {
            let rule = format!("must be at most {CLOCK_SKEW_SECONDS_MAX}");
            problem("clock_skew_seconds", &format!("{rule}: value=`{}`", self.clock_skew_seconds));
        }
        if self.account_names().next().is_none() {
            problem("accounts", "required");
        }
        for account in self.account_names() {
            if AccountName::parse(account).is_none() || !is_account(account) {
                problem("accounts", &format!("must be configured accounts{}", shown("", account)));
            }
        }
        problems
    }
}

/// Whether keys may be fetched from a URL: another server on the way must not replace them.
fn is_key_url(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else { return false };
    let Some(authority) = url.authority() else { return false };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let is_loopback =
        || host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let is_private = match url.scheme_str() {
        Some("https") => true,
        Some("http") => is_loopback(),
        _ => false,
    };
    let has_user = authority.as_str().contains('@');
    is_private && !has_user && !host.is_empty() && text.len() <= TEXT_BYTES_MAX
}

impl IssuersSettings {
    /// The problems of the sections, each with its key.
    pub(super) fn problems(&self, is_account: impl Fn(&str) -> bool) -> Vec<String> {
        let mut problems = Vec::new();
        if self.0.len() > ISSUERS_MAX {
            problems.push(format!("gateway.issuers: must be at most {ISSUERS_MAX}"));
        }
        let mut issuers = BTreeMap::new();
        for (name, section) in &self.0 {
            problems.extend(section.problems(name, &is_account));
            if let Some(other) =
                issuers.insert(&section.issuer, name).filter(|_| !section.issuer.is_empty())
            {
                let rule = format!("must differ from gateway.issuers.{other}.issuer");
                problems.push(format!("gateway.issuers.{name}.issuer: {rule}"));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> IssuerSettings {
        IssuerSettings {
            issuer: "https://login.example.com".into(),
            audience: "trestle".into(),
            jwks_file: Some("keys.json".into()),
            accounts: "acme, other".into(),
            ..Default::default()
        }
    }

    fn problems(section: IssuerSettings) -> Vec<String> {
        let settings = IssuersSettings([("corp".to_owned(), section)].into_iter().collect());
        settings.problems(|account| ["acme", "other"].contains(&account))
    }

    #[test]
    fn each_rule_names_its_key() {
        assert_eq!(problems(valid()), Vec::<String>::new());
        for (section, expected) in [
            (IssuerSettings { issuer: String::new(), ..valid() }, "issuer: required"),
            (
                IssuerSettings { audience: "a\nb".into(), ..valid() },
                "audience: must be visible ASCII of at most 1024 bytes",
            ),
            (
                IssuerSettings { reader: "owner".into(), ..valid() },
                "owner: the values of delegator, reader, contributor and owner must differ",
            ),
            (IssuerSettings { jwks_file: None, ..valid() }, "jwks_file: required, or jwks_url"),
            (
                IssuerSettings { jwks_url: Some("https://a/".into()), ..valid() },
                "jwks_url: must not be set beside jwks_file",
            ),
            (
                IssuerSettings { clock_skew_seconds: 301, ..valid() },
                "clock_skew_seconds: must be at most 300: value=`301`",
            ),
            (IssuerSettings { accounts: " ,".into(), ..valid() }, "accounts: required"),
            (
                IssuerSettings { accounts: "absent".into(), ..valid() },
                "accounts: must be configured accounts: value=`absent`",
            ),
        ] {
            assert_eq!(problems(section), [format!("gateway.issuers.corp.{expected}")]);
        }
    }

    #[test]
    fn a_key_set_is_at_a_url_that_no_server_on_the_way_can_replace() {
        for (url, is_valid) in [
            ("https://login.example.com/keys?v=2", true),
            ("https://login.example.com:8443", true),
            ("http://127.0.0.1:8080/keys", true),
            ("http://[::1]:8080/keys", true),
            ("http://localhost/keys", true),
            ("http://login.example.com/keys", false),
            ("http://127.0.0.1.example.com/keys", false),
            ("http://localhost@login.example.com/keys", false),
            ("https://user:password@login.example.com/keys", false),
            ("https:///keys", false),
            ("file:///etc/keys", false),
            ("login.example.com/keys", false),
            ("/keys", false),
            ("", false),
        ] {
            let section = IssuerSettings { jwks_file: None, jwks_url: Some(url.into()), ..valid() };
            assert_eq!(problems(section).is_empty(), is_valid, "{url}");
        }
        let long = format!("https://a/{}", "x".repeat(1024));
        let section = IssuerSettings { jwks_file: None, jwks_url: Some(long), ..valid() };
        assert_eq!(problems(section).len(), 1);
    }

    #[test]
    fn two_issuers_with_the_same_claim_are_a_problem() {
        let both = [("a".to_owned(), valid()), ("b".to_owned(), valid())];
        let problems = IssuersSettings(both.into_iter().collect()).problems(|_| true);
        assert_eq!(
            problems,
            ["gateway.issuers.b.issuer: must differ from gateway.issuers.a.issuer"]
        );
    }
}
