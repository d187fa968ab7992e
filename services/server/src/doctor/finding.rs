//! What a check found, and the report on all of it.

use std::fmt::Write as _;

use serde::Serialize;

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
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, severity: Severity::Ok, found: found.into(), remedy: None }
    }

    pub(super) fn warning(
        check: &'static str,
        found: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Self { check, severity: Severity::Warning, found: found.into(), remedy: Some(remedy) }
    }

    pub(super) fn failure(
        check: &'static str,
        found: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Self { check, severity: Severity::Failure, found: found.into(), remedy: Some(remedy) }
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
            let _ = writeln!(text, "{word}: {check}: {found}");
            if let Some(remedy) = remedy {
                let _ = writeln!(text, "  hint: {remedy}");
            }
        }
        text
    }

    /// For programs: one object a line.
    #[must_use]
    pub fn json(&self) -> String {
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
            DoctorFinding::ok("clock", "synchronised"),
            DoctorFinding::warning("limits", "few", "raise it"),
        ]);

        let text = "ok: clock: synchronised\nwarning: limits: few\n  hint: raise it\n";
        assert_eq!(report.text(), text);
        assert_eq!(report.json().lines().count(), 2);
        assert!(!report.has_failure());
        assert!(DoctorReport(vec![DoctorFinding::failure("a", "b", "c")]).has_failure());
    }
}
