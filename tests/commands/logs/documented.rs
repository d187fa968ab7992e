//! The commands of docs/logs.md, run as they are in it.

use std::{fs, path::Path, process::Command};

use crate::client::server;

const DPKG: &str = "\
2026-11-25 09:14:02 startup archives unpack
2026-11-25 09:14:02 install libfoo:amd64 <none> 1.2-3
2026-11-25 09:14:05 status installed libfoo:amd64 1.2-3
";

#[test]
fn the_commands_from_the_shell_work() {
    let (server, directory) = (server(), tempfile::tempdir().unwrap());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/logs.md");
    let page = fs::read_to_string(page).unwrap();
    let section = page.split("## From the shell").nth(1).expect("the section exists");
    let section = section.split("\n## ").next().unwrap();
    let blocks: Vec<_> =
        section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 4, "{section}");
    let path = |name: &str| directory.path().join(name);
    fs::write(path("dpkg.log"), DPKG).unwrap();
    let json = r#"{"time":"2026-11-25T09:14:07Z","level":"error","msg":"payment failed","http.route":"/pay"}"#;
    fs::write(path("orders.jsonl"), format!("{json}\n")).unwrap();
    // The name in the page, with the binary and the server of this test.
    let program = crate::client::bare(&[]);
    let binary = program.get_program().to_str().unwrap();
    let script =
        format!("set -e -o pipefail\ntrestle() {{ '{binary}' \"$@\"; }}\n{}", blocks.concat());
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(script).current_dir(directory.path());
    shell.env("TRESTLE_ENDPOINT", server.endpoint());
    let ended = trestle_tests::Ended::of(shell);

    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.output.contains("error payment failed http.route=/pay"), "{ended:?}");
    assert!(ended.output.contains("status installed libfoo:amd64 1.2-3"), "{ended:?}");
    assert!(ended.output.contains(".parquet"), "{ended:?}");
}
