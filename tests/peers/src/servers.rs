//! The processes: where they are installed, how they start, and that they end.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long a server may take until it listens.
const START_MAX: Duration = Duration::from_secs(60);

/// The paths.
pub(crate) struct Installed {
    /// The binary of Trestle.
    pub(crate) trestle: PathBuf,
    /// What `install.sh` filled.
    pub(crate) peers: PathBuf,
}

impl Installed {
    /// A program of a peer.
    ///
    /// # Errors
    /// It is not installed.
    pub(crate) fn program(&self, path: &str) -> Result<PathBuf, String> {
        let program = self.peers.join(path);
        if program.exists() { Ok(program) } else { Err("it is not installed".to_owned()) }
    }
}

/// A server and what belongs to it: its data, and processes that it needs. All of it ends when this is dropped.
pub(crate) struct Server {
    children: Vec<Child>,
    data: TempDir,
}

impl Server {
    /// Nothing yet but a directory for its data.
    pub(crate) fn new() -> Self {
        let data = tempfile::tempdir().expect("a directory for temporary files");
        Self { children: Vec::new(), data }
    }

    /// Its data.
    pub(crate) fn data(&self) -> &std::path::Path {
        self.data.path()
    }

    /// Starts one of its processes, whose output goes to a file beside the data.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn spawn(&mut self, command: &mut Command) -> Result<(), String> {
        let log =
            fs::File::create(self.data().join("output")).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn();
        let child = child.map_err(|error| format!("{command:?} cannot be started: {error}"))?;
        self.children.push(child);
        Ok(())
    }

    /// Waits until a port is open.
    ///
    /// # Errors
    /// No server listens in time, or the process has ended.
    pub(crate) async fn listening(&mut self, port: u16) -> Result<(), String> {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = self.children.iter_mut().any(|child| !matches!(child.try_wait(), Ok(None)));
            if ended || began.elapsed() > START_MAX {
                let output = fs::read_to_string(self.data().join("output")).unwrap_or_default();
                return Err(format!("it does not listen: {output}"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Processor time that its processes have used, in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        let used = |child: &Child| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
            // The second field, the name, may contain blanks and ends with the last parenthesis.
            let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
            // User and system time, in hundredths of a second.
            fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 1e4
        };
        self.children.iter().map(used).sum()
    }

    /// Memory that its processes have resident, in MiB.
    pub(crate) fn resident_mib(&self) -> f64 {
        let resident = |child: &Child| {
            let path = format!("/proc/{}/status", child.id());
            let status = fs::read_to_string(path).unwrap_or_default();
            let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
            let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok());
            kib.unwrap_or_default() / 1024.0
        };
        self.children.iter().map(resident).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The last one first: it may need the others.
        for child in self.children.iter_mut().rev() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A port that is free now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback");
    listener.local_addr().expect("it is bound").port()
}
