//! `backup verify` of the windows after a backup.

use std::collections::HashSet;

use futures::{StreamExt as _, stream};
use trestle_command::errors::CliError;

use super::{AT_ONCE, BadPart, Verification, window, window_parts};
use crate::{
    coverage::Coverage,
    lists::Listed as _,
    manifest::BackupManifest,
    names::PartName,
    window::{CHANGES, ChangeWindow, WindowName},
};

impl Verification<'_> {
    /// The windows that lead from a backup to later instants, each once for all backups.
    pub(super) async fn windows(
        &mut self,
        coverage: &Coverage,
        manifest: &BackupManifest,
    ) -> Result<(), CliError> {
        self.gap(coverage, manifest);
        let Some(run) = coverage.run_after(manifest) else { return Ok(()) };
        let unread = run.windows.iter().filter(|name| !self.verified_windows.contains(name));
        let unread: Vec<_> = unread.cloned().collect();
        let repository = self.repository;
        let read = stream::iter(unread).map(|name| async move {
            let read = window(repository, &name).await?;
            let names = match name.parts {
                0 => Ok(Vec::new()),
                _ => window_parts(repository, &name).await?,
            };
            Ok::<_, CliError>((name, read, names))
        });
        let mut read = std::pin::pin!(read.buffered(AT_ONCE));
        let mut open = None;
        while let Some(found) = read.next().await {
            let (name, window, names) = found?;
            let (window, names) = (self.note(window), self.note(names));
            match window {
                Some(window) => self.window(&name, window, names, &mut open).await?,
                None => open = None,
            }
            self.verified_windows.insert(name);
        }
        Ok(())
    }

    /// Windows that are missing, or that two servers wrote: names alone show them.
    fn gap(&mut self, coverage: &Coverage, manifest: &BackupManifest) {
        let Some(next) = coverage.behind_gap(manifest) else { return };
        let before = coverage.run_after(manifest).and_then(|run| run.windows.last());
        let before = before.map_or("none".to_owned(), |last| last.seq.to_string());
        let (line, after) = (format!("{CHANGES}/{}", next.line), next.seq);
        let rule = format!("windows are missing or ambiguous: after=`{before}`, before=`{after}`");
        let gap = BadPart::new(&line, &rule);
        // Once for all backups.
        if !self.bad.contains(&gap) {
            self.bad.push(gap);
        }
    }

    /// A window, the names beside it, and the pieces of its objects.
    async fn window(
        &mut self,
        name: &WindowName,
        window: ChangeWindow,
        names: Option<Vec<PartName>>,
        open: &mut Option<u64>,
    ) -> Result<(), CliError> {
        let begun = window.groups.first().map(|first| (open.take(), first.version));
        if begun.is_some_and(|(open, first)| open.is_some_and(|version| version != first)) {
            let rule = "it does not go on with the group that the one before ends in";
            self.bad.push(BadPart::new(&name.path(), &rule));
        }
        if let Some(last) = window.groups.last().filter(|last| last.is_continued) {
            *open = Some(last.version);
        }
        let expected = window.objects.iter().flat_map(|object| object.parts().unwrap_or_default());
        let expected: HashSet<_> = expected.collect();
        // `prune` keeps no others.
        if names.is_some_and(|names| HashSet::from_iter(names) != expected) {
            let rule = "it has other names than its window";
            self.bad.push(BadPart::new(&name.parts_path(), &rule));
        }
        self.objects(window.objects).await
    }
}
