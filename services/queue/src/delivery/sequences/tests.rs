//! Tests of sequence numbers.

use super::*;

#[test]
fn numbers_rise_within_a_token_and_from_token_to_token() {
    let first = Sequences::new(FencingToken::FIRST);
    let (a, b) = (first.take(3).expect("numbers remain"), first.take(1).expect("numbers remain"));
    assert_eq!((b, first.peek()), (a + 3, a + 4));

    let second = Sequences::new(FencingToken::FIRST.next().expect("a next token exists"));
    let c = second.take(1).expect("numbers remain");

    assert_eq!(c, a + PER_TOKEN);
}

#[test]
fn an_exhausted_token_rejects_and_loses_no_number() {
    let sequences = Sequences::new(FencingToken::FIRST);
    sequences.allocated.store(PER_TOKEN - 2, Ordering::SeqCst);

    assert_eq!(sequences.take(3), None);
    let last_two = FencingToken::FIRST.first_sequence() + PER_TOKEN - 2;
    assert!(!sequences.is_exhausted());
    assert_eq!(sequences.take(2), Some(last_two));
    assert_eq!((sequences.take(1), sequences.is_exhausted()), (None, true));
}

#[test]
fn the_last_number_of_the_last_token_is_the_last_of_all() {
    let sequences = Sequences::new(FencingToken::LAST);
    sequences.allocated.store(PER_TOKEN - 1, Ordering::SeqCst);

    assert_eq!(sequences.take(1), Some(u64::MAX));
    assert_eq!((sequences.take(1), sequences.peek()), (None, u64::MAX));
}
