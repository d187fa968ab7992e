//! The rows of a keyspace, from the source to the target.

use std::{sync::Arc, time::Duration};

use trestle_backup::{NamedObject, StoreRules};
use trestle_command::errors::CliError;
use trestle_kv::{
    ChangeSpec, CommitError, Domain, Engine, Entry, Keyspace, Lock, Reads, ScanLimit, Version,
    Writes, transact,
};

use super::{
    digest::{RowsDigest, RowsHasher},
    failure::{is_temporary, taken_over, unread, unwritten},
    marker::{self, HeldMarker},
    objects::ObjectCopy,
    page::{RowPage, span},
    source::SourceRows,
    summary::CopySummary,
};

/// The first pause before a change is repeated; each is twice the one before.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
/// How often a change is repeated.
const REPEATS_MAX: u32 = 5;

/// Where rows go.
pub(crate) struct TargetRows {
    pub(super) engine: Arc<dyn Engine>,
    /// The marker that each change depends on; none where a lock keeps others out.
    pub(super) marker: Option<HeldMarker>,
    /// The first pause before a change is repeated.
    pub(super) pause: Duration,
}

impl TargetRows {
    /// The last key of a keyspace.
    async fn last(&self, keyspace: &Keyspace) -> Result<Option<Vec<u8>>, CliError> {
        let limit = ScanLimit { rows: 1, bytes: 1 };
        let scan = self.engine.scan(&span(keyspace).backward(), limit).await;
        let scan = scan.map_err(|error| unread(&error))?;
        Ok(scan.entries.first().map(|row| row.key.to_vec()))
    }

    /// Writes rows of a keyspace, all or none. What may succeed later is repeated: the rows are the same.
    async fn write(&self, keyspace: &Keyspace, rows: Vec<Entry>) -> Result<(), CliError> {
        let rows: Arc<[Entry]> = rows.into();
        let mut repeats = 0;
        loop {
            match self.try_write(keyspace, Arc::clone(&rows)).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(taken_over()),
                Err(error) if is_temporary(&error) && repeats < REPEATS_MAX => {
                    tokio::time::sleep(self.pause * 2_u32.pow(repeats)).await;
                    repeats += 1;
                }
                Err(error) => return Err(unwritten(&error)),
            }
        }
    }

    /// Writes rows; false without the marker.
    async fn try_write(
        &self,
        keyspace: &Keyspace,
        rows: Arc<[Entry]>,
    ) -> Result<bool, CommitError> {
        let domains = rows.iter().map(|row| Domain::of_key(&row.key, keyspace.domain));
        let mut domains: Vec<_> = domains.collect();
        domains.sort_unstable();
        domains.dedup();
        let mut domains = domains.into_iter();
        let Some(first) = domains.next() else { return Ok(true) };
        let mut spec = ChangeSpec::new(first);
        domains.for_each(|domain| {
            spec.also(domain, Lock::Exclusive);
        });
        let marker = self.marker.clone().map(|marker| (marker::read(&mut spec), marker));
        let decide = move |reads: &Reads<'_>, _: Version| {
            let mut writes = Writes::new();
            let is_held = marker
                .as_ref()
                .is_none_or(|(read, marker)| marker.is(reads.get(*read).map(|stored| &stored[..])));
            if is_held {
                rows.iter().for_each(|row| {
                    writes.put(row.key.clone(), row.value.clone());
                });
            }
            Ok::<_, CommitError>((writes, is_held))
        };
        transact(&*self.engine, spec, decide).await?
    }
}

/// A keyspace that is copied.
pub(super) struct RowCopy<'a> {
    pub(super) keyspace: &'a Keyspace,
    pub(super) rules: &'a StoreRules,
    pub(super) from: &'a SourceRows,
    pub(super) to: &'a TargetRows,
    /// Is told how many rows of the keyspace are done.
    pub(super) progress: Box<dyn Fn(u64) + Send + Sync + 'a>,
}

impl RowCopy<'_> {
    /// Copies the rows that follow the last one of the target, each after the objects that it names; how many.
    pub(super) async fn copy(&self, objects: &ObjectCopy<'_>) -> Result<u64, CliError> {
        let mut after = self.to.last(self.keyspace).await?;
        let mut copied = 0;
        loop {
            let page = self.from.page(self.keyspace, after.as_deref()).await?;
            let rows = self.kept(page.rows)?;
            objects.copy(self.names(&rows, |_| {})).await?;
            copied += rows.len() as u64;
            self.to.write(self.keyspace, rows).await?;
            (self.progress)(copied);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(copied),
            }
        }
    }

    /// The digest of the rows that a copy has, and the comparison of the objects that they name.
    pub(super) async fn source_digest(
        &self,
        objects: &ObjectCopy<'_>,
        summary: &mut CopySummary,
    ) -> Result<RowsDigest, CliError> {
        let (mut hasher, mut after) = (RowsHasher::default(), None);
        loop {
            let page = self.from.page(self.keyspace, after.as_deref()).await?;
            let rows = self.kept(page.rows)?;
            rows.iter().for_each(|row| hasher.add(row));
            let names = self.names(&rows, |problem| summary.missing.add(problem));
            objects.compare(names, summary).await?;
            (self.progress)(hasher.digest.rows);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(hasher.finish()),
            }
        }
    }

    /// The digest of what the target has.
    pub(super) async fn target_digest(&self) -> Result<RowsDigest, CliError> {
        let (mut hasher, mut after) = (RowsHasher::default(), None);
        loop {
            let page = RowPage::read(&*self.to.engine, self.keyspace, after.as_deref()).await?;
            page.rows.iter().for_each(|row| hasher.add(row));
            (self.progress)(hasher.digest.rows);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(hasher.finish()),
            }
        }
    }

    /// The rows that a copy has.
    fn kept(&self, rows: Vec<Entry>) -> Result<Vec<Entry>, CliError> {
        let kept = rows.into_iter().filter_map(|row| (self.rules.restored)(row).transpose());
        kept.collect::<Result<_, _>>().map_err(|text| CliError::Source { text, busy: false })
    }

    /// The objects that rows name. A row that cannot be read is copied as it is, and reported.
    fn names(&self, rows: &[Entry], mut report: impl FnMut(String)) -> Vec<NamedObject> {
        let mut found = Vec::new();
        for row in rows {
            match (self.rules.objects_of)(row) {
                Ok(names) => found.extend(names),
                Err(reason) => {
                    let key = trestle_kv::domain::Readable(&row.key);
                    report(format!("objects of a row: key=`{key}`: {reason}"));
                }
            }
        }
        found
    }
}
