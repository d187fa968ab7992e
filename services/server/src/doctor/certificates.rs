//! The certificates of the settings: whether they can be used, and how long.

use std::{path::Path, time::Duration};

use trestle_model::time::Ticks;
use trestle_rpc::small_file;
use trestle_runtime::tls::{Certificates, Validity};

use super::finding::DoctorFinding;
use crate::settings::Settings;

const CHECK: &str = "certificates";
/// The time that a renewal must have: that of the common authorities.
const RENEWED_BEFORE: Duration = Duration::from_secs(14 * 24 * 3600);

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
    let (own, roles) = (&settings.tls, &settings.gateway.tls);
    let files = [
        ("tls.cert_file", &own.cert_file),
        ("tls.client_ca_file", &own.client_ca_file),
        ("gateway.tls.ca_file", &roles.ca_file),
        ("gateway.tls.cert_file", &roles.cert_file),
    ];
    for (key, file) in files.iter().filter_map(|(key, file)| Some((*key, file.as_deref()?))) {
        findings.extend(judge_file(key, file, now));
    }
    findings.extend(own.cert_file.as_deref().and_then(judge_use));
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
    let days = until.saturating_sub(seconds) / (24 * 3600);
    if seconds < from {
        let found = format!("{what}: not valid yet: not_before=`{from}`, unix_seconds=`{seconds}`");
        DoctorFinding::failure(CHECK, found, "check the clock of this machine and of the authority")
    } else if until <= seconds {
        let found = format!("{what}: expired: days_ago=`{}`", days.saturating_neg());
        DoctorFinding::failure(CHECK, found, "renew it; the server reads a changed file by itself")
    } else if until.saturating_sub(seconds).unsigned_abs() < RENEWED_BEFORE.as_secs() {
        let found = format!("{what}: expires soon: days_left=`{days}`");
        DoctorFinding::warning(CHECK, found, "renew it; the server reads a changed file by itself")
    } else {
        DoctorFinding::ok(CHECK, format!("{what}: days_left=`{days}`"))
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
