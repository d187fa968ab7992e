//! Journals of the store: any bytes are read to an end, and groups before damage stay whole.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trestle_kv_fjall::{encode_group, read_journal};

#[derive(Debug, Arbitrary)]
struct Input {
    /// Keys and values of groups one after the other.
    groups: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
    first_seqno: u32,
    /// Bytes behind them.
    rest: Vec<u8>,
    /// Where and how a byte is changed.
    damage: Option<(u16, u8)>,
}

fuzz_target!(|input: Input| {
    let (mut journal, mut ends) = (Vec::new(), vec![0]);
    for (group, seqno) in input.groups.iter().zip(u64::from(input.first_seqno)..) {
        let rows: Vec<_> = group.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        if !rows.is_empty() {
            journal.extend(encode_group(seqno, &rows));
            ends.push(journal.len());
        }
    }
    let whole = journal.len();
    journal.extend(&input.rest);
    let position = input.damage.map(|(position, change)| (usize::from(position), change));
    let position = position.filter(|(position, change)| *position < journal.len() && *change != 0);
    if let Some((position, change)) = position {
        journal[position] ^= change;
    }
    let found = read_journal(&journal).expect("bytes in memory");

    assert!(found.is_sorted() && found.iter().all(|end| *end <= journal.len() as u64), "{found:?}");
    let damaged = position.map_or(usize::MAX, |(position, _)| position).min(whole);
    // A wrong sequence number may be that of the group before.
    let sound = ends.iter().filter(|end| **end <= damaged).nth_back(usize::from(damaged < whole));
    let sound = sound.copied().unwrap_or_default() as u64;
    assert!(found.first().is_some_and(|end| *end >= sound), "{found:?}, sound up to {sound}");
    // What is kept is whole when it is read again.
    let kept = usize::try_from(found[0]).expect("it fits");
    assert_eq!(read_journal(&journal[..kept]).expect("bytes in memory"), [found[0]]);
});
