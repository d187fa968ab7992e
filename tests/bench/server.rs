//! The processes that are measured.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::Instant,
};

use rustix::{
    param::clock_ticks_per_second,
    process::{Pid, Signal},
};

/// A process that printed `ready` on its standard output; killed when dropped.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<std::process::ChildStdout>,
    ready: String,
    /// From the start to the ready line.
    pub(crate) start_ms: f64,
}

impl Process {
    /// Starts a command and waits for its ready line.
    pub(crate) fn start(command: &mut Command) -> Self {
        let started = Instant::now();
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        assert!(ready.starts_with("ready"), "{command:?} printed `{ready}`");
        Self { child, stdout, ready, start_ms: started.elapsed().as_secs_f64() * 1000.0 }
    }

    /// This program again, in another role.
    pub(crate) fn own(role: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("TRESTLE_BENCH_ROLE", role).stdin(Stdio::piped());
        command
    }

    /// `trestle serve` on free ports, with more arguments.
    pub(crate) fn trestle(args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        if trestle_tests::has_gateway(args, &[]) {
            command.args(["--azure-table", "127.0.0.1:0", "--azure-queue", "127.0.0.1:0"]);
            command.args(["--azure-blob", "127.0.0.1:0"]);
        }
        command.args(args);
        command.env("TRESTLE__TELEMETRY__LOG_FILTER", "warn").stdin(Stdio::null());
        command
    }

    /// `http://` and the address of the gRPC listener.
    pub(crate) fn endpoint(&self) -> String {
        let address = self.ready.split_whitespace().find_map(|word| word.strip_prefix("grpc="));
        format!("http://{}", address.unwrap())
    }

    /// Processor time that the process has used, in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The second field, the name, may contain blanks and ends with the last parenthesis.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).unwrap().parse::<f64>().unwrap();
        (ticks(11) + ticks(12)) * 1e6 / clock_ticks_per_second() as f64
    }

    /// Memory that the process has resident, in MiB.
    pub(crate) fn resident_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    }

    /// Sends SIGTERM and waits for the end; returns how long that took.
    pub(crate) fn stop_ms(mut self) -> f64 {
        let started = Instant::now();
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        started.elapsed().as_secs_f64() * 1000.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The server binary with optimisations, built if it is not up to date.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // Another build, such as that of CI, which runs a path and measures nothing.
        if let Some(binary) = std::env::var_os("TRESTLE_BIN") {
            return binary.into();
        }
        trestle_tests::build_server(&["--release"]);
        let own = std::env::current_exe().unwrap();
        own.parent().and_then(Path::parent).unwrap().join("trestle")
    })
}
