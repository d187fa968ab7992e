//! The rules of the document on compatibility: every operation has a row, and every row with "same"
//! names a test.

use crate::source::{Finding, Source};

const DOCUMENT: &str = "docs/azure-compatibility.md";

/// The operations by section of the document, as the reference of the protocol names them.
const OPERATIONS: [(&str, &[&str]); 4] = [
    (
        "All services",
        &[
            "Get Service Properties",
            "Set Service Properties",
            "Get Service Stats",
            "Preflight Request",
        ],
    ),
    (
        "Tables",
        &[
            "Query Tables",
            "Create Table",
            "Delete Table",
            "Get Table ACL",
            "Set Table ACL",
            "Insert Entity",
            "Get Entity",
            "Query Entities",
            "Update Entity",
            "Merge Entity",
            "Insert Or Replace Entity",
            "Insert Or Merge Entity",
            "Delete Entity",
            "Entity Group Transaction",
        ],
    ),
    (
        "Queues",
        &[
            "List Queues",
            "Create Queue",
            "Delete Queue",
            "Get Queue Metadata",
            "Set Queue Metadata",
            "Get Queue ACL",
            "Set Queue ACL",
            "Put Message",
            "Get Messages",
            "Peek Messages",
            "Clear Messages",
            "Update Message",
            "Delete Message",
        ],
    ),
    (
        "Blobs",
        &[
            "List Containers",
            "Create Container",
            "Delete Container",
            "Get Container Properties",
            "Set Container Metadata",
            "Get Container ACL",
            "Set Container ACL",
            "Restore Container",
            "Lease Container",
            "Lease Blob",
            "List Blobs",
            "Put Blob",
            "Get Blob",
            "Get Blob Properties",
            "Get Blob Metadata",
            "Set Blob Metadata",
            "Set Blob Properties",
            "Delete Blob",
            "Undelete Blob",
            "Snapshot Blob",
            "Set Blob Tier",
            "Get Blob Tags",
            "Set Blob Tags",
            "Find Blobs by Tags",
            "Put Block",
            "Put Block List",
            "Get Block List",
            "Append Block",
            "Append Blob Seal",
            "Put Page",
            "Get Page Ranges",
            "Copy Blob",
            "Copy Blob From URL",
            "Abort Copy Blob",
            "Put Blob From URL",
            "Put Block From URL",
            "Append Block From URL",
            "Put Page From URL",
            "Blob Batch",
            "Get Account Information",
            "Get User Delegation Key",
            "Query Blob Contents",
            "Incremental Copy Blob",
            "Set Blob Expiry",
        ],
    ),
];

/// A row of a table of the document.
struct Row<'a> {
    index: usize,
    section: &'a str,
    what: &'a str,
    verdict: &'a str,
    tests: &'a str,
}

/// Operations without a row in their section.
pub(crate) fn missing_operations(source: &Source) -> Vec<Finding> {
    if source.path != DOCUMENT {
        return Vec::new();
    }
    let rows = rows(&source.text);
    let operations = OPERATIONS.iter().flat_map(|(section, operations)| {
        operations.iter().map(move |operation| (*section, *operation))
    });
    let has_row = |section: &str, operation: &str| {
        let name = format!("**{operation}**");
        rows.iter().any(|row| row.section == section && row.what.contains(&name))
    };
    let missing = operations.filter(|(section, operation)| !has_row(section, operation));
    missing
        .map(|(section, name)| source.finding(0, format!("no row: {name} in {section}")))
        .collect()
}

/// Rows with "same" that name no test.
pub(crate) fn unproven(source: &Source) -> Vec<Finding> {
    if source.path != DOCUMENT {
        return Vec::new();
    }
    let is_same =
        |row: &Row<'_>| row.verdict.split(|c: char| !c.is_alphabetic()).any(|w| w == "same");
    let rows = rows(&source.text).into_iter();
    let unproven = rows.filter(|row| is_same(row) && !row.tests.contains("::"));
    unproven.map(|row| source.finding(row.index, "same, but no test is named")).collect()
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let (mut section, mut rows) = ("", Vec::new());
    for (index, line) in text.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
        let cells: Vec<_> = line.split(" |").map(|cell| cell.trim_start_matches("| ")).collect();
        if let [what, verdict, tests, _] = cells[..]
            && line.starts_with("| ")
        {
            rows.push(Row { index, section, what, verdict, tests });
        }
    }
    rows
}

#[cfg(test)]
mod tests;
