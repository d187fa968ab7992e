//! The commands of docs/backup.md, run as they are in it.

use super::*;

#[test]
fn the_drill_of_the_page_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/backup.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<_> =
        page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let [drill, named, serve, copy_back, mistake, encryption, pruning] = blocks[..] else {
        panic!("{} blocks", blocks.len())
    };
    let backups = Backups::new();
    let server = backups.serve("data");
    // The name in the page, with the binary and the server of this test.
    let program = bare(&[]);
    let binary = program.get_program().to_str().unwrap();
    let run_at = |server: &Server, commands: &str| {
        let script = format!("set -e\ntrestle() {{ '{binary}' \"$@\"; }}\n{commands}");
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(script).current_dir(backups.folder.path());
        shell.env("TRESTLE_ENDPOINT", server.endpoint());
        let ended = Ended::of(shell);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    };
    let run_block = |commands: &str| run_at(&server, commands);
    run_block(drill);
    run_block(named);
    let found = succeeds(&server, &["entity", "query", "customersBefore", "-o", "jsonl"]).output;
    assert!(found.contains("Ada"), "{found}");
    // The server of the page, on free ports.
    let target = backups.text("backups");
    assert!(serve.starts_with("trestle serve --backup ./backups --listen 127.0.0.1:50061 "));
    let shown = Server::start(&["--backup", &target], &[]);
    run_block(&copy_back.replace("http://127.0.0.1:50061", &shown.endpoint()));
    let found = succeeds(&server, &["entity", "query", "customersThen", "-o", "jsonl"]).output;
    assert!(found.contains("Ada"), "{found}");
    let data = backups.text("followed");
    let target = backups.text("every-second");
    let settings =
        [("TRESTLE__BACKUP__TARGET", target.as_str()), ("TRESTLE__BACKUP__CONTINUOUS", "true")];
    let followed = Server::start(&["--data-dir", &data], &settings);
    // A person is not as fast as the first backup.
    let is_listed = || Ended::of(bare(&["backup", "list", &target])).output.contains("complete");
    assert!(crate::client::becomes(is_listed));
    run_at(&followed, mistake);
    assert_eq!(run(&followed, &["entity", "query", "invoices"]).code, Some(3));
    let before = backups.serve("before-the-delete");
    let found = succeeds(&before, &["entity", "query", "invoices", "-o", "jsonl"]).output;
    assert!(found.contains("990"), "{found}");
    run_block(encryption);
    run_block(pruning);

    let copy = backups.serve("restored");
    let found = succeeds(&copy, &["entity", "query", "orders", "-o", "jsonl"]).output;
    assert!(found.contains("990"), "{found}");
    assert_eq!(run(&server, &["entity", "query", "orders"]).code, Some(3));
}
