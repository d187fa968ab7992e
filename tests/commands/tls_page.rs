//! The page on TLS, from its first certificate on: its commands, its settings, and what it says of errors.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use tempfile::TempDir;
use trestle_tests::{Ended, Server, server_binary};

const PAGE: &str = "docs/tls.md";
/// The address of the page, in place of which a server has a free port.
const ADDRESS: &str = "https://localhost:50051";
/// The server of the page, which is started here.
const SERVE: &str = "trestle serve --config trestle.toml --data-dir ./data\n";

/// The page, and a folder where its files are.
struct Followed {
    text: String,
    folder: TempDir,
}

impl Followed {
    fn new() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
        let (text, folder) = (fs::read_to_string(path).unwrap(), tempfile::tempdir().unwrap());
        symlink(server_binary(), folder.path().join("trestle")).unwrap();
        let followed = Self { text, folder };
        for block in followed.blocks("toml") {
            let (name, settings) = block.split_once('\n').unwrap();
            fs::write(followed.folder.path().join(name.trim_start_matches("# ")), settings)
                .unwrap();
        }
        followed
    }

    fn blocks(&self, language: &str) -> Vec<&str> {
        let start = format!("```{language}\n");
        let blocks = self.text.split(&start).skip(1).map(|rest| rest.split("```").next());
        blocks.map(Option::unwrap).collect()
    }

    /// Runs a script as the shell in which the page is followed, where `issue` is known.
    fn shell(&self, script: &str) -> Ended {
        let issue = self.text.split("issue() {").nth(1).and_then(|rest| rest.split("\n}\n").next());
        let issue = issue.expect("the page has the function");
        let folder = self.folder.path();
        let mut shell = Command::new("bash");
        shell.args([
            "-c",
            &format!("PATH=$PWD:$PATH\nissue() {{{issue}\n}}\nset -euo pipefail\n{script}"),
        ]);
        shell.current_dir(folder).env("HOME", folder);
        Ended::of(shell)
    }

    fn runs(&self, script: &str) {
        let ended = self.shell(script);
        assert_eq!(ended.code, Some(0), "{script}\n{ended:?}");
    }

    /// Asserts that a list of tables is refused with a message of the page.
    fn is_refused(&self, flags: &str, message: &str) {
        let ended = self.shell(&format!("trestle table list {flags}"));
        assert!(ended.code != Some(0) && ended.errors.contains(message), "{flags}: {ended:?}");
        assert!(self.text.contains(message), "the page has no `{message}`");
    }

    fn server(&self, args: &[&str], settings: &[(&str, &str)]) -> (Server, String) {
        let server = Server::start_in(self.folder.path(), args, settings);
        let address = server.endpoint().replace("http://127.0.0.1", "https://localhost");
        (server, address)
    }
}

#[test]
fn the_page_on_tls_leads_from_nothing_to_roles_behind_a_gateway() {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("SKIPPED: no `openssl`, so the page on TLS is not followed");
        return;
    }
    let page = Followed::new();
    let [certificates, server, clients, renewal, roles] = page.blocks("sh")[..] else {
        panic!("the page has other blocks");
    };
    page.runs(certificates);
    let check = server.strip_suffix(SERVE).expect("the page starts a server");
    page.runs(check);
    let (alone, address) = page.server(&["--config", "trestle.toml", "--data-dir", "data"], &[]);
    page.runs(&clients.replace(ADDRESS, &address));

    let context = format!("--endpoint {address} --account acme --account-key-file acme.key");
    let (authority, app) = ("--ca-file authority.pem", "--cert-file app.pem --key-file app.key");
    let refused = |flags: &[&str], message| {
        page.is_refused(&format!("{context} {}", flags.join(" ")), message);
    };
    refused(
        &[app],
        "the certificate of the server is of a CA that is not trusted: give its certificate with --ca-file",
    );
    refused(&[authority, app, "--server-name other"], "the certificate of the server is not for");
    refused(&[authority], "the server requires a certificate: give --cert-file and --key-file");
    page.runs(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=other \
         -keyout other.key -out other.pem",
    );
    let other = "--cert-file other.pem --key-file other.key";
    refused(
        &[authority, other],
        "the server rejects the handshake: check --cert-file and --key-file",
    );

    page.runs(renewal);
    alone.hang_up();
    page.runs(renewal);
    drop(alone);

    page.runs(roles);
    page.runs("for file in roles gateway; do trestle config check --config $file.toml; done");
    let names = ["--roles", "table,queue,blob,log"];
    let args = [&["--config", "roles.toml", "--data-dir", "roles"][..], &names].concat();
    let (_roles, of_roles) = page.server(&args, &[]);
    let keys =
        ["TABLE", "QUEUE", "BLOB", "LOG"].map(|it| format!("TRESTLE__GATEWAY__{it}_ENDPOINT"));
    let settings: Vec<_> = keys.iter().map(|key| (key.as_str(), of_roles.as_str())).collect();
    let (_gateway, address) = page.server(&["--config", "gateway.toml"], &settings);
    page.runs(&clients.replace(ADDRESS, &address));
    let direct = format!(
        "--endpoint {of_roles} --account acme --account-key-file acme.key {authority} {app}"
    );
    page.is_refused(&direct, "this process accepts calls of gateways only");
}
