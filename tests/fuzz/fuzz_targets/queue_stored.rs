//! The stored forms and keys of queues from arbitrary bytes: read or refused, never a panic; and
//! what was read is written in a form that reads and writes the same again.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trestle_queue::forms::{Form, is_key, rewritten};

#[derive(Debug, Arbitrary)]
struct Input {
    form: u8,
    bytes: Vec<u8>,
    /// What happens to a form that was read: at a place, some bytes are replaced by others.
    damage: Vec<(u16, u8, Vec<u8>)>,
}

const FORMS: [Form; 8] = [
    Form::State,
    Form::Body,
    Form::Deduplication,
    Form::Record,
    Form::Head,
    Form::Cursor,
    Form::DeletedRange,
    Form::Number,
];

fuzz_target!(|input: Input| {
    let form = FORMS[usize::from(input.form) % FORMS.len()];
    let _ = is_key(&input.bytes);
    let Some(mut stored) = check(form, &input.bytes) else { return };
    for (place, len, bytes) in &input.damage {
        let from = usize::from(*place) % (stored.len() + 1);
        let to = (from + usize::from(*len)).min(stored.len());
        stored.splice(from..to, bytes.iter().copied());
    }
    check(form, &stored);
});

fn check(form: Form, bytes: &[u8]) -> Option<Vec<u8>> {
    let written = rewritten(form, bytes)?;
    assert_eq!(rewritten(form, &written).as_ref(), Some(&written), "{form:?}");
    Some(written)
}
