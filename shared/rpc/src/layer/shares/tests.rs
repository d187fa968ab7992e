//! Shares of holders in pools.

use super::*;

fn account(name: &str) -> Holder {
    Holder::account_alone(name)
}

/// How many parts a holder gets until it is rejected.
fn used_parts(pool: &Arc<SharePool>, holder: Holder) -> Vec<Share> {
    std::iter::from_fn(|| pool.take(holder, 1).ok()).collect()
}

#[test]
fn one_holder_has_three_quarters_and_each_of_two_four_tenths() {
    let pool = SharePool::new("calls", 1024);
    let alone = used_parts(&pool, account("a"));
    assert_eq!(alone.len(), 768);
    drop(alone);

    let mut held = [Vec::new(), Vec::new()];
    while let (Ok(a), Ok(b)) = (pool.take(account("a"), 1), pool.take(account("b"), 1)) {
        held[0].push(a);
        held[1].push(b);
    }

    assert_eq!(held.each_ref().map(Vec::len), [417; 2]);
}

#[test]
fn a_holder_that_comes_last_finds_a_part_free() {
    let pool = SharePool::new("calls", 1024);
    // By number: the counters of names could be the same.
    let holder = |whole| Holder { whole, part: None };
    let held: Vec<_> = (0..20).map(|number| used_parts(&pool, holder(number))).collect();

    let last = used_parts(&pool, holder(20));

    let counts: Vec<_> = held.iter().map(Vec::len).collect();
    assert_eq!(counts[..5], [768, 144, 48, 21, 11], "{counts:?}");
    assert!(counts.iter().all(|count| *count > 0) && !last.is_empty(), "{counts:?}");
}

#[test]
fn a_peer_of_an_account_leaves_room_to_its_other_peers() {
    let pool = SharePool::new("calls", 1024);
    let first = used_parts(&pool, Holder { whole: 1, part: Some(1) });
    let second = used_parts(&pool, Holder { whole: 1, part: Some(2) });
    let other = used_parts(&pool, Holder { whole: 2, part: Some(1) });

    assert_eq!(first.len(), 734);
    assert!(second.len() > 20, "{}", second.len());
    assert!(first.len() + second.len() <= 768, "three quarters: {}", second.len());
    assert!(other.len() > 50, "{}", other.len());
}

#[test]
fn the_last_part_moves_to_a_holder_with_the_same_counter() {
    let pool = SharePool::new("bulk transfers", 1);
    let mut only = pool.take(Holder { whole: 1, part: None }, 1).unwrap();

    only.move_to(Holder { whole: 1, part: Some(1) }).unwrap();

    let other = Holder { whole: 2, part: None };
    assert!(pool.take(other, 1).is_err());
    drop(only);
    let all = pool.take(other, 1).unwrap();
    assert!(pool.take(Holder { whole: 1, part: Some(1) }, 1).is_err());
    drop(all);
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
    let _held = used_parts(&pool, account("a"));

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
fn bytes_that_cannot_be_rejected_count_until_they_are_dropped() {
    let pool = SharePool::new("bytes", 100);
    let most = pool.overdraw(account("a"), 500);

    assert!(pool.is_used_up() && pool.take(account("b"), 1).is_err());
    drop(most);

    assert!(pool.take(account("a"), 75).is_ok());
}

/// A request whose call has a slot.
fn called(take: impl FnOnce(&CallHolder) -> Result<(), Fault>) -> Result<Request, Fault> {
    let mut request = Request::new(tonic::body::Body::empty());
    let call = CallHolder::of(request.extensions());
    take(&call)?;
    request.extensions_mut().insert(call);
    Ok(request)
}

#[test]
fn the_slots_of_a_call_count_for_its_account_once_that_is_known() {
    let pool = SharePool::new("calls", 8);
    let call = |account| {
        let mut request = called(|call| call.take_slot(&pool))?;
        CallHolder::authenticated(&mut request, account).map(|()| request)
    };
    let mut held = Vec::new();
    let rejected = loop {
        match call("a") {
            Ok(request) => held.push(request),
            Err(fault) => break fault,
        }
    };

    let other = call("b").unwrap();
    let anonymous = called(|call| call.take_slot(&pool)).unwrap();

    assert_eq!(held.len(), 5, "{rejected:?}");
    assert!(rejected.message.contains("held=`5`"), "{rejected:?}");
    held.iter().for_each(|request| CallHolder::of(request.extensions()).release_slots());
    assert!(call("a").is_ok());
    drop((other, anonymous));
}

#[test]
fn a_call_of_an_account_with_its_share_of_waits_has_the_slot_of_a_call() {
    let (waiting, calls) = (SharePool::new("waits", 4), SharePool::new("calls", 4));
    let call = || {
        let mut request = called(|call| call.take_waiting_slot(&waiting, &calls).map(drop))?;
        CallHolder::authenticated(&mut request, "a").map(|()| request)
    };

    let held: Vec<_> = std::iter::from_fn(|| call().ok()).collect();

    let may_wait: Vec<_> =
        held.iter().map(|request| !request.headers().contains_key(NO_WAIT)).collect();
    assert_eq!(may_wait, [true, true, false, false]);
    assert_eq!([waiting.free(), calls.free()], [2, 2]);
}
