//! The commands of README and of the pages in docs: each is run, here or by a suite that is named here.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::tempdir;
use trestle_tests::{Ended, Server, bare_command, server_binary};

/// Key of the account `acme` that the pages use.
const KEY: &str = "a2V5IG9mIGFuIGFjY291bnQgb2YgdGhpcnR5LXR3byBieXRlcw==";
/// How a suite runs a command, so that the text of the suite shows it.
#[derive(Clone, Copy)]
enum Runs {
    /// It has the words of the command, without its arguments.
    Words,
    /// It has this text: the command in another form, or the page that it reads.
    By(&'static str),
    /// It reads the page, and runs the block of commands that has this text.
    Block(&'static str),
    /// It installs every package of the command, in the version that it names.
    Packages,
}

use Runs::{Block, By, Packages, Words};

/// The commands that other suites run: page, beginning of the command, suite, and how. An empty page is every page, and
/// one that ends with a slash every page of that folder.
const SUITES: [(&str, &str, &str, Runs); 53] = [
    ("docs/guides/", "", "tests/clients/guides/transcript.py", By("\"docs/guides\"")),
    (
        "",
        "python3 -m venv",
        "tests/clients/guides/test_virtual_environment.py",
        By("python3 -m venv"),
    ),
    ("", "go install ", "tests/clients/serve.sh", By("/^go install /p")),
    ("", "grpcurl ", "tests/clients/grpcurl/run.sh", By("\"$root\"/README.md \"$root\"/docs/*.md")),
    ("", "protoc -I. --go_out", "tests/clients/serve.sh", By("--go_out=gen")),
    ("", "protoc -I. --java_out", "tests/clients/java/run.sh", By("--java_out=")),
    ("", "cargo run --release -- serve", "tests/src/process.rs", By("\"serve\", \"--listen\"")),
    ("", "cargo ", ".ci/run", Words),
    ("", "bash .ci/run", ".ci/run", By("bash .ci/run")),
    ("", "just bench batch", ".ci/run", By("--bench budgets -- batch")),
    ("README.md", "export PATH", "tests/commands/examples.rs", Block("trestle table create")),
    (
        "README.md",
        "trestle table create orders",
        "tests/commands/examples.rs",
        Block("trestle table create"),
    ),
    (
        "README.md",
        "trestle entity insert orders",
        "tests/commands/examples.rs",
        Block("trestle table create"),
    ),
    (
        "README.md",
        "trestle entity query orders",
        "tests/commands/examples.rs",
        Block("trestle table create"),
    ),
    (
        "docs/queue-worker.md",
        "trestle queue create jobs",
        "tests/commands/examples.rs",
        Block("trestle queue create"),
    ),
    (
        "docs/queue-worker.md",
        "trestle message send jobs",
        "tests/commands/examples.rs",
        Block("trestle queue create"),
    ),
    (
        "docs/queue-worker.md",
        "trestle message receive jobs",
        "tests/commands/examples.rs",
        Block("trestle queue create"),
    ),
    (
        "docs/blobs.md",
        "trestle blob",
        "tests/commands/examples.rs",
        Block("trestle blob container create"),
    ),
    ("README.md", "pip install azure", "tests/clients/azure/python/requirements.txt", Packages),
    (
        "docs/grpc.md",
        "pip install grpcio-tools ",
        "tests/clients/python/requirements.txt",
        Packages,
    ),
    (
        "docs/grpc.md",
        "python -m grpc_tools",
        "tests/clients/python/test_grpc_page.py",
        Block("grpc_tools"),
    ),
    (
        "docs/staging.md",
        "docker compose -f deploy/compose.staging.yaml exec",
        "tests/staging/test_documents.py",
        By("exec gateway "),
    ),
    (
        "docs/staging.md",
        "deploy/secrets.sh",
        "tests/staging/test_documents.py",
        By("DEPLOY / \"secrets.sh\""),
    ),
    (
        "docs/production.md",
        "deploy/kustomize/example/secrets.sh",
        "tests/staging/test_kustomize.py",
        By("\"secrets.sh\""),
    ),
    (
        "docs/scale-out.md",
        "deploy/secrets.sh",
        "tests/staging/test_distributed.py",
        By("DEPLOY / \"secrets.sh\""),
    ),
    (
        "docs/scale-out.md",
        "docker compose -f deploy/compose.distributed.yaml up",
        "tests/staging/test_distributed.py",
        By("DEPLOY / \"compose.distributed.yaml\""),
    ),
    (
        "docs/scale-out.md",
        "deploy/kustomize/distributed/secrets.sh",
        "tests/staging/test_kustomize.py",
        By("folder / \"secrets.sh\""),
    ),
    ("docs/scale-out.md", "trestle store copy", "tests/commands/store_copy.rs", Words),
    (
        "docs/scale-out.md",
        "kubectl ",
        "tests/staging/test_kustomize.py",
        By("\"kustomize\" / \"distributed\""),
    ),
    ("", "docker compose", "tests/staging/stack.py", By("self.compose(\"up\"")),
    (
        "docs/tables.md",
        "trestle table import orders",
        "tests/commands/mapped.rs",
        Block("customer,number,total"),
    ),
    (
        "docs/tables.md",
        "trestle entity get orders",
        "tests/commands/mapped.rs",
        Block("customer,number,total"),
    ),
    ("docs/tables.md", "trestle ", "tests/walkthrough/debian_packages.sh", Words),
    (
        "docs/tables.md",
        "tests/walkthrough",
        "tests/walkthrough/debian_packages.sh",
        By("/package_index.sh\""),
    ),
    ("docs/backup.md", "", "tests/commands/backup/documented.rs", By("../docs/backup.md")),
    (
        "docs/logs.md",
        "trestle log create dpkg",
        "tests/clients/logs/test_pages.py",
        Block("trestle log create dpkg"),
    ),
    (
        "docs/logs.md",
        "trestle log append dpkg ",
        "tests/clients/logs/test_pages.py",
        Block("trestle log create dpkg"),
    ),
    (
        "docs/logs.md",
        "trestle log read dpkg ",
        "tests/clients/logs/test_pages.py",
        Block("trestle log create dpkg"),
    ),
    ("docs/logs.md", "", "tests/clients/logs/test_pages.py", By("blocks(\"docs/logs.md\")")),
    (
        "docs/install.md",
        "sha256sum ",
        "tests/staging/test_packages.py",
        By("documented(\"From a release\")"),
    ),
    (
        "docs/install.md",
        "tar ",
        "tests/staging/test_packages.py",
        By("documented(\"From a release\")"),
    ),
    (
        "docs/install.md",
        "./trestle-",
        "tests/staging/test_packages.py",
        By("documented(\"From a release\")"),
    ),
    ("docs/install.md", "apt-get ", "tests/staging/test_packages.py", By("dpkg --install")),
    (
        "docs/install.md",
        "systemctl ",
        "tests/staging/test_packages.py",
        By("systemd-analyze verify"),
    ),
    ("docs/install.md", "docker load", "tests/staging/test_packages.py", By("\"-image.tar.gz\"")),
    (
        "docs/production.md",
        "kubectl ",
        "tests/staging/test_kustomize.py",
        By("\"kustomize\" / \"example\""),
    ),
    ("docs/staging.md", "", "tests/staging/test_documents.py", By("in STAGING")),
    (
        "docs/queue-worker.md",
        "",
        "tests/scenarios/queue/worked_example.rs",
        By("../docs/queue-worker.md"),
    ),
    ("docs/migrating.md", "trestle import azurite", "tests/migrate/azurite.rs", Words),
    ("docs/migrating.md", "trestle import azure", "tests/clients/import/import.test.js", Words),
    ("docs/migrating.md", "trestle import trestle", "tests/migrate/from_server.rs", Words),
    ("docs/migrating.md", "export AZURE", "tests/migrate/azure.rs", Words),
    ("docs/tls.md", "", "tests/commands/tls_page.rs", By("docs/tls.md")),
];
/// The server that the page on installation starts, and how it is started here: on free ports, and stopped.
const SERVE: (&str, &str) = (
    "trestle serve --data-dir /var/lib/trestle",
    "timeout --preserve-status --signal=TERM 5 trestle serve --data-dir data --listen 127.0.0.1:0 \
     --admin 127.0.0.1:0 --azure-table off --azure-queue off --azure-blob off",
);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// README, CONTRIBUTING and the pages in docs and its guides, by their paths.
fn pages() -> BTreeMap<String, String> {
    let files = ["docs", "docs/guides"].into_iter().flat_map(|folder| {
        let files = fs::read_dir(root().join(folder)).unwrap();
        files.map(move |entry| format!("{folder}/{}", entry.unwrap().file_name().display()))
    });
    let pages = files.filter(|path| path.ends_with(".md"));
    let pages = pages.chain(["README.md", "CONTRIBUTING.md"].map(str::to_owned));
    pages.map(|path| (path.clone(), fs::read_to_string(root().join(path)).unwrap())).collect()
}

/// The commands in the shell blocks of a page, with the lines that continue them.
fn commands(text: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let (mut block, mut is_open) = (None, false);
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            block = block.is_none().then(|| language.to_owned());
            is_open = false;
            continue;
        }
        let line = match block.as_deref() {
            Some("sh" | "bash") => line,
            Some("console") if is_open => line,
            Some("console") => match line.strip_prefix("$ ") {
                Some(command) => command,
                None => continue,
            },
            _ => continue,
        };
        match commands.last_mut().filter(|_| is_open) {
            Some(command) => *command = format!("{command}\n{line}"),
            None if line.trim().is_empty() => continue,
            None => commands.push(line.to_owned()),
        }
        let command = commands.last().unwrap();
        is_open = command.ends_with('\\') || command.matches('\'').count() % 2 == 1;
    }
    commands
}

/// The suite that runs a command, and how.
fn suite(page: &str, command: &str) -> Option<(&'static str, Runs)> {
    let (_, _, suite, runs) = SUITES.iter().find(|row| is_for(row, page, command))?;
    Some((suite, *runs))
}

/// Whether a row of the suites is for a command of a page.
fn is_for((of, prefix, ..): &(&str, &str, &str, Runs), page: &str, command: &str) -> bool {
    let is_page = of.is_empty() || *of == page || of.ends_with('/') && page.starts_with(of);
    is_page && command.starts_with(prefix)
}

/// The words of a command that distinguish it: its subcommands and the names behind them, up to an argument; the
/// variable of an export.
fn words(command: &str) -> Vec<&str> {
    let is_name = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    let command = command.trim_start_matches("just ").split('#').next().unwrap_or_default();
    let arguments = command.split_whitespace().skip(1);
    let arguments = arguments.map(|word| word.split('=').next().unwrap_or_default());
    arguments.take_while(is_name).collect()
}

/// Whether the text of a suite has a word as a whole.
fn has_word(suite: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    suite.split(|c: char| !is_part(c)).any(|found| found == word)
}

/// Why a suite does not run a command of a page, as far as its text shows.
fn missing(suite: &str, runs: Runs, (page, text): (&str, &str), command: &str) -> Option<String> {
    let words = words(command);
    match runs {
        Words if words.is_empty() => Some("no words distinguish it".to_owned()),
        Words => words.into_iter().find(|word| !has_word(suite, word)).map(str::to_owned),
        By(part) => (!suite.contains(part)).then(|| part.to_owned()),
        Packages => {
            let mut lines = words.iter().skip(1).map(|package| format!("{package}=="));
            lines.find(|start| !suite.lines().any(|line| line.starts_with(start.as_str())))
        }
        Block(part) => {
            let mut blocks = text.split("```").skip(1).step_by(2);
            let first = blocks.find(|block| block.contains(part)).unwrap_or_default();
            let is_run = first.contains(command) && suite.contains(&format!("\"{part}\""));
            (!is_run || !suite.contains(page)).then(|| part.to_owned())
        }
    }
}

/// The commands of a page that no other suite runs.
fn own(page: &str, text: &str) -> Vec<String> {
    let commands = commands(text).into_iter();
    commands.filter(|command| suite(page, command).is_none()).collect()
}

/// Runs commands in one shell, against a server, in a folder with the files that pages assume.
fn run(page: &str, commands: &[String]) {
    let folder = tempdir().unwrap();
    for key in ["key", "acme.key"] {
        fs::write(folder.path().join(key), KEY).unwrap();
    }
    fs::write(folder.path().join("trestle.toml"), "[storage]\nephemeral = false\n").unwrap();
    let settings = [
        ("TRESTLE__ACCOUNTS__ACME__KEY1", KEY),
        ("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "anywhere"),
    ];
    let server = Server::start(&["--ephemeral"], &settings);
    let target = folder.path().join("target/release");
    fs::create_dir_all(&target).unwrap();
    std::os::unix::fs::symlink(server_binary(), target.join("trestle")).unwrap();
    let script = commands.join("\n");
    let script = script.replace(SERVE.0, SERVE.1);
    let script = script.replace("https://tables.example:50051", &server.endpoint());
    let prepare = "trestle table create orders; trestle queue create jobs; trestle message send jobs one\n\
                   trestle sas table orders --permissions r --expiry 8h --account acme \
                   --account-key-file key >token\n";
    let path = std::env::join_paths([target].into_iter().chain(std::env::split_paths(&env_path())));
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("set -euo pipefail\n{{ {prepare}}} >/dev/null\n{script}")]);
    shell.current_dir(folder.path()).env("PATH", path.unwrap()).env("HOME", folder.path());
    shell.env("TRESTLE_ENDPOINT", server.endpoint());
    shell.env("TRESTLE__SERVER__LISTEN", server.address("grpc"));
    let ended = Ended::of(shell);
    assert_eq!(ended.code, Some(0), "{page}: {script}\n{ended:?}");
}

#[expect(clippy::disallowed_methods, reason = "the shell needs the programs of the system")]
fn env_path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

#[test]
fn every_command_of_the_pages_runs_here_or_in_a_suite() {
    let pages = pages();
    let recipes = fs::read_to_string(root().join("justfile")).unwrap();
    let mut ran = 0;
    for (page, text) in &pages {
        for command in commands(text) {
            if let Some(recipe) = command.strip_prefix("just ") {
                let recipe = recipe.split(' ').next().unwrap();
                let has = |line: &str| line.split([' ', ':']).next() == Some(recipe);
                assert!(recipes.lines().any(has), "{page}: {command}");
            }
        }
        let own = own(page, text);
        ran += own.len();
        if !own.is_empty() {
            run(page, &own);
        }
    }
    assert!(ran >= 20, "{ran} commands were found");
}

#[test]
fn the_suites_have_the_commands_that_they_are_named_for() {
    let (mut problems, mut found) = (Vec::new(), [false; SUITES.len()]);
    for (page, text) in &pages() {
        for command in commands(text) {
            let Some((path, runs)) = suite(page, &command) else { continue };
            let suite = fs::read_to_string(root().join(path)).expect(path);
            let missing = missing(&suite, runs, (page, text), &command);
            problems
                .extend(missing.map(|what| format!("{path} has no `{what}`: {page}: {command}")));
            let used = SUITES.iter().position(|row| is_for(row, page, &command));
            found[used.expect("it has a suite")] = true;
        }
    }
    let entries = SUITES.iter().zip(found).filter(|(_, is_used)| !is_used);
    let unused: Vec<_> =
        entries.map(|((page, prefix, ..), _)| format!("{page}: {prefix}")).collect();

    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(unused.is_empty(), "no page has: {}", unused.join("\n"));
}

#[test]
fn a_row_of_a_folder_is_for_each_page_in_it() {
    let (folder, page) =
        (("docs/guides/", "a ", "suite", Words), ("docs/logs.md", "a ", "suite", Words));

    assert!(is_for(&folder, "docs/guides/paging.md", "a b"));
    assert!(!is_for(&folder, "docs/guides/paging.md", "b"));
    assert!(!is_for(&folder, "docs/logs.md", "a b"));
    assert!(is_for(&page, "docs/logs.md", "a b") && !is_for(&page, "docs/logs.md/x.md", "a b"));
}

#[test]
fn a_suite_without_a_command_is_found() {
    let page = ("README.md", "```sh\na b\n```\n```sh\na b\nc d\n```\n");
    for (suite, runs, command, is_missing) in [
        ("run(\"table\", \"create\")", Words, "trestle table create --quiet # x", false),
        ("run(\"tables\", \"create\")", Words, "trestle table create", true),
        ("none", Words, "trestle --version", true),
        ("-- batch", By("-- batch"), "just bench batch", false),
        ("KEY_NAME", Words, "export KEY=1", true),
        ("dpkg -i", By("dpkg -i"), "apt-get install x", false),
        ("dpkg", By("dpkg -i"), "apt-get install x", true),
        ("a-b==1\nc==2", Packages, "pip install a-b c", false),
        ("xa-b==1\nc==2", Packages, "pip install a-b c", true),
        ("a-b==1", Packages, "pip install a-b c", true),
        ("README.md \"a b\"", Block("a b"), "a b", false),
        ("README.md \"a b\"", Block("a b"), "c d", true),
        ("README.md \"c d\"", Block("c d"), "a b", false),
        ("\"c d\"", Block("c d"), "a b", true),
    ] {
        let missing = missing(suite, runs, page, command);
        assert_eq!(missing.is_some(), is_missing, "{suite}: {command}: {missing:?}");
    }
}

/// The words of a command in running text, up to an argument.
fn subcommand(inline: &str) -> Vec<&str> {
    let is_word = |word: &&str| word.bytes().all(|b| b.is_ascii_lowercase());
    inline.split(' ').skip(1).take_while(is_word).collect()
}

#[test]
fn commands_in_running_text_exist() {
    let mut checked = 0;
    for (page, text) in &pages() {
        let spans =
            text.split('`').filter(|span| span.starts_with("trestle ") && !span.contains('\n'));
        for span in spans {
            let mut words = subcommand(span);
            // An argument in lower case, such as the name of a shell, has no help of its own.
            words.truncate(3);
            let help = bare_command(&[&words[..], &["--help"]].concat());
            let ended = Ended::of(help);
            assert_eq!(ended.code, Some(0), "{page}: `{span}`: {ended:?}");
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked} commands were found");
}

#[test]
fn a_command_has_the_lines_that_continue_it() {
    let page = "`x`\n```sh\na \\\n  b\nc '{\n  d}' e\n\n```\n```console\n$ f\noutput\n```\n```js\ng\n```\n";

    assert_eq!(commands(page), ["a \\\n  b", "c '{\n  d}' e", "f"]);
}
