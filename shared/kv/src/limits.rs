//! How big a change may be, checked before anything of it is written.
//!
//! The bounds protect the engine, not a product rule: services have their own, smaller limits,
//! and a change that meets one of these is a defect of its service.

use bytes::Bytes;

use crate::{CommitError, Write};

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

/// Checks what a change wants to read.
///
/// # Errors
/// [`CommitError::Refused`].
pub fn check_reads(reads: &[Bytes]) -> Result<(), CommitError> {
    if reads.len() > READS_MAX {
        return refuse(format!("too many reads: reads=`{}`, max=`{READS_MAX}`", reads.len()));
    }
    reads.iter().try_for_each(|key| check_key(key))
}

/// Checks what a change wants to write.
///
/// # Errors
/// [`CommitError::Refused`].
pub fn check_writes(writes: &[Write]) -> Result<(), CommitError> {
    if writes.len() > WRITES_MAX {
        return refuse(format!("too many writes: writes=`{}`, max=`{WRITES_MAX}`", writes.len()));
    }
    let mut total = 0_usize;
    for write in writes {
        let (key, value_bytes) = match write {
            Write::Put { key, value } => (key, value.len()),
            Write::Delete { key } => (key, 0),
        };
        check_key(key)?;
        if value_bytes > VALUE_BYTES_MAX {
            return refuse(format!(
                "value too big: value_bytes=`{value_bytes}`, max=`{VALUE_BYTES_MAX}`"
            ));
        }
        total = total.saturating_add(key.len()).saturating_add(value_bytes);
    }
    if total > CHANGE_BYTES_MAX {
        return refuse(format!("change too big: bytes=`{total}`, max=`{CHANGE_BYTES_MAX}`"));
    }
    Ok(())
}

fn check_key(key: &[u8]) -> Result<(), CommitError> {
    match key.len() {
        0 => refuse("empty key".to_owned()),
        1..=KEY_BYTES_MAX => Ok(()),
        length => refuse(format!("key too long: key_bytes=`{length}`, max=`{KEY_BYTES_MAX}`")),
    }
}

fn refuse(reason: String) -> Result<(), CommitError> {
    Err(CommitError::Refused { reason: reason.into() })
}
