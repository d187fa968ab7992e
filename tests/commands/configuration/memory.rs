//! A store in memory beside a data directory: the layer that decides, in every command.

use std::{fs, path::Path};

use tempfile::tempdir;
use trestle_tests::Server;

use super::at;
use crate::client::Ended;

const RULE: &str =
    "storage.data_dir: has no effect with storage.ephemeral = true: remove one of them";
const MEMORY: &str = "ephemeral = true\n";
const DIRECTORY: &str = "data_dir = \"of-file\"\n";
const BOTH: &str = "ephemeral = true\ndata_dir = \"of-file\"\n";

/// A command with a file of this section `storage`, and variables of its keys.
fn ended(folder: &Path, args: &[&str], file: &str, variables: &[(&str, &str)]) -> Ended {
    let path = folder.join("layers.toml");
    fs::write(&path, format!("[storage]\n{file}")).unwrap();
    let mut command = at(folder, &[args, &["--config", "layers.toml"]].concat());
    for (key, value) in variables {
        command.env(format!("TRESTLE__STORAGE__{key}"), value);
    }
    Ended::of(command)
}

#[test]
fn the_highest_layer_with_a_directory_or_memory_decides() {
    let (eph, dir) = (("EPHEMERAL", "true"), ("DATA_DIR", "of-variable"));
    let disk = ("EPHEMERAL", "false");
    let (flag_eph, flag_dir) = (&["--ephemeral"][..], &["--data-dir", "of-flag"][..]);
    let folder = tempdir().unwrap();
    for (file, variables, flags, expected) in [
        (MEMORY, &[dir][..], &[][..], Some("of-variable")),
        (MEMORY, &[("DATA_DIR", "./data")], &[], Some("./data")),
        (MEMORY, &[disk, dir], &[], Some("of-variable")),
        (MEMORY, &[], flag_dir, Some("of-flag")),
        (MEMORY, &[("DATA_DIR", "")], &[], None),
        (DIRECTORY, &[eph], &[], None),
        (DIRECTORY, &[], flag_eph, None),
        (DIRECTORY, &[("EPHEMERAL", "")], &[], Some("of-file")),
        (BOTH, &[dir], &[], Some("of-variable")),
        (BOTH, &[eph], &[], None),
        (BOTH, &[disk], &[], Some("of-file")),
        (BOTH, &[], flag_dir, Some("of-flag")),
        (BOTH, &[], flag_eph, None),
        ("", &[dir], flag_eph, None),
        ("", &[eph], flag_dir, Some("of-flag")),
        ("", &[eph, dir], flag_eph, None),
        (BOTH, &[eph, dir], flag_dir, Some("of-flag")),
    ] {
        let case = format!("{file:?} {variables:?} {flags:?}");
        let checked =
            ended(folder.path(), &[&["config", "check"], flags].concat(), file, variables);
        let printed =
            ended(folder.path(), &[&["config", "print"], flags].concat(), file, variables);

        assert_eq!((checked.code, printed.code), (Some(0), Some(0)), "{case}: {checked:?}");
        let line = |key: &str| printed.output.lines().find(|line| line.starts_with(key));
        let ephemeral = format!("ephemeral = {}", expected.is_none());
        assert_eq!(line("ephemeral"), Some(&*ephemeral), "{case}");
        let directory = expected.map(|directory| format!("data_dir = \"{directory}\""));
        assert_eq!(line("data_dir"), directory.as_deref(), "{case}");
    }
}

#[test]
fn memory_and_a_directory_in_one_layer_are_a_mistake_for_every_command() {
    let folder = tempdir().unwrap();
    let default = "ephemeral = true\ndata_dir = \"./data\"\n";
    let of_variables = [("EPHEMERAL", "true"), ("DATA_DIR", "of-variable")];
    let empty = [("EPHEMERAL", ""), ("DATA_DIR", "")];
    let variable = "TRESTLE__STORAGE__DATA_DIR";
    for (file, variables, place) in [
        ("", &of_variables[..], variable),
        (MEMORY, &of_variables, variable),
        (DIRECTORY, &of_variables, variable),
        (BOTH, &of_variables, variable),
        (BOTH, &empty, "layers.toml:3"),
        (default, &[], "layers.toml:3"),
    ] {
        for args in [
            &["config", "check"][..],
            &["config", "print"],
            &["doctor"],
            &["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
            &["repair"],
            &["compact"],
        ] {
            let rejected = ended(folder.path(), args, file, variables);

            let text = format!("{}{}", rejected.output, rejected.errors);
            assert_eq!(rejected.code, Some(2), "{args:?} {file:?} {variables:?}: {text}");
            assert!(text.contains(&format!("{place}: {RULE}")), "{args:?} {file:?}: {text}");
        }
    }
}

#[test]
fn a_server_and_the_commands_for_its_store_use_the_directory_of_a_variable() {
    let folder = tempdir().unwrap();
    let (file, stored) = (folder.path().join("layers.toml"), folder.path().join("stored"));
    fs::write(&file, "[storage]\nephemeral = true\n").unwrap();
    let directory = stored.to_str().unwrap();
    let variable = [("TRESTLE__STORAGE__DATA_DIR", directory)];

    let server = Server::start(&["--config", file.to_str().unwrap()], &variable);
    drop(server);

    assert!(fs::read_dir(&stored).unwrap().next().is_some(), "nothing in {directory}");
    // Only a directory has disk space.
    for (command, shown) in
        [("doctor", "disk.space"), ("repair", directory), ("compact", directory)]
    {
        let ended = ended(folder.path(), &[command], MEMORY, &[("DATA_DIR", directory)]);
        assert!(ended.output.contains(shown), "{command}: {ended:?}");
    }
}

#[test]
fn a_store_in_memory_is_neither_repaired_nor_compacted() {
    let folder = tempdir().unwrap();
    for command in ["repair", "compact"] {
        let rejected = ended(folder.path(), &[command], DIRECTORY, &[("EPHEMERAL", "true")]);

        assert_eq!(rejected.code, Some(2), "{rejected:?}");
        assert!(rejected.errors.contains("storage.ephemeral: true, so no store"), "{rejected:?}");
    }
}
