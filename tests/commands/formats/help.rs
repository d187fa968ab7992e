//! Help, and arguments for clients.

use super::*;

#[test]
fn arguments_for_clients_are_accepted_before_and_after_the_command_but_not_by_a_server() {
    let server = with_rows();
    let endpoint = server.endpoint();

    for args in [
        &["-o", "jsonl", "--endpoint", &endpoint, "table", "list"][..],
        &["table", "--endpoint", &endpoint, "-o", "jsonl", "list"],
        &["table", "list", "-o", "jsonl", "--endpoint", &endpoint],
    ] {
        let listed = Ended::of(bare(args));
        assert_eq!(listed.code, Some(0), "{listed:?}");
        assert!(listed.output.starts_with("{\"table\":\"rows\""), "{listed:?}");
    }
    let refused = Ended::of(bare(&["--json", "serve", "--ephemeral"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let help = Ended::of(bare(&["serve", "--help"])).output;
    assert!(!help.contains("--endpoint") && !help.contains("--account"), "{help}");
}

#[test]
fn local_commands_have_the_forms_and_the_quiet_of_clients_where_those_apply() {
    let folder = tempfile::tempdir().unwrap();
    let man = folder.path().to_str().unwrap();

    for (args, output) in [
        (&["version", "-o", "json"][..], "{\"version\":\"0.1.0\",\"revision\":\"unknown\"}\n"),
        (&["-q", "version", "--json"], "{\"version\":\"0.1.0\",\"revision\":\"unknown\"}\n"),
        (&["version", "-q", "-o", "table"], "trestle 0.1.0 (revision unknown)\n"),
        (&["man", man, "-q"], ""),
        (&["config", "check", "-q"], ""),
    ] {
        let ended = Ended::of(bare(args));
        let found = (ended.code, ended.output.as_str(), ended.errors.as_str());
        assert_eq!(found, (Some(0), output, ""), "{args:?}");
    }
    let (quiet, print) = (&["-q", "config", "print"][..], &["config", "print"][..]);
    assert_eq!(Ended::of(bare(quiet)).output, Ended::of(bare(print)).output);
    assert!(Ended::of(bare(&["completions", "bash", "-q"])).output.contains("trestle"));
    for (args, text) in [
        (&["man", man, "-o", "json"][..], "`trestle man` takes no --output\""),
        (&["config", "print", "-v"], "`trestle config` takes no --verbose\n"),
        (&["serve", "-q"], "`trestle serve` takes no --quiet\n"),
        (
            &["version", "-o", "csv"],
            "`trestle version` has no form csv: use json, jsonl or plain\n",
        ),
        (&["context", "list", "-v"], "`trestle context list` takes no --verbose\n"),
        (&["context", "list", "--timeout", "1s"], "`trestle context list` takes no --timeout\n"),
        (
            &["man", man, "--endpoint", "h:1"],
            "`trestle man` takes no --endpoint: it calls no server",
        ),
        (&["sas", "account", "--endpoint", "h:1"], "takes no --endpoint: it calls no server"),
    ] {
        let ended = Ended::of(bare(args));
        assert_eq!((ended.code, ended.output.as_str()), (Some(2), ""), "{args:?}");
        assert!(ended.errors.contains(text), "{text}: {ended:?}");
    }
}

#[test]
fn the_help_has_the_exit_codes_of_its_command_and_the_arguments_that_it_accepts() {
    let help = |args: &[&str]| Ended::of(bare(&[args, &["--help"]].concat())).output;

    for command in [&[][..], &["sas"], &["sas", "queue"], &["status"], &["table", "list"]] {
        let help = help(command);
        assert!(help.contains("Exit codes") && help.contains("    0  done\n"), "{help}");
    }
    let rows = "some rows were not written";
    for (command, has_rows) in [
        (&["table", "import"][..], true),
        (&["import", "azurite"], true),
        (&["import", "trestle"], true),
        (&["table", "list"], false),
        (&["context", "set"], false),
        (&["bench", "table"], false),
    ] {
        assert_eq!(help(command).contains(rows), has_rows, "{command:?}");
    }
    for command in [&["sas", "queue"][..], &["sas", "explain"], &["doctor"], &["context", "list"]] {
        assert!(!help(command).contains("--endpoint <ADDRESS>"), "{command:?}");
    }
    assert!(help(&["sas", "queue"]).contains("--account-key-file"));
    for command in [&["doctor"][..], &["version"], &["compact"], &["store", "copy"]] {
        assert!(help(command).contains("--output"), "{command:?}");
    }
    assert!(help(&["man"]).contains("--quiet"));
    let source = help(&["import", "trestle"]);
    for text in ["--source-context <NAME>", "--table <NAME[=NEW]>", "[ADDRESS]", "ordering group"] {
        assert!(source.contains(text), "{text}: {source}");
    }
}

#[test]
fn the_flags_of_every_client_command_are_shown_once() {
    let help = |args: &[&str]| Ended::of(bare(args)).output;
    let options = help(&["options"]);
    let shared = ["--endpoint <ADDRESS>", "--output <FORMAT>", "- csv:", "--account-key-file"];
    let note = "`trestle options` shows";

    for text in [&shared[..], &["Server and output:", "Credentials:", "--timeout <TIME>"]].concat()
    {
        assert!(options.contains(text), "{text}: {options}");
    }
    assert!(!options.contains("--help") && !options.contains("Usage"), "{options}");
    for args in [
        &["table", "list", "--help"][..],
        &["table", "list", "-h"],
        &["help", "table", "list"],
        &["table", "--help"],
        &["status", "--help"],
        &["log", "append", "--help"],
        &["backup", "diff", "--help"],
        &["--help"],
    ] {
        let shown = help(args);
        assert_eq!(shown.matches(note).count(), 1, "{args:?}: {shown}");
        assert!(shared.iter().all(|text| !shown.contains(text)), "{args:?}: {shown}");
        assert!(shown.contains("--help") && shown.contains("Exit codes"), "{args:?}: {shown}");
    }
    for args in [&[][..], &["table"], &["import"]] {
        let shown = Ended::of(bare(args)).errors;
        assert_eq!(shown.matches(note).count(), 1, "{args:?}: {shown}");
        assert!(shared.iter().all(|text| !shown.contains(text)), "{args:?}: {shown}");
    }
    // What a context stores, and what a signature is made with, are the subject of these commands.
    assert!(help(&["context", "set", "--help"]).contains("--endpoint <ADDRESS>"));
    for args in [&["sas", "table", "--help"][..], &["serve", "--help"], &["version", "--help"]] {
        assert!(!help(args).contains(note), "{args:?}");
    }
    let wrong = Ended::of(bare(&["table", "list", "--endpont", "h:1"]));
    assert!(wrong.errors.contains("--endpoint"), "{wrong:?}");
}

#[test]
fn the_exit_codes_of_a_command_of_the_server_have_a_line_each_on_a_narrow_terminal() {
    for (command, codes) in [
        (&["queue", "policy", "set"][..], "no such queue or message"),
        (&["table", "properties", "get"], "no such table or entity"),
        (&["config", "check"], "    0  done; for check: the configuration is valid\n    1  "),
        (&["completions"], "    1  the output cannot be written\n"),
        (&["repair"], "    3  the data directory is in use\n    4  "),
        (&["compact"], "    3  the data directory is in use\n    4  "),
        (&["store", "copy"], "    2  usage: a malformed flag or value, no store in the source"),
        (&["doctor"], "    1  it would not\n    2  "),
        (&["healthcheck"], "    2  wrong arguments or configuration"),
        (&["serve"], "    5  an address cannot be bound\n    6  "),
    ] {
        let mut help = bare(&[command, &["--help"]].concat());
        help.env("COLUMNS", "80");
        let help = Ended::of(help).output;
        assert_eq!(help.matches("Exit codes").count(), 1, "{command:?}: {help}");
        assert!(help.contains(codes), "{command:?}: {help}");
    }
}

#[test]
fn the_help_names_existing_commands_and_where_a_variable_counts() {
    let help = |args: &[&str]| {
        let text = Ended::of(bare(&[args, &["--help"]].concat())).output;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };

    let serve = help(&["serve"]);
    let blobs = "Address of blobs for clients of Azure Storage; port 0 selects a free one, `off` none \
                 [default: 127.0.0.1:10000]";
    assert!(serve.contains(blobs), "{serve}");
    assert!(serve.contains("Address of queues for clients of Azure Storage; port 0"), "{serve}");
    assert!(help(&["sas", "queue"]).contains("`trestle message` does"));
    let check = help(&["healthcheck"]);
    assert!(
        check.contains("that of --config, else TRESTLE_ENDPOINT, else that of its configuration"),
        "{check}"
    );
}

#[test]
fn a_command_without_its_subcommand_lists_those_of_the_help() {
    for (noun, listed, earlier) in [("table", "export", "upsert"), ("queue", "drain", "receive")] {
        for more in [&["-q"][..], &["--json"]] {
            let ended = Ended::of(bare(&[&[noun], more].concat()));

            assert_eq!(ended.code, Some(2), "{ended:?}");
            let (has, has_earlier) =
                (ended.errors.contains(listed), ended.errors.contains(earlier));
            assert!(has && !has_earlier, "{noun} {more:?}: {ended:?}");
        }
        let ended = Ended::of(bare(&["--json", noun]));
        assert!(ended.errors.contains(&format!("`{noun}` requires a command")), "{ended:?}");
    }
}

#[test]
fn the_help_of_a_report_has_its_forms_only() {
    for (command, has_csv) in
        [(&["version", "--help"][..], false), (&["doctor", "--help"], false), (&["options"], true)]
    {
        let help = Ended::of(bare(command)).output;

        assert!(help.contains("- jsonl:"), "{command:?}: {help}");
        assert_eq!(help.contains("- csv:"), has_csv, "{command:?}: {help}");
    }
}
