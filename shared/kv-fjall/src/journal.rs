//! The journals of the pinned database, read by ourselves: which groups are whole, and what follows damage.
//!
//! The database cuts a journal where it cannot read on, whether that is the torn end of a group that
//! was never acknowledged or damage in the middle of what was. See `docs/adr/0009` for how the two are
//! distinguished, and for why what is recovered is written again.

#[cfg(any(test, feature = "testing"))]
mod encoded;
mod examine;
mod files;
mod group;
mod logged_group;
mod resync;
mod rewrite;
mod rows;
#[cfg(test)]
mod tests;
mod whole_run;
mod window;

pub(crate) use self::examine::{JournalExam, examine};
pub(crate) use self::files::{file_name, hash, list, written};
pub(crate) use self::logged_group::{GroupFault, GroupReader, LoggedGroup, LoggedItem};
pub(crate) use self::rewrite::{copy_runs, is_draft, rewrite};
pub(crate) use self::whole_run::WholeRun;
#[cfg(feature = "testing")]
pub use self::{encoded::encode_group, examine::read_journal};
