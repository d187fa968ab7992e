//! The server under test: Trestle, or Azurite for a comparison, on free ports of this machine.

mod busy;
pub mod tables;

use std::{
    collections::HashMap,
    env,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use azure_storage::shared_access_signature::{
    SasToken,
    account_sas::{
        AccountSasPermissions, AccountSasResource, AccountSasResourceType,
        AccountSharedAccessSignature,
    },
};
use time::{Duration, OffsetDateTime};

pub use self::busy::BusyProxy;

/// The account of every emulator.
pub const ACCOUNT: &str = "devstoreaccount1";
/// Its key, printed in the documentation of every emulator; it protects nothing.
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A running server, which ends when the test process drops it.
#[derive(Debug)]
pub struct Target {
    process: Child,
    _data: tempfile::TempDir,
    /// `host:port` of the table service.
    pub table: String,
    /// `host:port` of the queue service.
    pub queue: String,
}

impl Target {
    /// Starts the server that `AZURE_TARGET` names, Trestle without it.
    pub fn start() -> Self {
        let data = tempfile::tempdir().expect("a directory for the data");
        let azurite = env::var("AZURE_TARGET").as_deref() == Ok("azurite");
        let mut command = if azurite { azurite_command() } else { trestle_command() };
        command.arg(if azurite { "--location" } else { "--data-dir" }).arg(data.path());
        let process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut process = process.expect("the server starts");
        let output = BufReader::new(process.stdout.take().expect("its output is piped"));
        let mut lines = output.lines().map(|line| line.expect("its output is text"));
        let addresses = if azurite { azurite_addresses(lines) } else { ready(lines.next()) };
        let address = |name: &str| addresses.get(name).expect("it is served").clone();
        Self { process, _data: data, table: address("table"), queue: address("queue") }
    }

    /// The endpoint of the queue service, with a signature of the account for one type of resource.
    pub fn signed_queues(&self, resource_type: AccountSasResourceType) -> String {
        let permissions = AccountSasPermissions {
            read: true,
            write: true,
            delete: true,
            list: true,
            add: true,
            create: true,
            update: true,
            process: true,
        };
        self.queues_signed_for(resource_type, permissions, Duration::hours(1))
    }

    /// The same with these permissions, good for this long; in the past if negative.
    pub fn queues_signed_for(
        &self,
        resource_type: AccountSasResourceType,
        permissions: AccountSasPermissions,
        lasting: Duration,
    ) -> String {
        self.queues_limited(resource_type, permissions, lasting, |signature| signature)
    }

    /// The same with further limits.
    pub fn queues_limited(
        &self,
        resource_type: AccountSasResourceType,
        permissions: AccountSasPermissions,
        lasting: Duration,
        limits: impl FnOnce(AccountSharedAccessSignature) -> AccountSharedAccessSignature,
    ) -> String {
        let signature = limits(AccountSharedAccessSignature::new(
            ACCOUNT.to_owned(),
            KEY.to_owned().into(),
            AccountSasResource::Queue,
            resource_type,
            OffsetDateTime::now_utc() + lasting,
            permissions,
        ));
        let token = signature.token().expect("the library signs");
        format!("http://{}/{ACCOUNT}?{token}", self.queue)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

fn trestle_command() -> Command {
    let mut command = Command::new(env::var_os("TRESTLE_BIN").expect("TRESTLE_BIN is set"));
    command.arg("serve");
    for listener in ["--listen", "--admin", "--azure-table", "--azure-queue", "--azure-blob"] {
        command.args([listener, "127.0.0.1:0"]);
    }
    command
}

fn azurite_command() -> Command {
    let home = PathBuf::from(env::var_os("AZURITE_HOME").expect("AZURITE_HOME is set"));
    let mut command = Command::new("node");
    command.arg(home.join("node_modules/azurite/dist/src/azurite.js"));
    command.args(["--silent", "--skipApiVersionCheck", "--disableTelemetry"]);
    for service in ["blob", "queue", "table"] {
        command.args([&format!("--{service}Port"), "0"]);
    }
    command
}

/// The addresses in the line `ready grpc=… azure_queue=… azure_table=…`.
fn ready(line: Option<String>) -> HashMap<String, String> {
    let line = line.expect("the server reports that it is ready");
    let pairs = line.split(' ').filter_map(|word| word.strip_prefix("azure_")?.split_once('='));
    pairs.map(|(name, address)| (name.to_owned(), address.to_owned())).collect()
}

/// The addresses in lines like `Azurite Table service is successfully listening at http://…`.
fn azurite_addresses(lines: impl Iterator<Item = String>) -> HashMap<String, String> {
    let listening = lines.filter_map(|line| {
        let (service, address) =
            line.split_once(" service is successfully listening at http://")?;
        Some((service.strip_prefix("Azurite ")?.to_lowercase(), address.trim().to_owned()))
    });
    listening.take(3).collect()
}

/// A name for a table or a queue that no other test of the process has.
pub fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("name{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The server of all tests of a file. Statics are not dropped, so a watcher ends it.
pub fn target() -> &'static Target {
    static TARGET: LazyLock<Target> = LazyLock::new(|| {
        let target = Target::start();
        let (server, me) = (target.process.id(), std::process::id());
        let watch = format!("while kill -0 {me} 2>/dev/null; do sleep 0.2; done; kill {server}");
        let watcher = Command::new("sh").args(["-c", &watch]).stdout(Stdio::null()).spawn();
        watcher.expect("the watcher starts");
        target
    });
    &TARGET
}
