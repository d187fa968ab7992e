//! Servers as processes of their own.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The path of the server binary: what `TRESTLE_BIN` names, or else built if it is not up to date.
#[expect(clippy::disallowed_methods, reason = "one build for all tests, each in its own process")]
pub fn server_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(binary) = std::env::var_os("TRESTLE_BIN") {
            return PathBuf::from(binary);
        }
        build_server(&[]);
        // This test runs from `target/<profile>/deps`.
        let own = std::env::current_exe().expect("the path of this test");
        let profile = own.parent().and_then(Path::parent).expect("two folders up");
        profile.with_file_name("debug").join("trestle")
    })
}

/// Builds the server with more options of `cargo build`.
///
/// The variables that cargo sets for a program about its package are removed from the environment: build
/// scripts that look at it would run again, now and when cargo is next called without it, and all
/// that depends on them would be compiled anew each time.
#[expect(clippy::disallowed_methods, reason = "they are removed for another program, not read")]
pub fn build_server(options: &[&str]) {
    let mut build = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    build.args(["build", "--quiet", "--package", "trestle", "--bin", "trestle"]).args(options);
    let about_package = |name: &str| {
        ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix))
    };
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(about_package) {
            build.env_remove(name);
        }
    }
    assert!(build.status().expect("cargo runs").success(), "the server builds");
}

/// A running `trestle serve`, killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    ready: String,
}

impl Server {
    /// Starts `trestle serve` with more arguments and settings, on free ports, and waits until it
    /// is ready.
    pub fn start(args: &[&str], settings: &[(&str, &str)]) -> Self {
        Self::start_at("127.0.0.1:0", args, settings)
    }

    /// The same, with gRPC on a certain address, such as that of an earlier process.
    pub fn start_at(address: &str, args: &[&str], settings: &[(&str, &str)]) -> Self {
        Self::start_as(Command::new(server_binary()), address, args, settings)
    }

    /// The same as the first; what it logs goes to a file, which is made or emptied.
    pub fn start_logging(log: &Path, args: &[&str], settings: &[(&str, &str)]) -> Self {
        let mut command = Command::new(server_binary());
        command.stderr(std::fs::File::create(log).expect("a file for the log"));
        Self::start_as(command, "127.0.0.1:0", args, settings)
    }

    /// The same as the first, in a folder that relative paths of arguments and settings are in.
    pub fn start_in(folder: &Path, args: &[&str], settings: &[(&str, &str)]) -> Self {
        let mut command = Command::new(server_binary());
        command.current_dir(folder);
        Self::start_as(command, "127.0.0.1:0", args, settings)
    }

    fn start_as(
        mut command: Command,
        address: &str,
        args: &[&str],
        settings: &[(&str, &str)],
    ) -> Self {
        let free = "127.0.0.1:0";
        command.args(["serve", "--listen", address, "--admin", free]);
        if has_gateway(args, settings) {
            command.args(["--azure-table", free, "--azure-queue", free, "--azure-blob", free]);
        }
        command.args(args);
        command.envs(settings.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let mut ready = String::new();
        let stdout = child.stdout.take().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut ready).expect("standard output is text");
        assert!(ready.starts_with("ready "), "the server printed `{ready}` with {args:?}");
        Self { child, ready }
    }

    /// The address of a listener, such as `grpc`.
    pub fn address(&self, listener: &str) -> String {
        let named = |word: &str| word.strip_prefix(listener)?.strip_prefix('=').map(str::to_owned);
        self.ready.split_whitespace().find_map(named).expect("the listener is announced")
    }

    /// The endpoint of the gRPC listener.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address("grpc"))
    }

    /// A page of the admin listener, such as `/metrics`, with the head of its answer.
    pub async fn page(&self, path: &str) -> String {
        page(&self.address("admin"), path).await
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGHUP, which reloads settings and files.
    pub fn hang_up(&self) {
        self.send(rustix::process::Signal::HUP);
    }

    /// Kills the process at once, as a crash would.
    pub fn kill(mut self) {
        self.end();
    }

    /// Sends SIGTERM and waits; the exit code.
    pub fn terminate(mut self) -> Option<i32> {
        self.send(rustix::process::Signal::TERM);
        self.child.wait().expect("the server ends").code()
    }

    /// Waits for the process to end by itself; the exit code.
    pub async fn ended(mut self) -> Option<i32> {
        let deadline = std::time::Instant::now() + crate::HANG;
        while std::time::Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("the server can be waited for") {
                return status.code();
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("the server goes on");
    }

    fn send(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("signal is sent");
    }

    fn end(&mut self) {
        // Both fail only if the process has ended, which is the goal.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether a server with these arguments and settings has the role of the listeners for clients of Azure Storage.
#[must_use]
pub fn has_gateway(args: &[&str], settings: &[(&str, &str)]) -> bool {
    let flag = args.iter().skip_while(|arg| **arg != "--roles").nth(1).copied();
    let variable = settings.iter().find(|(name, _)| *name == "TRESTLE__SERVER__ROLES");
    let roles = flag.or(variable.map(|(_, roles)| *roles)).unwrap_or("all");
    roles == "all" || roles.split(',').any(|role| role == "gateway")
}

/// A page of an admin listener at an address, with the head of its answer.
pub async fn page(admin: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(admin).await.expect("the admin listener accepts");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the answer is text");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// The value of a series on a page of metrics, by the beginning of its line.
pub fn metric(page: &str, series: &str) -> Option<f64> {
    let line = page.lines().find(|line| line.starts_with(series))?;
    line.rsplit_once(' ')?.1.trim().parse().ok()
}
