//! What a copy has, as it is printed.

use serde_json::{Value, json};
use trestle_command::{
    errors::CliError,
    output::{Output, bytes, counted},
};

use super::{digest::RowsDigest, place::CopyPlaces};

/// Objects and differences that are named.
const SHOWN_MAX: usize = 20;

/// Problems, of which the first are named.
#[derive(Debug, Default)]
pub(crate) struct CopyProblems {
    pub(crate) count: u64,
    first: Vec<String>,
}

impl CopyProblems {
    pub(super) fn add(&mut self, problem: String) {
        self.count += 1;
        if self.first.len() < SHOWN_MAX {
            self.first.push(problem);
        }
    }
}

/// A keyspace of the copy.
#[derive(Debug)]
struct CopiedKeyspace {
    name: &'static str,
    rows: RowsDigest,
    /// Rows that this command wrote.
    copied: u64,
}

/// What a copy has.
#[derive(Debug, Default)]
pub(crate) struct CopySummary {
    keyspaces: Vec<CopiedKeyspace>,
    /// Objects of the copy, and their bytes.
    pub(crate) objects: u64,
    pub(crate) object_bytes: u64,
    /// What rows of the source name and the source lacks, or has not whole.
    pub(crate) missing: CopyProblems,
    /// Where the copy differs from its source.
    pub(crate) differences: CopyProblems,
}

impl CopySummary {
    /// Adds a keyspace by the digests of the source and the target.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        (source, target): (RowsDigest, RowsDigest),
        copied: u64,
    ) {
        if source != target {
            self.differences.add(format!(
                "the rows of a keyspace differ: keyspace=`{name}`, source_rows=`{}`, target_rows=`{}`, \
                 source_digest=`{:032x}`, target_digest=`{:032x}`",
                source.rows, target.rows, source.hash, target.hash
            ));
        }
        self.keyspaces.push(CopiedKeyspace { name, rows: target, copied });
    }

    fn total(&self, of: impl Fn(&CopiedKeyspace) -> u64) -> u64 {
        self.keyspaces.iter().map(of).sum()
    }

    /// Rows that this command wrote.
    pub(crate) fn copied(&self) -> u64 {
        self.total(|keyspace| keyspace.copied)
    }

    /// Rows of the copy.
    pub(crate) fn rows(&self) -> u64 {
        self.total(|keyspace| keyspace.rows.rows)
    }

    /// Whether servers may start on the copy: it is as its source, which lacks nothing or whose loss is accepted.
    pub(crate) fn is_whole(&self, accepts_loss: bool) -> bool {
        self.differences.count == 0 && (self.missing.count == 0 || accepts_loss)
    }

    /// Prints it.
    ///
    /// # Errors
    /// [`CliError::Rejected`] where the copy differs, or the source lacks objects.
    pub(super) fn print(
        &self,
        places: &CopyPlaces,
        is_whole: bool,
        out: &mut Output,
    ) -> Result<(), CliError> {
        for difference in &self.differences.first {
            out.note(difference);
        }
        for object in &self.missing.first {
            out.note(&format!("missing in the source: {object}"));
        }
        let (from, to) = (places.from.shown(), places.to.shown());
        out.either(&self.human(&from, &to), &self.json(&from, &to))?;
        if self.differences.count > 0 {
            out.note("no server starts on the copy: empty the target, and copy again");
        } else if !is_whole {
            out.note(
                "no server starts on the copy: continue it with --accept-loss to leave that out",
            );
        }
        match self.differences.count + self.missing.count == 0 {
            true => Ok(()),
            false => Err(CliError::Rejected),
        }
    }

    fn human(&self, from: &str, to: &str) -> String {
        let (rows, row_bytes) = (self.rows(), self.total(|keyspace| keyspace.rows.bytes));
        let verb = if self.differences.count == 0 { "copied" } else { "a copy that differs:" };
        format!(
            "{verb} {from} to {to}: {} ({}), {} ({}); by this command: {}",
            counted(rows, "row"),
            bytes(row_bytes),
            counted(self.objects, "object"),
            bytes(self.object_bytes),
            counted(self.copied(), "row"),
        )
    }

    fn json(&self, from: &str, to: &str) -> Value {
        let keyspaces = self.keyspaces.iter().map(|keyspace| {
            json!({
                "keyspace": keyspace.name,
                "rows": keyspace.rows.rows,
                "bytes": keyspace.rows.bytes,
                "digest": format!("{:032x}", keyspace.rows.hash),
                "copied": keyspace.copied,
            })
        });
        json!({
            "from": from,
            "to": to,
            "keyspaces": keyspaces.collect::<Vec<_>>(),
            "rows": self.rows(),
            "copied": self.copied(),
            "objects": self.objects,
            "object_bytes": self.object_bytes,
            "missing": self.missing.count,
            "differences": self.differences.count,
        })
    }
}
