//! Runs `trestle backup …` as a process of its own: reading, compressing and sending cost the server no memory, and a
//! backup that is killed with the server continues at the next start.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    process::{Child, Command},
};
use tokio_util::sync::CancellationToken;
use trestle_runtime::config;

/// How long a command that received SIGTERM may take to end, before it is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// Most bytes of the errors of a command that are kept, from their end.
const ERRORS_KEPT: usize = 16 * 1024;
/// Most characters of a reason in the log.
const REASON_CHARS: usize = 500;

/// How a command of backups is run.
#[derive(Debug, Clone)]
pub(crate) struct BackupChild {
    executable: PathBuf,
    data_dir: PathBuf,
    target: OsString,
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChildEnd {
    /// With success.
    Succeeded,
    /// With an error, and its reason in one line.
    Failed(String),
    /// The server shuts down.
    Stopped,
}

impl BackupChild {
    /// Commands for a data directory and a target, which do not depend on the working directory.
    ///
    /// # Errors
    /// An executable or a working directory that the system does not name.
    pub(crate) fn new(data_dir: &Path, target: &str) -> io::Result<Self> {
        let is_url = target.contains("://");
        Ok(Self {
            executable: std::env::current_exe()?,
            data_dir: std::path::absolute(data_dir)?,
            target: if is_url { target.into() } else { std::path::absolute(target)?.into() },
        })
    }

    /// The same with another executable.
    #[cfg(test)]
    pub(super) fn with_executable(mut self, executable: &Path) -> Self {
        self.executable = executable.to_owned();
        self
    }

    /// The arguments of `backup create` besides the target.
    pub(super) fn create_args(&self, max_rate: u64, encrypt: Option<&Path>) -> Vec<OsString> {
        let rate = ["--max-rate", &max_rate.to_string()].map(OsString::from);
        self.data_args(encrypt).into_iter().chain(rate).collect()
    }

    /// The arguments of a command that sends what the data directory has.
    pub(crate) fn data_args(&self, encrypt: Option<&Path>) -> Vec<OsString> {
        let flag = |name: &str, file: &Path| [OsString::from(name), file.into()];
        // Settings are those of the server: nothing but its data directory is needed.
        let pid = std::process::id().to_string();
        let rest = ["--config", "/dev/null", "--server-pid", &pid].map(OsString::from);
        let keys = encrypt.map(|file| flag("--encrypt", file)).into_iter().flatten();
        flag("--data-dir", &self.data_dir).into_iter().chain(rest).chain(keys).collect()
    }

    /// Runs `trestle backup NAME TARGET` with more arguments to its end, and passes each record that it prints to
    /// `each`. Where `stop` is cancelled, the command is ended, or does not begin.
    pub(crate) async fn run(
        &self,
        name: &str,
        args: &[OsString],
        stop: &CancellationToken,
        each: impl FnMut(Value),
    ) -> ChildEnd {
        if stop.is_cancelled() {
            return ChildEnd::Stopped;
        }
        let mut child = match self.command(name, args).spawn() {
            Ok(child) => child,
            Err(error) => return ChildEnd::Failed(format!("the command cannot be run: {error}")),
        };
        let pid = child.id();
        let mut ended = std::pin::pin!(read_to_end(&mut child, each));
        tokio::select! {
            end = &mut ended => return end,
            () = stop.cancelled() => {}
        }
        let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        // It was not waited for yet, so that the id is still its own.
        if let Some(pid) = pid
            && kill_process(pid, Signal::TERM).is_ok()
        {
            // One that does not end is killed when it is dropped.
            let _ = tokio::time::timeout(ENDS_WITHIN, ended).await;
        }
        ChildEnd::Stopped
    }

    fn command(&self, name: &str, args: &[OsString]) -> Command {
        let mut command = Command::new(&self.executable);
        command.args(["backup", name]).arg(&self.target).args(args).args(["-o", "jsonl"]);
        // The settings of the server are not those of the command; credentials of the target are.
        let environment = config::environment();
        let is_setting =
            |name: &&String| name.starts_with("TRESTLE__") || *name == "TRESTLE_CONFIG";
        for name in environment.keys().filter(is_setting) {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A Ctrl-C on the terminal of the server is for the server, which ends it.
        command.process_group(0).kill_on_drop(true);
        command
    }
}

/// Reads what a command prints, and waits for its end.
async fn read_to_end(child: &mut Child, mut each: impl FnMut(Value)) -> ChildEnd {
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let read = async {
        let Some(output) = output else { return Ok(()) };
        let mut lines = BufReader::new(output).lines();
        while let Some(line) = lines.next_line().await? {
            if let Ok(record) = serde_json::from_str(&line) {
                each(record);
            }
        }
        Ok::<_, io::Error>(())
    };
    let (read, errors) = tokio::join!(read, last_bytes(errors));
    let failed = |what: &str, error: io::Error| ChildEnd::Failed(format!("{what}: {error}"));
    match (read, child.wait().await) {
        (Err(error), _) => failed("the output of the command cannot be read", error),
        (_, Err(error)) => failed("the command cannot be waited for", error),
        (Ok(()), Ok(status)) if status.success() => ChildEnd::Succeeded,
        (Ok(()), Ok(status)) => ChildEnd::Failed(
            reason(&errors).unwrap_or_else(|| format!("the command ended: {status}")),
        ),
    }
}

/// The end of what a command reports. It is read to its end, so that the command does not wait.
async fn last_bytes(errors: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let (mut kept, mut block) = (Vec::new(), vec![0; ERRORS_KEPT]);
    let Some(mut errors) = errors else { return kept };
    while let Ok(count @ 1..) = errors.read(&mut block).await {
        kept.extend_from_slice(block.get(..count).unwrap_or_default());
        kept.drain(..kept.len().saturating_sub(ERRORS_KEPT));
    }
    kept
}

/// The reason in the last line of what a command reports: one line of bounded length.
fn reason(errors: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(errors);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let object: Option<Value> = serde_json::from_str(line).ok();
    let message = object.as_ref().and_then(|object| object.get("error")?.get("message")?.as_str());
    Some(bounded(&without_queries(message.unwrap_or(line))))
}

/// Without control characters, and cut where it is long.
fn bounded(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let mut bounded: String = text.chars().take(REASON_CHARS).map(shown).collect();
    if text.chars().nth(REASON_CHARS).is_some() {
        bounded.push('…');
    }
    bounded
}

/// Without the queries of URLs, which may have a signature.
fn without_queries(text: &str) -> String {
    let mut words = text.split(' ').map(|word| match word.split_once('?') {
        Some((url, _)) if url.contains("://") => format!("{url}?…"),
        _ => word.to_owned(),
    });
    let first = words.next().unwrap_or_default();
    words.fold(first, |text, word| text + " " + &word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduled_backups::tests::Program;

    /// Runs a program as `backup create`; the end, and the records.
    async fn run(program: &Program, stop: &CancellationToken) -> (ChildEnd, Vec<Value>) {
        let (child, mut records) = (program.child(), Vec::new());
        let args = child.create_args(7, Some(Path::new("/keys")));
        let end = child.run("create", &args, stop, |record| records.push(record)).await;
        (end, records)
    }

    #[tokio::test]
    async fn a_command_has_absolute_paths_and_its_records_are_read() {
        let program = Program::new("printf '{\"args\":\"%s\"}\\nno record\\n{}\\n' \"$*\"");
        let (end, records) = run(&program, &CancellationToken::new()).await;
        assert_eq!(end, ChildEnd::Succeeded);
        let (folder, target) = (program.path(), std::path::absolute("backups").unwrap());
        let expected = format!(
            "backup create {} --data-dir {} --config /dev/null --server-pid {} --encrypt /keys --max-rate 7 -o jsonl",
            target.display(),
            folder.display(),
            std::process::id()
        );
        assert_eq!(records, [serde_json::json!({ "args": expected }), serde_json::json!({})]);
        let url = BackupChild::new(folder, "s3://bucket/path").unwrap();
        assert_eq!(url.target, "s3://bucket/path");
    }

    #[tokio::test]
    async fn the_reason_of_a_failure_is_one_bounded_line_without_signatures() {
        let object = "echo a note >&2; echo '{\"error\":{\"message\":\"denied: \
                      https://host/b?sig=hunter2 now\",\"exit_code\":1}}' >&2; exit 1";
        let long = "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1";
        let stop = CancellationToken::new();
        let failed = ChildEnd::Failed("denied: https://host/b?… now".to_owned());
        assert_eq!(run(&Program::new(object), &stop).await.0, failed);
        let ChildEnd::Failed(reason) = run(&Program::new(long), &stop).await.0 else { panic!() };
        assert_eq!(reason.chars().count(), REASON_CHARS + 1);
        let silent = run(&Program::new("exit 7"), &stop).await.0;
        assert_eq!(silent, ChildEnd::Failed("the command ended: exit status: 7".to_owned()));
        let none = Program::new("").child().with_executable(Path::new("/does/not/exist"));
        let ChildEnd::Failed(reason) = none.run("list", &[], &stop, drop).await else { panic!() };
        assert!(reason.starts_with("the command cannot be run: "), "{reason}");
    }

    #[tokio::test]
    async fn a_command_that_runs_is_ended_when_the_server_stops() {
        for script in [
            // With time to end by itself, and one that ignores the signal.
            "trap 'touch \"$0.ended\"; exit 1' TERM; echo '{}'; while :; do sleep 0.05; done",
            "trap '' TERM; echo '{}'; while :; do sleep 0.05; done",
        ] {
            let (program, stop) = (Program::new(script), CancellationToken::new());
            let (child, started) = (program.child(), stop.clone());
            let end = child.run("create", &[], &stop, move |_| started.cancel()).await;
            assert_eq!(end, ChildEnd::Stopped, "{script}");
            let ended = program.path().join("program.ended");
            assert_eq!(ended.exists(), script.contains("touch"), "{script}");
        }
    }
}
