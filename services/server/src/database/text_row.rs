//! A row of one text, such as the record of the object store, which whoever read it last replaces.

use trestle_kv::{ChangeSpec, CommitError, Domain, Engine, Reads, Version, Writes, transact};

/// Puts a text in place of the one that was found under a key of one byte, or removes it. False where it is another
/// one by now.
///
/// # Errors
/// A failed commit.
pub(crate) async fn replace_text(
    engine: &dyn Engine,
    key: u8,
    found: Option<String>,
    text: Option<String>,
) -> Result<bool, CommitError> {
    let mut spec = ChangeSpec::new(Domain::new(key, Vec::new()));
    let row = spec.read(vec![key]);
    let decide = move |reads: &Reads<'_>, _: Version| {
        let mut writes = Writes::new();
        let stored = reads.get(row).map(|stored| &stored[..]);
        let is_same = stored == found.as_deref().map(str::as_bytes);
        if is_same {
            match &text {
                Some(text) => writes.put(vec![key], text.clone().into_bytes()),
                None => writes.delete(vec![key]),
            };
        }
        Ok::<_, CommitError>((writes, is_same))
    };
    transact(engine, spec, decide).await?
}
