//! The commands of README, run as they are in it.

use std::{fs, path::Path};

use trestle_tests::{Ended, command};

use crate::client::server;

/// The first block of commands of README with this text: each command with its output.
fn commands(text: &str) -> Vec<(String, String)> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let blocks = readme.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let block = blocks.into_iter().find(|block| block.contains(text)).expect("in README");
    let commands = block.split("$ trestle ").skip(1);
    let commands = commands.map(|command| command.split_once('\n').unwrap());
    commands.map(|(command, output)| (command.to_owned(), output.to_owned())).collect()
}

/// The text without borders, nor times and what is after them.
fn stable(output: &str) -> Vec<Vec<&str>> {
    let rows = output.lines().filter(|line| line.starts_with(|c: char| c == '│' || c.is_ascii()));
    rows.map(|row| row.split(['│', '┆']).map(str::trim).take(3).collect()).collect()
}

#[test]
fn the_commands_on_blobs_print_what_is_in_readme() {
    let (server, directory) = (server(), tempfile::tempdir().unwrap());
    let pictures = directory.path().join("pictures");
    fs::create_dir(&pictures).unwrap();
    fs::write(pictures.join("cat.txt"), "a cat here").unwrap();
    fs::write(pictures.join("dog.txt"), "dog here\n").unwrap();

    let commands = commands("trestle blob container create");

    assert_eq!(commands.len(), 4);
    for (args, expected) in commands {
        let args: Vec<_> = args.split(' ').collect();
        let mut command = command(&server, &args);
        command.current_dir(directory.path());
        let ended = Ended::of(command);
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        let expected = if args.contains(&"cat") { "a cat here" } else { &expected };
        assert_eq!(stable(&ended.output), stable(expected), "{args:?}");
    }
}
