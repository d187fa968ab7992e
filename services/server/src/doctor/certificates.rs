//! The certificates of the settings: whether they can be used, and how long.

use std::path::Path;

use trestle_model::time::Ticks;
use trestle_rpc::small_file;
use trestle_runtime::tls::{Certificates, Validity};

use super::finding::DoctorFinding;
use crate::{encryption::Expiry, settings::Settings};

const CHECK: &str = "certificates";

/// Certificates of the settings that cannot be used now, and those that expire soon, for `config check`. Blocks.
pub(crate) fn expiries(settings: &Settings, now: Ticks) -> (Vec<String>, Vec<String>) {
    let (mut expired, mut soon) = (Vec::new(), Vec::new());
    for (key, file) in files(settings) {
        let Ok(pem) = small_file::read(file) else { continue };
        for Validity { not_after, expires, .. } in Validity::of_pem(&pem).into_iter().flatten() {
            let named = |what| format!("{key}: {what} {expires}: file=`{}`", file.display());
            match Expiry::at(not_after, now) {
                Expiry::Expired(_) => expired.push(named("the certificate expired")),
                Expiry::Soon(_) => soon.push(named("the certificate expires")),
                Expiry::Later(_) => {}
            }
        }
    }
    (expired, soon)
}

/// The files with certificates, by key.
fn files(settings: &Settings) -> impl Iterator<Item = (&'static str, &Path)> {
    let (own, roles) = (&settings.tls, &settings.gateway.tls);
    let files = [
        ("tls.cert_file", &own.cert_file),
        ("tls.client_ca_file", &own.client_ca_file),
        ("gateway.tls.ca_file", &roles.ca_file),
        ("gateway.tls.cert_file", &roles.cert_file),
    ];
    files.into_iter().filter_map(|(key, file)| Some((key, file.as_deref()?)))
}

/// Reads all of them. Blocks.
pub(super) fn check(settings: &Settings, now: Ticks) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    if let Some(files) = settings.tls.grpc()
        && let Err(error) = Certificates::read(&files)
    {
        let remedy = "certificate and key must be PEM files that the user of the server can read and that belong \
                      together";
        findings.push(DoctorFinding::failure(CHECK, error.to_string(), remedy));
    }
    for (key, file) in files(settings) {
        findings.extend(judge_file(key, file, now));
    }
    findings.extend(settings.tls.cert_file.as_deref().and_then(judge_use));
    findings
}

/// A warning where the certificate of the server is that of a CA.
fn judge_use(file: &Path) -> Option<DoctorFinding> {
    let pem = small_file::read(file).ok()?;
    let first = Validity::of_pem(&pem).into_iter().next()??;
    let found = || format!("tls.cert_file: is that of a CA: file=`{}`", file.display());
    let remedy = "issue one for the server, with basicConstraints=CA:FALSE: some clients, and those of Trestle, \
                  reject that of a CA";
    first.is_ca.then(|| DoctorFinding::warning(CHECK, found(), remedy))
}

/// A finding for each certificate of a file.
fn judge_file(key: &str, file: &Path, now: Ticks) -> Vec<DoctorFinding> {
    let found = |problem: &str| format!("{key}: {problem}: file=`{}`", file.display());
    let remedy = "name a file with certificates in PEM that the user of the server can read";
    let Ok(pem) = small_file::read(file) else {
        return vec![DoctorFinding::failure(CHECK, found("cannot be read"), remedy)];
    };
    let without = || DoctorFinding::failure(CHECK, found("holds no certificate in PEM"), remedy);
    let certificates = Validity::of_pem(&pem);
    if certificates.is_empty() {
        return vec![without()];
    }
    let judge = |validity: Option<Validity>| match validity {
        Some(Validity { not_before, not_after, .. }) => {
            judge_validity(&found("certificate"), not_before, not_after, now)
        }
        None => without(),
    };
    certificates.into_iter().map(judge).collect()
}

/// Judges the times of a certificate, in seconds since 1970.
fn judge_validity(what: &str, from: i64, until: i64, now: Ticks) -> DoctorFinding {
    let seconds = now.to_unix().0;
    let remedy = "renew it; the server reads a changed file by itself";
    if seconds < from {
        let found = format!("{what}: not valid yet: not_before=`{from}`, unix_seconds=`{seconds}`");
        let remedy = "check the clock of this machine and of the authority";
        return DoctorFinding::failure(CHECK, found, remedy);
    }
    match Expiry::at(until, now) {
        Expiry::Expired(days) => {
            DoctorFinding::failure(CHECK, format!("{what}: expired: days_ago=`{days}`"), remedy)
        }
        Expiry::Soon(days) => {
            let found = format!("{what}: expires soon: days_left=`{days}`");
            DoctorFinding::warning(CHECK, found, remedy)
        }
        Expiry::Later(days) => DoctorFinding::ok(CHECK, format!("{what}: days_left=`{days}`")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::doctor::Severity;

    const DAY: i64 = 24 * 3600;

    #[test]
    fn a_certificate_must_be_valid_now_and_for_two_weeks() {
        let now = Ticks::from_unix(100 * DAY, 0).expect("a time");
        for (from, until, severity) in [
            (101, 200, Severity::Failure),
            (1, 100, Severity::Failure),
            (1, 113, Severity::Warning),
            (1, 114, Severity::Ok),
        ] {
            let finding = judge_validity("a", from * DAY, until * DAY, now);
            assert_eq!(finding.severity, severity, "{finding:?}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_a_failure() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.pem");
        let now = Ticks::from_unix(0, 0).expect("a time");
        let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for content in ["nothing", damaged] {
            fs::write(&file, content).expect("written");
            let findings = judge_file("tls.cert_file", &file, now);
            assert_eq!(findings.len(), 1);
            assert_eq!(findings[0].severity, Severity::Failure);
        }
        assert!(
            judge_file("a", &directory.path().join("none"), now)[0]
                .found
                .contains("cannot be read")
        );
    }

    #[test]
    fn reads_the_validity_of_a_certificate_also_beside_its_key() {
        let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 12, 31);
        let key = rcgen::KeyPair::generate().expect("a key");
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.pem");
        // With its key in the same file, as some authorities issue them.
        let pem =
            format!("{}{}", key.serialize_pem(), params.self_signed(&key).expect("signed").pem());
        fs::write(&file, pem).expect("written");
        let on = |seconds| judge_file("a", &file, Ticks::from_unix(seconds, 0).expect("a time"));
        assert_eq!(on(1_767_225_600 + DAY).len(), 1);
        assert_eq!(on(1_767_225_600 + DAY)[0].severity, Severity::Ok);
        assert_eq!(on(1_767_225_600 - DAY)[0].severity, Severity::Failure);
        assert_eq!(on(1_767_225_600 + 400 * DAY)[0].severity, Severity::Failure);
    }
}
