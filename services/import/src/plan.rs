//! The content of a source, before anything is copied.

use std::collections::HashMap;

use serde::Deserialize;
use trestle_model::edm::datetime;
use trestle_proto::{
    blob::v1::PublicAccess, queue::v1::DeadLetterPolicy, service::v1::AccessPolicy,
};

use super::progress::Skipped;

/// The items to copy, and the items that are skipped from the start.
#[derive(Debug, Default)]
pub(super) struct ImportPlan {
    pub(super) tables: Vec<PlannedTable>,
    pub(super) queues: Vec<PlannedQueue>,
    pub(super) containers: Vec<PlannedContainer>,
    pub(super) skipped: Vec<Skipped>,
    /// Why messages remain in the source where it cannot show all of a queue.
    pub(super) why_remaining: &'static str,
}

/// A table to copy.
#[derive(Debug, Default, Clone)]
pub(super) struct PlannedTable {
    /// Its name in the target: as the source spells it, unless it is renamed.
    pub(super) name: String,
    pub(super) policies: Vec<AccessPolicy>,
}

/// A queue to copy.
#[derive(Debug, Default, Clone)]
pub(super) struct PlannedQueue {
    /// Its name in the target.
    pub(super) name: String,
    pub(super) metadata: HashMap<String, String>,
    pub(super) policies: Vec<AccessPolicy>,
    pub(super) dead_letter: Option<DeadLetterPolicy>,
    /// The deduplication window after the import, in milliseconds, unless the target has the queue with one.
    pub(super) window_ms: Option<u64>,
}

/// A container to copy. Its blobs are listed while they are copied.
#[derive(Debug, Default, Clone)]
pub(super) struct PlannedContainer {
    /// Its name in the target.
    pub(super) name: String,
    pub(super) metadata: HashMap<String, String>,
    pub(super) public_access: PublicAccess,
    pub(super) policies: Vec<AccessPolicy>,
}

/// What callers without credentials may read, as a source writes it.
pub(super) fn public_access(text: &str) -> PublicAccess {
    match text.trim() {
        "blob" => PublicAccess::Blob,
        "container" => PublicAccess::Container,
        _ => PublicAccess::Unspecified,
    }
}

/// A stored access policy, as a source writes it: Azure in XML, Azurite in its database.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PolicyDocument {
    #[serde(alias = "Id")]
    id: String,
    #[serde(default, rename = "accessPolicy", alias = "AccessPolicy")]
    terms: Option<TermsDocument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TermsDocument {
    #[serde(alias = "Start")]
    start: String,
    #[serde(alias = "Expiry")]
    expiry: String,
    #[serde(alias = "Permission")]
    permission: String,
}

/// Reads the policies of a table, a queue or a container; the rule that one of them breaks.
pub(super) fn policies(documents: Vec<PolicyDocument>) -> Result<Vec<AccessPolicy>, String> {
    documents.into_iter().map(policy).collect()
}

fn policy(document: PolicyDocument) -> Result<AccessPolicy, String> {
    let PolicyDocument { id, terms } = document;
    let TermsDocument { start, expiry, permission } = terms.unwrap_or_default();
    let time = |text: &str| match text.trim() {
        "" => Ok(None),
        text => datetime::parse(&full(text))
            .map(Some)
            .ok_or_else(|| format!("policy `{id}`: time `{text}`: {}", datetime::RULE)),
    };
    let (start_time, expiry_time) = (time(&start)?, time(&expiry)?);
    let permissions = Some(permission.trim().to_owned()).filter(|letters| !letters.is_empty());
    Ok(AccessPolicy { start_time, expiry_time, permissions, id })
}

/// A time with all its parts: policies may omit the seconds, or the time of the day.
fn full(text: &str) -> String {
    match (text.len(), text.strip_suffix('Z')) {
        (10, _) => format!("{text}T00:00:00Z"),
        (17, Some(minutes)) => format!("{minutes}:00Z"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_keep_their_present_and_absent_fields() {
        let documents = r#"[{"Id":"a","AccessPolicy":{"Start":"2026-01-02",
            "Expiry":"2026-01-02T03:04Z","Permission":"raud"}},
            {"id":"bare"},{"id":"b","accessPolicy":{"expiry":"2026-01-02T03:04:05Z"}}]"#;

        let read = policies(serde_json::from_str(documents).unwrap()).unwrap();

        let shown = |at: &Option<prost_types::Timestamp>| datetime::format(&at.unwrap()).unwrap();
        assert_eq!(shown(&read[0].start_time), "2026-01-02T00:00:00Z");
        assert_eq!(shown(&read[0].expiry_time), "2026-01-02T03:04:00Z");
        assert_eq!(read[0].permissions.as_deref(), Some("raud"));
        assert_eq!(read[1], AccessPolicy { id: "bare".to_owned(), ..AccessPolicy::default() });
        assert_eq!(shown(&read[2].expiry_time), "2026-01-02T03:04:05Z");
        let soon = r#"[{"id":"c","accessPolicy":{"start":"soon"}}]"#;
        let error = policies(serde_json::from_str(soon).unwrap()).unwrap_err();
        assert!(error.starts_with("policy `c`: time `soon`"), "{error}");
    }
}
