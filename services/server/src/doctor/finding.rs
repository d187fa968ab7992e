//! What a check found, and the report on all of it.

use std::fmt::Write as _;

use serde::Serialize;
use trestle_command::{errors::without_number, output::escaped};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is wrong.
    Ok,
    /// A server starts, and does not do all that its settings say, or not for long.
    Warning,
    /// A server does not start, or does not serve.
    Failure,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    /// What was checked.
    pub check: &'static str,
    /// The result.
    pub severity: Severity,
    /// What was found, with its values.
    pub found: String,
    /// What to do; none where nothing is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'static str>,
}

impl DoctorFinding {
    fn new(
        check: &'static str,
        severity: Severity,
        found: String,
        remedy: Option<&'static str>,
    ) -> Self {
        Self { check, severity, found: without_number(found), remedy }
    }

    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Severity::Ok, found.into(), None)
    }

    pub(super) fn warning(
        check: &'static str,
        found: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Self::new(check, Severity::Warning, found.into(), Some(remedy))
    }

    pub(super) fn failure(
        check: &'static str,
        found: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Self::new(check, Severity::Failure, found.into(), Some(remedy))
    }
}

/// The findings of every check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DoctorReport(pub Vec<DoctorFinding>);

impl DoctorReport {
    /// Whether a server does not start, or does not serve.
    #[must_use]
    pub fn has_failure(&self) -> bool {
        self.0.iter().any(|finding| finding.severity == Severity::Failure)
    }

    /// For people: a line for each finding, and one with its remedy.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for DoctorFinding { check, severity, found, remedy } in &self.0 {
            let word = match severity {
                Severity::Ok => "ok",
                Severity::Warning => "warning",
                Severity::Failure => "failure",
            };
            let _ = writeln!(text, "{word}: {check}: {}", escaped(found));
            if let Some(remedy) = remedy {
                let _ = writeln!(text, "  hint: {remedy}");
            }
        }
        text
    }

    /// For programs: one document, a list of findings.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).map_or_else(|_| String::new(), |text| format!("{text}\n"))
    }

    /// For programs: one object a line.
    #[must_use]
    pub fn json_lines(&self) -> String {
        let line = |finding| serde_json::to_string(finding).ok();
        self.0.iter().filter_map(line).flat_map(|line| [line, "\n".to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_hint_for_each_finding_that_is_not_ok() {
        let report = DoctorReport(vec![
            DoctorFinding::ok("clock", "synchronised\nby NTP"),
            DoctorFinding::warning("limits", "few", "raise it"),
        ]);

        let text = "ok: clock: synchronised\\nby NTP\nwarning: limits: few\n  hint: raise it\n";
        assert_eq!(report.text(), text);
        assert_eq!(report.json_lines().lines().count(), 2);
        let document: serde_json::Value = serde_json::from_str(&report.json()).expect("JSON");
        assert_eq!(document[0]["severity"], "ok");
        assert_eq!(document[1]["remedy"], "raise it");
        assert_eq!(document.as_array().map(Vec::len), Some(2));
        assert!(!report.has_failure());
        assert!(DoctorReport(vec![DoctorFinding::failure("a", "b", "c")]).has_failure());
    }

    #[test]
    fn a_finding_has_no_number_of_an_error_of_the_system() {
        let missing = || std::io::Error::from_raw_os_error(2).to_string();

        for finding in [
            DoctorFinding::ok("disk", missing()),
            DoctorFinding::warning("disk", missing(), "look"),
            DoctorFinding::failure("disk", missing(), "look"),
        ] {
            assert_eq!(finding.found, "No such file or directory");
        }
    }
}
