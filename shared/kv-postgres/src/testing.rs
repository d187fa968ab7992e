//! A server of PostgreSQL in a directory of its own, reached by a socket in it, and ended with the test.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "failures of a test end it")]

mod template;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::PostgresAddress;

/// The user `nobody`: the server refuses to run as root.
const NOBODY: u32 = 65_534;
/// A limit for a server that hangs; none takes so long.
const HANG: Duration = Duration::from_secs(60);

/// A server, and its databases.
pub struct PostgresServer {
    directory: TempDir,
    programs: PathBuf,
    settings: Vec<String>,
    child: Option<Child>,
    databases: AtomicU32,
}

impl PostgresServer {
    /// Starts a server with further settings, such as `fsync=on`; none where the machine has no PostgreSQL.
    pub async fn start(settings: &[&str]) -> Option<Self> {
        let Some(programs) = programs() else {
            report_skipped();
            return None;
        };
        let directory = tempfile::tempdir().expect("the machine runs a server");
        if is_root() {
            fs::set_permissions(directory.path(), Permissions::from_mode(0o755))
                .expect("the machine runs a server");
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("the machine runs a server");
        }
        let settings = settings.iter().map(|it| (*it).to_owned()).collect();
        let (child, databases) = (None, AtomicU32::new(0));
        let mut server = Self { directory, programs, settings, child, databases };
        template::copy(&server.programs, &server.data(), |data| server.init(data));
        server.run().await;
        Some(server)
    }

    /// Makes the data of a new server.
    fn init(&self, data: &Path) {
        let mut init = self.command("initdb");
        init.args([
            "--no-sync",
            "--auth=trust",
            "--username=trestle",
            "--encoding=UTF8",
            "--pgdata",
        ]);
        let init = init.arg(data).stdin(Stdio::null()).output();
        let init = init.expect("the machine runs a server");
        assert!(init.status.success(), "{init:?}");
    }

    /// Starts it again.
    pub async fn run(&mut self) {
        assert!(self.child.is_none(), "it runs");
        let until = Instant::now() + HANG;
        self.child = Some(self.spawn());
        while let Err(error) = self.execute("postgres", "SELECT 1").await {
            let log = || fs::read_to_string(self.path("log")).unwrap_or_default();
            assert!(Instant::now() < until, "{error}: {}", log());
            tokio::time::sleep(Duration::from_millis(20)).await;
            // After a crash it does not start until the last process of the one before has ended.
            if self
                .child
                .as_mut()
                .is_some_and(|child| child.try_wait().expect("the machine runs a server").is_some())
            {
                self.child = Some(self.spawn());
            }
        }
    }

    fn spawn(&self) -> Child {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .expect("the machine runs a server");
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.directory.path());
        let always = ["listen_addresses=", "fsync=off", "max_connections=200"];
        for setting in always.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the machine runs a server")
    }

    /// Ends it as a crash of its machine would, but for what the operating system keeps.
    pub fn crash(&mut self) {
        // The others end by themselves, once they find that it has.
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the machine runs a server");
            child.wait().expect("the machine runs a server");
        }
    }

    /// An empty database.
    pub async fn database(&self) -> String {
        let name = format!("store{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.execute("postgres", &format!("CREATE DATABASE {name}"))
            .await
            .expect("the machine runs a server");
        name
    }

    /// The address of a database.
    #[must_use]
    pub fn address(&self, database: &str) -> PostgresAddress {
        PostgresAddress::parse(&self.url(database)).expect("a well-formed address")
    }

    /// The address of a database, as text.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let directory = self.directory.path().display().to_string().replace('/', "%2F");
        format!("postgres://trestle@{directory}/{database}")
    }

    /// Executes statements in a database.
    ///
    /// # Errors
    /// What the server says.
    pub async fn execute(&self, database: &str, sql: &str) -> Result<(), String> {
        let client = self.client(database).await?;
        client.batch_execute(sql).await.map_err(|error| format!("{error}: {error:?}"))
    }

    /// A connection to a database.
    ///
    /// # Errors
    /// What the server says.
    pub async fn client(&self, database: &str) -> Result<tokio_postgres::Client, String> {
        let mut config = tokio_postgres::Config::new();
        config.host_path(self.directory.path()).user("trestle").dbname(database);
        let (client, connection) =
            config.connect(NoTls).await.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        Ok(client)
    }

    fn data(&self) -> PathBuf {
        self.path("data")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.current_dir(self.directory.path()).env("LC_ALL", "C");
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.crash();
    }
}

#[expect(clippy::print_stderr, reason = "why a test did nothing")]
fn report_skipped() {
    eprintln!("SKIPPED: no PostgreSQL on this machine");
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").expect("the machine runs a server").uid() == 0
}

/// Where the programs of the newest PostgreSQL are.
#[expect(clippy::disallowed_methods, reason = "where the machine has its programs, for tests")]
fn programs() -> Option<PathBuf> {
    let named = std::env::var_os("TRESTLE_TEST_POSTGRES_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut debian: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .collect();
    debian.sort();
    let has_all = |directory: &Path| {
        ["initdb", "postgres"].iter().all(|program| directory.join(program).is_file())
    };
    let found =
        named.into_iter().chain(std::env::split_paths(&path)).chain(debian.into_iter().rev());
    found.into_iter().find(|directory| has_all(directory))
}
