//! A line of windows that is being written.

use trestle_command::errors::CliError;
use trestle_model::time::Ticks;

use super::sender::WindowSender;
use crate::{
    changes::{ChangesEnd, ChangesFolder, NextWindow, ShippedChanges, WritingWindow},
    window::{WindowGroup, WindowName},
};

/// The error of a command that another one has followed.
const FOLLOWED: &str =
    "another server with a copy of the data directory sends its changes to the target";

/// A number of a window as a time.
pub(super) fn ticks(number: u64) -> Ticks {
    Ticks::new(number).unwrap_or(Ticks::MAX)
}

/// A line, and how far it is written.
#[derive(Debug)]
pub(super) struct OpenLine(ShippedChanges);

impl OpenLine {
    /// A new line, which begins at an end.
    pub(super) fn begun(id: String, earlier: Vec<String>, end: &ChangesEnd) -> Self {
        let ChangesEnd { position, newest, now, epoch } = end.clone();
        let next = NextWindow { seq: 0, position, skip: 0, newest, at: now };
        let (run, claim, writing) = (0, None, None);
        Self(ShippedChanges { line: id, earlier, run, claim, epoch, next, writing })
    }

    /// Writes its first window, which is empty: from now on a backup may rely on the line.
    ///
    /// # Errors
    /// The target, or the data directory.
    pub(super) async fn announced(
        mut self,
        folder: &ChangesFolder,
        sender: &mut WindowSender,
    ) -> Result<Self, CliError> {
        let until = self.0.next.clone();
        self.write(folder, sender, Vec::new(), &until).await?;
        Ok(self)
    }

    /// The line of an earlier command; none where the target has other windows than that noted, or lacks some.
    ///
    /// # Errors
    /// The target cannot be read.
    pub(super) async fn resumed(
        mut shipped: ShippedChanges,
        sender: &WindowSender,
    ) -> Result<Option<Self>, CliError> {
        let windows = sender.windows_of(&shipped.line, 0).await?;
        if let Some(WritingWindow { path, next }) = shipped.writing.take()
            && windows.iter().any(|window| window.path() == path)
        {
            shipped.next = next;
        }
        let follows = |window: &WindowName| window.seq + 1 == shipped.next.seq;
        let last = windows.iter().max_by_key(|window| window.seq);
        // One that is further was written by who has a copy of the data directory.
        let is_last = last.is_some_and(follows);
        if !is_last {
            return Ok(None);
        }
        let needed = sender.needed(windows, (&shipped.line, shipped.next.seq)).await?;
        Ok(needed.map(|_| Self(shipped)))
    }

    pub(super) fn id(&self) -> &str {
        &self.0.line
    }

    pub(super) fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// Where its next window begins.
    pub(super) fn next(&self) -> &NextWindow {
        &self.0.next
    }

    pub(super) fn shipped(&self) -> &ShippedChanges {
        &self.0
    }

    /// Writes its next window, which ends at `until`.
    ///
    /// # Errors
    /// The target, or the data directory: where the line is then is known to neither, until a command goes on with it.
    pub(super) async fn write(
        &mut self,
        folder: &ChangesFolder,
        sender: &mut WindowSender,
        groups: Vec<WindowGroup>,
        until: &NextWindow,
    ) -> Result<(), CliError> {
        let NextWindow { seq, newest, .. } = self.0.next;
        let window = sender.prepare(groups).await?;
        if sender.claimant(&self.0.line, self.0.run + 1).await?.is_some() {
            return Err(CliError::Source { text: FOLLOWED.to_owned(), busy: true });
        }
        let name = WindowName {
            line: self.0.line.clone(),
            seq,
            from: ticks(newest),
            to: ticks(until.newest),
            at: ticks(until.at),
            parts: window.parts() as u64,
        };
        let next = NextWindow { seq: seq + 1, ..until.clone() };
        self.0.writing = Some(WritingWindow { path: name.path(), next: next.clone() });
        folder.note(&self.0)?;
        sender.send(&name, window).await?;
        (self.0.next, self.0.writing) = (next, None);
        folder.note(&self.0)
    }
}
