//! Runs `trestle` as a child and ends it with the test.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, ExitStatus, Output, Stdio},
};

/// The command, without the environment of the test.
pub(crate) fn trestle(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trestle"));
    command.env_clear().args(arguments);
    command
}

/// The same, in a process that may have this many descriptors at most.
pub(crate) fn limited(descriptors: usize, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_trestle")]).env_clear().args(arguments);
    command
}

pub(crate) fn output(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// Serves on free ports.
pub(crate) const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

/// A serving process. Killed when dropped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) grpc: String,
    pub(crate) admin: String,
}

impl Serving {
    /// Starts `trestle serve` on free ports, with more arguments and variables, and waits until it
    /// is ready.
    pub(crate) fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::launch(trestle(&[&SERVE, arguments].concat()), variables)
    }

    /// The same for a command with [`SERVE`].
    pub(crate) fn launch(mut command: Command, variables: &[(&str, &str)]) -> Self {
        command.env("TRESTLE__SERVER__AZURE_TABLE", "off");
        command.env("TRESTLE__SERVER__AZURE_QUEUE", "off");
        command.env("TRESTLE__SERVER__AZURE_BLOB", "off");
        command.envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let mut words = line.trim_end().split(' ');
        assert_eq!(words.next(), Some("ready"), "{line}");
        let mut address = |name: &str| {
            let word = words.next().unwrap();
            word.strip_prefix(name).unwrap().to_owned()
        };
        let (grpc, admin) = (address("grpc="), address("admin="));
        assert_eq!(words.next(), None, "{line}");
        Self { child, grpc, admin }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.grpc)
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&self) -> bool {
        // A process that ended and was not waited for has no memory.
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        status.contains("VmRSS:")
    }

    /// How many descriptors it has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Sends SIGTERM, as an orchestrator does.
    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits for its end. Returns the exit status and the log.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap(), log)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Fails when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
