//! `import azure` of a large table: read in several key ranges at a time, killed and resumed.

use std::{fmt::Write as _, fs, path::Path, process::Stdio, time::Instant};

use serde_json::Value;
use tempfile::tempdir;
use trestle_identity::account::DEVELOPMENT_KEY;
use trestle_tests::{HANG, Server};

use crate::command::{start, succeeds, trestle};

/// Enough for many pages of 1,000 in each range, so that a kill falls between two of them.
const ENTITIES: u32 = 40_000;

/// Fills a table with partitions that begin with every hexadecimal digit, and some others.
fn fill(source: &Server, directory: &Path) {
    let mut rows = String::new();
    for number in 0..ENTITIES {
        let partition = match number % 100 {
            0 => String::new(),
            1 => "it's ä \u{1F600}".to_owned(),
            _ => format!("{:04x}", number.wrapping_mul(40_503) & 0xFFFF),
        };
        let row =
            serde_json::json!({ "PartitionKey": partition, "RowKey": format!("{number:06}") });
        writeln!(rows, "{row}").unwrap();
    }
    let file = directory.join("rows.jsonl");
    fs::write(&file, rows).unwrap();
    succeeds(source, &["table", "create", "Large"]);
    succeeds(source, &["table", "import", "large", file.to_str().unwrap()]);
}

/// The number of partly read ranges of the table in the checkpoint, and of all ranges.
fn ranges(checkpoint: &Path) -> (usize, usize) {
    let text = fs::read_to_string(checkpoint).unwrap_or_default();
    let checkpoint: Value = serde_json::from_str(&text).unwrap_or_default();
    let all =
        checkpoint["state"]["tables"]["large"]["ranges"].as_array().cloned().unwrap_or_default();
    (all.iter().filter(|range| !range["position"]["Page"].is_null()).count(), all.len())
}

#[test]
fn a_large_table_is_read_in_parallel_ranges_which_a_killed_import_resumes() {
    let (source_data, data, directory) =
        (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let (source, server) = (start(&source_data), start(&data));
    fill(&source, directory.path());
    let address = source.address("azure_table");
    let connection = format!(
        "AccountName=devstoreaccount1;AccountKey={DEVELOPMENT_KEY};\
         TableEndpoint=http://{address}/devstoreaccount1"
    );
    let checkpoint = directory.path().join("checkpoint");
    let import = ["import", "azure", &connection, "--checkpoint", checkpoint.to_str().unwrap()];

    let mut killed = trestle(&server, &import).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    let (mut reading, mut all) = (0, 0);
    while reading < 2 {
        assert!(started.elapsed() < HANG, "{reading} of {all} ranges were begun");
        assert!(killed.try_wait().unwrap().is_none(), "the import ended before it was killed");
        (reading, all) = ranges(&checkpoint);
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(all, 8, "hexadecimal digits divide it");

    let output = succeeds(&server, &[&import[..], &["--resume", "--json"]].concat());

    assert!(output.ends_with("\"not_copied\":0,\"match\":true}\n"), "{output}");
    let counts = format!("\"table\":\"Large\",\"read\":{ENTITIES},\"written\":{ENTITIES},");
    assert!(output.contains(&counts), "{output}");
    let copied = succeeds(&server, &["table", "export", "large", "-"]);
    let original = succeeds(&source, &["table", "export", "large", "-"]);
    assert!(copied == original, "every entity is equal in source and target");
    assert_eq!(copied.lines().count(), ENTITIES as usize);
}
