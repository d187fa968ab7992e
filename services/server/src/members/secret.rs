//! The secret of the processes of a store, which is kept in the store: whoever reads it there has all the data anyway.

use trestle_identity::gateway_secret::GatewaySecret;
use trestle_kv::{ChangeSpec, CommitError, Engine, Reads, Version, Writes, transact};

use super::{FORMAT, domain};
use crate::process_error::ProcessError;

/// The key of the row.
pub(super) const SECRET: u8 = 0x09;

/// The secret of a store. The first process makes it.
///
/// # Errors
/// A failed commit, or a row that a later version wrote.
pub(super) async fn of_store(
    engine: &dyn Engine,
    random: fn() -> u128,
) -> Result<GatewaySecret, ProcessError> {
    let mut spec = ChangeSpec::new(domain());
    let row = spec.read(vec![SECRET]);
    let new = format!("{:032x}{:032x}", random(), random());
    let decide = move |reads: &Reads<'_>, _: Version| {
        let mut writes = Writes::new();
        if let Some(stored) = reads.get(row) {
            return Ok::<_, CommitError>((writes, stored.to_vec()));
        }
        let made = [&[FORMAT][..], new.as_bytes()].concat();
        writes.put(vec![SECRET], made.clone());
        Ok((writes, made))
    };
    let stored = transact(engine, spec, decide).await.and_then(|decided| decided);
    let stored = stored.map_err(|error| unreadable(&error.to_string()))?;
    let text = stored.strip_prefix(&[FORMAT]).and_then(|text| std::str::from_utf8(text).ok());
    let secret = text.and_then(|text| GatewaySecret::of_store(text).ok());
    secret.ok_or_else(|| unreadable("another version of the program wrote it"))
}

fn unreadable(reason: &str) -> ProcessError {
    ProcessError::Members { reason: format!("their secret cannot be read: {reason}") }
}
