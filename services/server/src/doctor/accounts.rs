//! Whether the development account, whose key is public, is where it should not be.

use super::finding::DoctorFinding;
use crate::{
    roles::GATEWAY,
    settings::{Settings, reachable},
};

const CHECK: &str = "accounts";

/// A warning for each way in which others may use the development account; none without the role gateway.
pub(super) fn check(settings: &Settings) -> Vec<DoctorFinding> {
    if !settings.server.roles.has(GATEWAY.name) {
        return Vec::new();
    }
    if !settings.has_development_account() {
        return vec![DoctorFinding::ok(CHECK, "the development account is off")];
    }
    let listeners = reachable(&settings.server);
    let exposed = (!listeners.is_empty()).then(|| {
        DoctorFinding::warning(
            CHECK,
            format!(
                "the development account, whose key is public, is reachable from other machines: {}",
                listeners.join(", ")
            ),
            "add accounts.NAME with key1_file, and set gateway.development_account = \"off\"",
        )
    });
    let names: Vec<_> = settings.accounts.0.keys().map(|name| format!("`{name}`")).collect();
    let beside = (!names.is_empty()).then(|| {
        let found = "the development account, whose key is public, is on beside configured accounts";
        DoctorFinding::warning(
            CHECK,
            format!("{found}: {}", names.join(", ")),
            "remove gateway.development_account, or set it to \"off\", unless programs of this machine need it",
        )
    });
    let warnings: Vec<_> = exposed.into_iter().chain(beside).collect();
    if warnings.is_empty() {
        return vec![DoctorFinding::ok(CHECK, "the development account is on, on loopback only")];
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        doctor::Severity,
        roles::Roles,
        settings::{AccountSettings, DevelopmentAccount},
    };

    /// The severities and texts of the findings with these settings.
    fn found(
        development: DevelopmentAccount,
        listen: &str,
        account: Option<&str>,
    ) -> Vec<DoctorFinding> {
        let mut settings = Settings::default();
        settings.gateway.development_account = development;
        settings.server.listen = listen.parse().expect("an address");
        let section = account.map(|name| (name.to_owned(), AccountSettings::default()));
        settings.accounts.0.extend(section);
        check(&settings)
    }

    #[test]
    fn the_development_account_is_a_warning_beyond_loopback_and_beside_accounts() {
        use DevelopmentAccount::{Anywhere, Auto, Loopback, Off};
        let (here, all) = ("127.0.0.1:1", "0.0.0.0:1");
        for (development, listen, account, warnings) in [
            (Auto, here, None, &[][..]),
            (Auto, here, Some("acme"), &[]),
            (Auto, all, Some("acme"), &[]),
            (Off, all, Some("acme"), &[]),
            (Loopback, here, None, &[]),
            (Loopback, here, Some("acme"), &["`acme`"]),
            (Loopback, all, Some("acme"), &[]),
            (Anywhere, all, None, &["server.listen=`0.0.0.0:1`"]),
            (Anywhere, all, Some("acme"), &["server.listen=`0.0.0.0:1`", "`acme`"]),
        ] {
            let findings = found(development, listen, account);
            let warned: Vec<_> =
                findings.iter().filter(|finding| finding.severity == Severity::Warning).collect();
            assert_eq!(warned.len(), warnings.len(), "{development:?} {listen}: {findings:?}");
            for (finding, text) in warned.iter().zip(warnings) {
                assert!(finding.found.contains(text), "{finding:?}");
            }
        }
    }

    #[test]
    fn a_process_without_a_gateway_has_no_accounts() {
        let mut settings = Settings::default();
        settings.server.roles = Roles::Named(vec!["table".to_owned()]);
        settings.gateway.development_account = DevelopmentAccount::Anywhere;
        assert!(check(&settings).is_empty());
    }
}
