//! Control characters in errors.

use super::*;

/// A text that clears a terminal, and looks like a line of its own.
const HOSTILE: &str = "a\u{1b}[2J\u{9b}2J\r\nerror: b";

#[test]
fn control_characters_of_names_filters_and_paths_are_escaped_in_errors() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let file = folder.path().join(format!("{HOSTILE}.jsonl"));
    std::fs::write(&file, "oops\n").unwrap();
    succeeds(&server, &["table", "create", "rows"]);
    let (file, filter) = (file.to_str().unwrap(), format!("{HOSTILE} eq 1"));

    for args in [
        &["table", "create", HOSTILE][..],
        &["entity", "query", "rows", "--filter", &filter],
        &["table", "import", "rows", HOSTILE, "--format", "csv"],
        &["table", "import", "rows", file, "--keep-going"],
        &["blob", "cp", HOSTILE, "blob://photos/cat.png"],
        &["queue", "get", HOSTILE],
        &["entity", "query", "rows", "--limit", HOSTILE],
        &["entity", HOSTILE],
        &["entity", "query", "rows", &format!("--{HOSTILE}")],
        &["table", "list", "--context", HOSTILE],
    ] {
        let failed = run(&server, args);
        assert!(!matches!(failed.code, None | Some(0)), "{args:?}: {failed:?}");
        one_line_each(&failed.errors, 1);
    }
    for (args, errors) in [
        // The mistake, and the number of mistakes.
        (&["serve", "--config", HOSTILE][..], 2),
        (&["compact", "--data-dir", HOSTILE], 1),
        (&["healthcheck", "--endpoint", HOSTILE], 1),
        (&["doctor", HOSTILE], 1),
    ] {
        let failed = Ended::of(bare(args));
        assert!(!matches!(failed.code, None | Some(0)), "{args:?}: {failed:?}");
        one_line_each(&failed.errors, errors);
    }
}

fn one_line_each(errors: &str, expected: usize) {
    assert!(errors.contains(r"a\u001b[2J\u009b2J\r\nerror: b"), "{errors}");
    assert!(!errors.replace('\n', "").contains(char::is_control), "{errors:?}");
    let lines = errors.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(lines, expected, "{errors}");
}
