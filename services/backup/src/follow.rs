//! `backup follow`: sends the committed changes of a data directory to a target as the server makes them.
//!
//! The server links its journals and notes how far everything is committed (`changes`); this command reads them, and
//! writes what it read as windows. What is at the target is noted before and after each window, so that a command that
//! was killed goes on where it was: a line of windows has every change once.

mod claim;
mod line;
mod sender;
#[cfg(test)]
mod tests;

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;
use trestle_command::{errors::CliError, output::Output};
use trestle_kv_fjall::{ChangeGroup, ChangeLogError, ChangeReader, LogPosition};
use trestle_model::time::Ticks;

use self::{
    claim::claim,
    line::{OpenLine, ticks},
    sender::WindowSender,
};
use crate::{
    args::SourceArgs,
    changes::{ChangesEnd, ChangesFolder, NextWindow, ShippedChanges},
    create,
    failure::broken,
    manifest::time_text,
    rules::StoreRules,
    window::{WindowCutter, WindowGroup},
};

/// How often it looks whether more was committed.
const LOOKS_EVERY: Duration = Duration::from_millis(250);
/// How long changes wait for others of the same window.
const GATHERS_FOR: Duration = Duration::from_secs(1);
/// How often a window is written where nothing is committed: it shows until when nothing was.
const IDLE_EVERY: Duration = Duration::from_secs(60);
/// Most groups that are read before they are sent: each has up to a megabyte, or one change.
const READ_MAX: usize = 4;
/// How often it looks whether the target has all that was sent.
const CHECKS_EVERY: Duration = Duration::from_secs(15 * 60);
/// How long the command of a server that was killed may need to end: it may be sending.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How long a server may need to note its first end.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

pub(crate) async fn run(
    args: &SourceArgs,
    rules: StoreRules,
    out: &mut Output,
) -> Result<(), CliError> {
    let (store, target) = create::source(args, rules)?;
    let folder = locked(&store.path).await?;
    let sender = WindowSender::open(&store, &target, args.encrypt.clone()).await?;
    let mut follower = ChangeFollower::begin(folder, sender, out).await?;
    while !args.server.has_ended() {
        follower.step(out).await?;
        tokio::time::sleep(LOOKS_EVERY).await;
    }
    Err(broken(&std::io::Error::other("the server that runs this command has ended")))
}

/// Why a line ends before its store does.
#[derive(Debug, thiserror::Error)]
enum LineEnd {
    /// The journals do not have what comes next.
    #[error("what comes next in the journals cannot be read: {0}")]
    Log(#[from] ChangeLogError),
    /// The server gave the journal up at the same time.
    #[error("the journals changed while they were opened, try again")]
    Rotated,
    /// The server needed their space.
    #[error("the server gave up journals that were not sent, since they grew too large")]
    GivenUp,
    /// The target was changed by others.
    #[error("windows that were sent are missing at the target, or are there twice")]
    Missing,
}

/// Reads changes, and sends them.
struct ChangeFollower {
    folder: ChangesFolder,
    sender: WindowSender,
    line: OpenLine,
    /// Absent only while it reads.
    reader: Option<ChangeReader>,
    cutter: WindowCutter,
    /// What was read: where the window that is gathered ends.
    read: NextWindow,
    /// When the window that is gathered had its first change.
    gathers_since: Option<Instant>,
    /// When the last window was written.
    written: Instant,
    /// When the windows of the line were looked at.
    checked: Instant,
    /// The first of them that is needed.
    needed: u64,
}

impl ChangeFollower {
    /// Goes on with the line of an earlier command, if that is possible, and begins one otherwise.
    async fn begin(
        folder: ChangesFolder,
        mut sender: WindowSender,
        out: &mut Output,
    ) -> Result<Self, CliError> {
        let end = first_end(&folder).await?;
        let shipped = folder.shipped();
        let earlier = shipped.as_ref().map_or_else(Vec::new, ShippedChanges::lines);
        let shipped = match shipped {
            Some(shipped) => claim(shipped, &folder, &sender).await?,
            None => None,
        };
        sender.check_alone(shipped.as_ref()).await?;
        let opened = match shipped {
            Some(shipped) if shipped.epoch == end.epoch => {
                match OpenLine::resumed(shipped, &sender).await? {
                    Some(line) => open(&folder, line.next()).await?.zip(Some(line)),
                    None => None,
                }
            }
            _ => None,
        };
        let (reader, line) = match opened {
            Some(opened) => opened,
            None => new_line(&folder, &mut sender, (&end, earlier), out).await?,
        };
        let read = line.next().clone();
        let (cutter, now) = (WindowCutter::default(), Instant::now());
        let (reader, gathers_since) = (Some(reader), None);
        Ok(Self {
            folder,
            sender,
            line,
            reader,
            cutter,
            read,
            gathers_since,
            written: now,
            checked: now,
            needed: 0,
        })
    }

    /// Sends what was committed since the last step.
    async fn step(&mut self, out: &mut Output) -> Result<(), CliError> {
        let Some(end) = self.folder.end() else { return Ok(()) };
        let read = match self.line.epoch() == end.epoch {
            true if !self.is_whole().await? => Err(LineEnd::Missing),
            true => self.read_to(&end).await?,
            false => Err(LineEnd::GivenUp),
        };
        match read {
            Ok(()) => self.caught_up(&end).await?,
            Err(reason) => {
                let (line, until) = (self.line.id().to_owned(), time(self.line.next().at));
                let record = json!({ "line": line, "ended": until, "reason": reason.to_string() });
                report(&format!("line {line} ends at {until}: {reason}"), &record, out)?;
                let from = (&end, self.line.shipped().lines());
                let begun = new_line(&self.folder, &mut self.sender, from, out).await?;
                (self.reader, self.line) = (Some(begun.0), begun.1);
                self.cutter = WindowCutter::default();
                (self.read, self.gathers_since) = (self.line.next().clone(), None);
                self.needed = 0;
            }
        }
        for (object, reason) in self.sender.missing() {
            let record = json!({ "object": object, "reason": reason });
            report(&format!("an object was not copied: {object}: {reason}"), &record, out)?;
        }
        Ok(())
    }

    /// Whether the target has what was sent, as far as that was looked at.
    async fn is_whole(&mut self) -> Result<bool, CliError> {
        if self.checked.elapsed() < CHECKS_EVERY {
            return Ok(true);
        }
        self.checked = Instant::now();
        let line = (self.line.id(), self.line.next().seq);
        let windows = self.sender.windows_of(line.0, self.needed).await?;
        let needed = self.sender.needed(windows, line).await?;
        self.needed = needed.unwrap_or_default();
        Ok(needed.is_some())
    }

    async fn read_to(&mut self, end: &ChangesEnd) -> Result<Result<(), LineEnd>, CliError> {
        let Some(until) = end.position() else { return Ok(Ok(())) };
        loop {
            let groups = match self.read_some(until).await? {
                Ok(groups) if groups.is_empty() => return Ok(Ok(())),
                Ok(groups) => groups,
                Err(error) => return Ok(Err(error.into())),
            };
            for group in groups {
                self.gather(group).await?;
            }
        }
    }

    /// Some groups before an end; none if there are none.
    async fn read_some(
        &mut self,
        until: LogPosition,
    ) -> Result<Result<Vec<ChangeGroup>, ChangeLogError>, CliError> {
        let reader = self.reader.take();
        let read = move || {
            let mut reader = reader?;
            let mut groups = Vec::new();
            let end = loop {
                match reader.next(until) {
                    Ok(Some(group)) => groups.push(group),
                    end => break end,
                }
                if groups.len() >= READ_MAX {
                    break Ok(None);
                }
            };
            // An error is found again behind the groups before it.
            let read = if groups.is_empty() { end.map(|_| groups) } else { Ok(groups) };
            Some((reader, read))
        };
        let read = tokio::task::spawn_blocking(read).await.map_err(|error| broken(&error))?;
        let Some((reader, groups)) = read else { return Ok(Ok(Vec::new())) };
        self.reader = Some(reader);
        Ok(groups)
    }

    /// Adds a group to the window that is gathered, and sends those that end within it.
    async fn gather(&mut self, group: ChangeGroup) -> Result<(), CliError> {
        let skip = std::mem::take(&mut self.read.skip);
        let changes = group.changes.into_iter().skip(usize::try_from(skip).unwrap_or(usize::MAX));
        let mut sent = skip;
        for groups in self.cutter.push(group.version, changes) {
            let last = groups.last();
            if let Some(WindowGroup { changes, is_continued: true, .. }) = last {
                sent += changes.len() as u64;
                self.read.skip = sent;
            } else {
                self.read_group(group.version, group.end);
            }
            // Every group up to this version is in it or in an earlier one.
            self.read.at = self.read.newest.max(self.read.at);
            self.ship(groups).await?;
        }
        self.read_group(group.version, group.end);
        self.gathers_since.get_or_insert_with(Instant::now);
        Ok(())
    }

    fn read_group(&mut self, version: Ticks, end: LogPosition) {
        self.read.newest = version.get();
        self.read.position = end.to_string();
        self.read.skip = 0;
    }

    /// All that was committed by the time of an end was read.
    async fn caught_up(&mut self, end: &ChangesEnd) -> Result<(), CliError> {
        self.read.at = self.read.at.max(end.now);
        // After a crash versions go on above the last one: no group has one in between.
        self.read.newest = self.read.newest.max(end.newest);
        let is_gathered = match self.cutter.is_empty() {
            false => self.gathers_since.is_none_or(|since| since.elapsed() >= GATHERS_FOR),
            true => self.written.elapsed() >= IDLE_EVERY,
        };
        if is_gathered {
            let groups = self.cutter.cut();
            self.ship(groups).await?;
        } else if self.cutter.is_empty() {
            self.folder.note_seen(self.line.shipped(), ticks(self.read.at))?;
        }
        Ok(())
    }

    async fn ship(&mut self, groups: Vec<WindowGroup>) -> Result<(), CliError> {
        self.gathers_since = None;
        self.line.write(&self.folder, &mut self.sender, groups, &self.read).await?;
        self.read = self.line.next().clone();
        self.written = Instant::now();
        Ok(())
    }
}

/// Locks the directory, once the command of a server that was killed has noticed that.
async fn locked(data_dir: &Path) -> Result<ChangesFolder, CliError> {
    let since = Instant::now();
    loop {
        match ChangesFolder::lock(data_dir) {
            Err(CliError::Source { busy: true, .. }) if since.elapsed() < ENDS_WITHIN => {}
            locked => return locked,
        }
        tokio::time::sleep(LOOKS_EVERY).await;
    }
}

async fn first_end(folder: &ChangesFolder) -> Result<ChangesEnd, CliError> {
    let since = Instant::now();
    loop {
        match folder.end() {
            Some(end) if end.position().is_some() => return Ok(end),
            _ if since.elapsed() > BEGINS_WITHIN => {
                return Err(CliError::Usage(
                    "no server hands over its changes: start one with `backup.continuous = true`"
                        .to_owned(),
                ));
            }
            _ => tokio::time::sleep(LOOKS_EVERY).await,
        }
    }
}

/// A reader of what comes next; none where the journals do not have it.
async fn open(folder: &ChangesFolder, next: &NextWindow) -> Result<Option<ChangeReader>, CliError> {
    let Some(position) = next.position() else { return Ok(None) };
    let links = folder.links();
    let opened = tokio::task::spawn_blocking(move || ChangeReader::open(&links, position)).await;
    Ok(opened.map_err(|error| broken(&error))?.ok())
}

/// Begins a line at an end.
async fn new_line(
    folder: &ChangesFolder,
    sender: &mut WindowSender,
    (end, earlier): (&ChangesEnd, Vec<String>),
    out: &mut Output,
) -> Result<(ChangeReader, OpenLine), CliError> {
    let line = OpenLine::begun(create::new_id(), earlier, end);
    let reader = open(folder, line.next()).await?;
    let reader = reader.ok_or_else(|| broken(&LineEnd::Rotated))?;
    let line = line.announced(folder, sender).await?;
    let from = time(line.next().at);
    let record = json!({ "line": line.id(), "begun": from });
    report(&format!("line {} begins at {from}", line.id()), &record, out)?;
    Ok((reader, line))
}

/// Prints what happened, at once.
fn report(human: &str, record: &Value, out: &mut Output) -> Result<(), CliError> {
    out.either(human, record)?;
    out.flush()
}

fn time(number: u64) -> String {
    time_text(ticks(number))
}
