//! The command `store copy`: moves a store between a data directory and a database while no server has either open.
//!
//! What is copied is what the services keep: the rows of every keyspace of a role, and the objects that they name. Left
//! out is what belongs to one place or one process: the rows of the processes of a database and their secret, the
//! record of which objects a store owns, the spools, keys and ids of backups; each is made anew. Rows of objects that a
//! log is about to delete, or was writing, are left out with their objects, as in a restored backup. Heads of queues
//! stay as they are: for them the copy is the next start, so receipts remain valid.
//!
//! The target has a marker from before its first row until it was compared with the source, and no server starts on a
//! store that has one. Rows are copied in the order of their keys, and the objects that a row names before it, so that
//! what an interrupted copy has is a beginning of each keyspace: the next one goes on after its last key. The marker
//! names the state of the source, so that a copy never continues with a source that was changed meanwhile.

mod digest;
mod directory;
mod failure;
pub(crate) mod marker;
mod objects;
mod page;
mod place;
mod rows;
mod source;
mod summary;
mod target;
#[cfg(test)]
mod tests;

use futures::future::LocalBoxFuture;
use trestle_backup::StoreRules;
use trestle_command::{
    errors::CliError,
    interrupt::Interrupts,
    output::{Output, OutputArgs, counted},
};
use trestle_kv::{Entry, Keyspace};

use self::{
    marker::CopyStart,
    objects::ObjectCopy,
    place::CopyPlaces,
    rows::{RowCopy, TargetRows},
    source::{SourceRows, SourceStore},
    summary::CopySummary,
    target::TargetStore,
};
use crate::{args::StoreCopyArgs, backup};

/// Copies a store, and prints what was copied.
///
/// # Errors
/// A source that is served or is no store, a target of something else, a failed store, [`CliError::Rejected`] where the
/// copy differs or the source lacks objects.
pub fn run<'a>(
    args: &'a StoreCopyArgs,
    output: &'a OutputArgs,
) -> LocalBoxFuture<'a, Result<(), CliError>> {
    Box::pin(copy_store(args, output))
}

async fn copy_store(args: &StoreCopyArgs, output: &OutputArgs) -> Result<(), CliError> {
    let mut out = Output::standard(output);
    let mut interrupts = Interrupts::listen()?;
    let printed = &mut out;
    let work = async move {
        let places = CopyPlaces::parse(args)?;
        let source = SourceStore::open(&places.from).await?;
        places.check(source.url.as_ref(), source.has_objects)?;
        let target = TargetStore::open(&places, &source).await?;
        if target.admitted == CopyStart::Resumed {
            printed.note("continuing an interrupted copy");
        }
        let rules = rules();
        let copy = StoreCopy { rules: &rules, from: &source.rows, to: &target.rows };
        let objects = ObjectCopy {
            from: &source.objects,
            to: &target.objects,
            accepts_loss: args.accept_loss,
        };
        let summary = copy.run(&objects, printed).await?;
        let is_whole = summary.is_whole(args.accept_loss);
        if is_whole {
            source.check_unchanged().await?;
            target.finish().await?;
        }
        summary.print(&places, is_whole, printed)
    };
    let done = interrupts.unless_pressed(Box::pin(work)).await;
    let printed = out.finish();
    done.and(printed)
}

/// The rules of every service, with the rows that a copy has.
pub(crate) fn rules() -> StoreRules {
    let restored = |row: Entry| Ok(Some(row).filter(trestle_log::backup::is_restored));
    StoreRules { restored, ..backup::rules() }
}

/// A copy of the rows and objects of a store that is at rest.
pub(crate) struct StoreCopy<'a> {
    pub(crate) rules: &'a StoreRules,
    pub(crate) from: &'a SourceRows,
    pub(crate) to: &'a TargetRows,
}

impl StoreCopy<'_> {
    /// Copies what the target lacks, and compares all of it.
    ///
    /// # Errors
    /// A failed store, or an object that differs.
    pub(crate) async fn run(
        &self,
        objects: &ObjectCopy<'_>,
        out: &Output,
    ) -> Result<CopySummary, CliError> {
        let (bar, mut summary) = (out.progress(None, 0), CopySummary::default());
        let shown = |step: &'static str, keyspace: &Keyspace| {
            let (bar, name) = (bar.clone(), keyspace.name);
            move |rows| bar.set_message(format!("{step} {name}: {}", counted(rows, "row")))
        };
        let mut copied = Vec::new();
        for keyspace in &self.rules.keyspaces {
            let rows = self.rows(keyspace, shown("copying", keyspace));
            copied.push(rows.copy(objects).await?);
        }
        for (keyspace, copied) in self.rules.keyspaces.iter().zip(copied) {
            let rows = self.rows(keyspace, shown("comparing", keyspace));
            let source = rows.source_digest(objects, &mut summary).await?;
            let target = rows.target_digest().await?;
            summary.add(keyspace.name, (source, target), copied);
        }
        bar.finish_and_clear();
        Ok(summary)
    }

    fn rows<'a>(
        &'a self,
        keyspace: &'a Keyspace,
        progress: impl Fn(u64) + Send + Sync + 'a,
    ) -> RowCopy<'a> {
        let (rules, from, to, progress) = (self.rules, self.from, self.to, Box::new(progress));
        RowCopy { keyspace, rules, from, to, progress }
    }
}
