//! Shares of holders in pools.

use super::*;

fn peer(host: u8) -> PeerKey {
    std::net::IpAddr::from([10, 0, 0, host]).into()
}

/// A holder by its name alone.
fn account(name: &str) -> Holder {
    Holder { part: None, ..Holder::account(name, peer(1)) }
}

/// How many parts a holder gets until it is rejected.
fn taken(pool: &Arc<SharePool>, holder: Holder) -> Vec<Share> {
    std::iter::from_fn(|| pool.take(holder, 1).ok()).collect()
}

#[test]
fn one_holder_has_three_quarters_and_each_of_two_three_sevenths() {
    let pool = SharePool::new("calls", 1024);
    let alone = taken(&pool, account("a"));
    assert_eq!(alone.len(), 768);
    drop(alone);

    let mut held = [Vec::new(), Vec::new()];
    while let (Ok(a), Ok(b)) = (pool.take(account("a"), 1), pool.take(account("b"), 1)) {
        held[0].push(a);
        held[1].push(b);
    }

    assert_eq!(held.each_ref().map(Vec::len), [438; 2], "three sevenths of 1,024 are 438");
}

#[test]
fn a_holder_that_comes_last_finds_a_part_free() {
    let pool = SharePool::new("calls", 1024);
    let names: Vec<_> = (0..100).map(|number| format!("account{number}")).collect();
    let held: Vec<_> = names.iter().map(|name| taken(&pool, account(name))).collect();

    let last = taken(&pool, account("last"));

    assert!(held.iter().all(|held| !held.is_empty()));
    assert!(!last.is_empty(), "shut out");
}

#[test]
fn a_peer_of_an_account_leaves_room_to_its_other_peers() {
    let pool = SharePool::new("calls", 1300);
    let first = taken(&pool, Holder::account("a", peer(1)));
    let second = taken(&pool, Holder::account("a", peer(2)));
    let other = taken(&pool, Holder::account("b", peer(1)));

    assert_eq!(first.len(), 900, "nine thirteenths");
    assert!(second.len() > 30, "{}", second.len());
    assert!(first.len() + second.len() <= 975, "three quarters: {}", second.len());
    assert!(other.len() > 100, "{}", other.len());
}

#[test]
fn a_pool_of_one_has_a_part_for_one_holder() {
    let pool = SharePool::new("calls", 1);
    let only = pool.take(account("a"), 1).unwrap();

    let full = pool.take(account("b"), 1).unwrap_err();
    drop(only);

    assert_eq!(full.message, "too many calls at a time: limit=`1`");
    assert!(pool.take(account("b"), 1).is_ok(), "a dropped part is not returned");
}

#[test]
fn an_error_has_what_a_holder_has() {
    let pool = SharePool::new("streams", 4);
    let _held = taken(&pool, account("a"));

    let over = pool.take(account("a"), 1).unwrap_err();

    assert_eq!(over.reason, Reason::ServerBusy);
    let text = "too many streams of one client or account at a time: held=`3`, limit=`4`";
    assert_eq!(over.message, text);
}

#[test]
fn a_part_grows_and_shrinks_within_the_share() {
    let pool = SharePool::new("bytes", 100);
    let mut part = pool.take(account("a"), 10).unwrap();

    part.resize(75).unwrap();
    assert!(part.resize(76).is_err());
    assert!(pool.take(account("b"), 25).is_ok(), "a rejected part counts");
    part.resize(0).unwrap();

    assert!(pool.take(account("a"), 100).is_ok(), "it was returned");
}

#[test]
fn bytes_that_cannot_be_rejected_count_until_they_are_gone() {
    let pool = SharePool::new("bytes", 100);
    let most = pool.overdraw(account("a"), 500);

    assert!(pool.is_used_up() && pool.take(account("b"), 1).is_err());
    drop(most);

    assert!(pool.take(account("a"), 75).is_ok());
}

#[test]
fn the_slots_of_a_call_count_for_its_account_once_that_is_known() {
    let pool = SharePool::new("calls", 8);
    let of_peer = || CallHolder::of(&http::Extensions::new());
    let call = |account| {
        let call = of_peer();
        call.take_slot(&pool).and_then(|()| call.authenticated(account)).map(|()| call)
    };
    let mut held = Vec::new();
    let rejected = loop {
        match call("a") {
            Ok(call) => held.push(call),
            Err(fault) => break fault,
        }
    };

    let other = call("b").unwrap();
    let anonymous = of_peer();
    anonymous.take_slot(&pool).unwrap();

    assert_eq!(held.len(), 5, "{rejected:?}");
    assert!(rejected.message.contains("held=`5`"), "{rejected:?}");
    held.iter().for_each(CallHolder::release_slots);
    assert!(call("a").is_ok());
    drop(other);
}
