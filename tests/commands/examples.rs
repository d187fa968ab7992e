//! The first commands of README and of the guides, run as they are in them.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use trestle_tests::{Ended, Server, command, server_binary};

use crate::client::server;

/// The first block of commands of a page with this text.
fn block(page: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let content = fs::read_to_string(path).expect(page);
    let blocks = content.split("```console\n").skip(1);
    let mut blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    blocks.find(|block| block.contains(text)).expect(page).to_owned()
}

/// The commands of that block, each with its output.
fn commands(page: &str, text: &str) -> Vec<(String, String)> {
    let block = block(page, text);
    let commands = block.split("$ trestle ").skip(1);
    let commands = commands.map(|command| command.split_once('\n').unwrap());
    commands.map(|(command, output)| (command.to_owned(), output.to_owned())).collect()
}

/// The words of a command line, without their quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

/// Fields of a message whose values differ from run to run.
const VARIABLE: [&str; 5] =
    ["Message id", "Insertion time", "Pop receipt", "Expiration time", "Next visible time"];

/// The text without borders, nor ids, times and what is after them.
fn stable(output: &str) -> Vec<Vec<&str>> {
    let rows = output.lines().filter(|line| line.starts_with(|c: char| c == '│' || c.is_ascii()));
    rows.map(|row| match row.starts_with('│') {
        true => {
            let cells: Vec<_> = row.split(['│', '┆']).map(str::trim).take(3).collect();
            let is_variable = cells.get(1).is_some_and(|name| VARIABLE.contains(name));
            cells.into_iter().take(if is_variable { 2 } else { 3 }).collect()
        }
        false if row.starts_with("sent ") => vec!["sent"],
        false => row.split('=').take(1).collect(),
    })
    .collect()
}

/// Runs the commands of a block as on a terminal, and compares what they print with the page, where it has that.
fn print_what_is_in_page(server: &Server, folder: &Path, (page, text): (&str, &str)) -> usize {
    let commands = commands(page, text);
    for (args, expected) in &commands {
        let args = words(args);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let mut command = command(server, &args);
        command.current_dir(folder).args(["-o", "table"]);
        let ended = Ended::of(command);
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        if !expected.trim().is_empty() {
            let shown = format!("{}{}", ended.output, ended.errors);
            assert_eq!(stable(&shown), stable(expected), "{args:?}");
        }
    }
    commands.len()
}

#[test]
fn the_commands_print_what_is_in_the_pages() {
    let (server, directory) = (server(), tempfile::tempdir().unwrap());
    let pictures = directory.path().join("pictures");
    fs::create_dir(&pictures).unwrap();
    fs::write(pictures.join("cat.txt"), "a cat here").unwrap();
    fs::write(pictures.join("dog.txt"), "dog here\n").unwrap();
    let dpkg = "2026-11-25 09:14:02 startup archives unpack\n\
                2026-11-25 09:14:02 install libfoo:amd64 <none> 1.2-3\n\
                2026-11-25 09:14:05 status installed libfoo:amd64 1.2-3\n";
    fs::write(directory.path().join("dpkg.log"), dpkg).unwrap();
    let run = |page, text| print_what_is_in_page(&server, directory.path(), (page, text));

    assert_eq!(run("README.md", "trestle table create"), 4);
    assert_eq!(run("docs/queue-worker.md", "trestle queue create"), 3);
    assert_eq!(run("docs/blobs.md", "trestle blob container create"), 4);
    assert_eq!(run("docs/logs.md", "trestle log create"), 3);
}

#[test]
fn the_binary_that_was_compiled_is_a_command_of_the_second_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("target/release");
    fs::create_dir_all(&folder).unwrap();
    symlink(server_binary(), folder.join("trestle")).unwrap();
    let block = block("README.md", "trestle table create");
    let line = block.lines().next().and_then(|line| line.strip_prefix("$ ")).unwrap();

    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("{line}\ncommand -v trestle && trestle version")]);
    let ended = Ended::of({
        shell.current_dir(directory.path());
        shell
    });

    let found = folder.join("trestle");
    let expected = format!("{}\ntrestle 0.1.0 (revision unknown)\n", found.display());
    assert_eq!((ended.code, ended.output), (Some(0), expected), "{}", ended.errors);
}
