//! The stored forms and keys of queues from arbitrary bytes: read or rejected, never a panic; and
//! what was read is written in a form that reads and writes the same again.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trestle_queue::forms::{StoredForm, is_key, rewritten};

#[derive(Debug, Arbitrary)]
struct Input {
    form: u8,
    bytes: Vec<u8>,
    /// What happens to a form that was read: at a position, some bytes are replaced by others.
    damage: Vec<(u16, u8, Vec<u8>)>,
}

const FORMS: [StoredForm; 8] = [
    StoredForm::State,
    StoredForm::Body,
    StoredForm::Deduplication,
    StoredForm::Record,
    StoredForm::Head,
    StoredForm::Cursor,
    StoredForm::DeletedRange,
    StoredForm::Number,
];

fuzz_target!(|input: Input| {
    let form = FORMS[usize::from(input.form) % FORMS.len()];
    let _ = is_key(&input.bytes);
    let Some(mut stored) = check(form, &input.bytes) else { return };
    for (position, len, bytes) in &input.damage {
        let from = usize::from(*position) % (stored.len() + 1);
        let to = (from + usize::from(*len)).min(stored.len());
        stored.splice(from..to, bytes.iter().copied());
    }
    check(form, &stored);
});

fn check(form: StoredForm, bytes: &[u8]) -> Option<Vec<u8>> {
    let written = rewritten(form, bytes)?;
    assert_eq!(rewritten(form, &written).as_ref(), Some(&written), "{form:?}");
    Some(written)
}
