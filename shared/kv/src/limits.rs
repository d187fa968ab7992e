//! How big a change may be, checked before anything of it is written.
//!
//! The bounds protect the engine, not a product rule: services have their own, smaller limits,
//! and a change that meets one of these is a defect of its service.

use crate::{ChangeSpec, CommitError, ScanLimit, Write};

/// Longest key, in bytes. fjall keeps 16 bits of a key's length and drops the rest silently, so
/// the bound must be ours; some room is left for what an engine adds.
pub const KEY_BYTES_MAX: usize = 60_000;

/// Biggest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most keys that one change reads.
pub const READS_MAX: usize = 4_096;

/// Most writes of one change.
pub const WRITES_MAX: usize = 4_096;

/// Most bytes of keys and values that one change writes. Room for what a small request can grow to:
/// a hundred merges into entities of 1 MiB each, which take up to 1.5 MiB in UTF-8.
pub const CHANGE_BYTES_MAX: usize = 192 * 1024 * 1024;

/// Most domains that a change names beside its own.
pub const DOMAINS_MAX: usize = 1_024;

/// A change that removes keys goes on while disk space is short if it puts so much more than the keys it removes, such
/// as a counter. In bytes of keys and values.
pub const RECLAIM_PUT_BYTES_MAX: usize = 1024;

/// Most rows and bytes that one scan returns.
pub const SCAN_MAX: ScanLimit = ScanLimit { rows: 65_536, bytes: 16 * 1024 * 1024 };

/// How big keys, values, changes and scans of an engine may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest key, in bytes.
    pub key_bytes: usize,
    /// Biggest value, in bytes.
    pub value_bytes: usize,
    /// Most bytes of keys and values that one change writes.
    pub change_bytes: usize,
    /// Most keys that one change reads.
    pub reads: usize,
    /// Most writes of one change.
    pub writes: usize,
    /// Most domains that a change names beside its own.
    pub domains: usize,
    /// Most rows and bytes that one scan returns; more are left for the next.
    pub scan: ScanLimit,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            key_bytes: KEY_BYTES_MAX,
            value_bytes: VALUE_BYTES_MAX,
            change_bytes: CHANGE_BYTES_MAX,
            reads: READS_MAX,
            writes: WRITES_MAX,
            domains: DOMAINS_MAX,
            scan: SCAN_MAX,
        }
    }
}

impl Limits {
    /// Checks what a change names and reads.
    ///
    /// # Errors
    /// [`CommitError::Rejected`].
    pub fn check_spec(&self, spec: &ChangeSpec) -> Result<(), CommitError> {
        at_most("domains", spec.also.len(), self.domains)?;
        let keys = spec.reads.keys();
        at_most("reads", keys.len(), self.reads)?;
        keys.iter().try_for_each(|key| self.check_key(key))
    }

    /// Checks what a change writes.
    ///
    /// # Errors
    /// [`CommitError::Rejected`].
    pub fn check_writes(&self, writes: &[Write]) -> Result<(), CommitError> {
        at_most("writes", writes.len(), self.writes)?;
        let mut total = 0_usize;
        for write in writes {
            let (key, value_bytes) = match write {
                Write::Put { key, value } => (key, value.len()),
                Write::Delete { key } => (key, 0),
            };
            self.check_key(key)?;
            at_most("value_bytes", value_bytes, self.value_bytes)?;
            total = total.saturating_add(key.len()).saturating_add(value_bytes);
        }
        at_most("change_bytes", total, self.change_bytes)
    }

    /// The limit of a scan: what was requested, as far as the engine allows it.
    #[must_use]
    pub fn of_scan(&self, limit: ScanLimit) -> ScanLimit {
        ScanLimit { rows: limit.rows.min(self.scan.rows), bytes: limit.bytes.min(self.scan.bytes) }
    }

    fn check_key(&self, key: &[u8]) -> Result<(), CommitError> {
        if key.is_empty() {
            return Err(CommitError::Rejected { reason: "empty key".into() });
        }
        at_most("key_bytes", key.len(), self.key_bytes)
    }
}

#[inline]
fn at_most(what: &str, found: usize, max: usize) -> Result<(), CommitError> {
    if found <= max { Ok(()) } else { Err(over_limit(what, found, max)) }
}

#[cold]
fn over_limit(what: &str, found: usize, max: usize) -> CommitError {
    let reason = format!("over a limit of storage: {what}=`{found}`, max=`{max}`");
    CommitError::Rejected { reason: reason.into() }
}
