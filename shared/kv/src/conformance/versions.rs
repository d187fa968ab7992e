//! Versions rise strictly and time elapses, whatever the clock does.

use std::time::Duration;

use bytes::Bytes;

use super::{KIND, OpenStore, commit, covering, get, key, put};
use crate::{ChangeSpec, Version, Writes, transact};
use trestle_model::time::{Clock as _, Ticks};

/// From change to change, with a clock that does not advance or is set back, through several handles and across a
/// reopening.
pub async fn versions_rise_across_handles_and_reopenings(mut opened: OpenStore) {
    let row = key(KIND, "row");
    let start = opened.clock.now();
    let steps = [Duration::ZERO, Duration::from_secs(3_600), Duration::from_secs(86_400)];
    let mut newest: Option<Version> = None;
    for back in steps {
        opened.clock.set(start.before(back));
        for _ in 0..20 {
            let engine = opened.store.handle();
            let version = commit(&*engine, vec![put(row.clone(), "")]).await.expect("committed");
            assert!(Some(version) > newest, "{version:?} after {newest:?}, clock back by {back:?}");
            newest = Some(version);
        }
        opened.store.reopen();
    }
}

/// A version is the time by the engine's clock where that is ahead.
pub async fn versions_follow_the_clock(opened: OpenStore) {
    let engine = opened.store.handle();
    commit(&*engine, vec![put(key(KIND, "a"), "")]).await.expect("committed");

    opened.clock.advance(Duration::from_secs(5));
    let now = engine.now();
    let version = commit(&*engine, vec![put(key(KIND, "a"), "")]).await.expect("committed");

    assert_eq!(now, opened.clock.now());
    assert_eq!(version, Version::new(now));
}

/// A change that writes several keys may give each a version of its own: the next change starts after them.
pub async fn versions_leave_room_for_the_writes_of_a_change(opened: OpenStore) {
    let engine = opened.store.handle();
    let keys: Vec<Bytes> = (0..100).map(|row| key(KIND, &format!("rows/{row}"))).collect();
    let last = keys.len();
    let written = transact(&*engine, covering(&keys), move |_, version| {
        let mut writes = Writes::new();
        for row in &keys {
            writes.put(row.clone(), "");
        }
        Ok::<_, ()>((writes, version.nth(last)))
    });
    let last = written.await.expect("committed").expect("it never rejects");

    let next = commit(&*engine, vec![put(key(KIND, "rows/0"), "")]).await.expect("committed");

    assert!(next > last, "{next:?} after {last:?}");
}

/// The version that a decision is given is the one that its commit returns, and what it wrote has it.
pub async fn a_decision_is_given_the_version_of_its_commit(opened: OpenStore) {
    let engine = opened.store.handle();
    let row = key(KIND, "row");
    let target = row.clone();
    let spec: ChangeSpec = covering([&row]);
    let change = crate::Change::new(spec, move |_, version| {
        let mut writes = Writes::new();
        writes.put(target.clone(), version.ticks().get().to_be_bytes().to_vec());
        writes
    });

    let version = engine.commit(change).await.expect("committed");

    let stored = super::number(get(&*engine, &row).await.as_ref());
    assert_eq!(Ticks::new(stored), Some(version.ticks()));
}

/// A wall clock that steps, forward or back, changes neither the time nor the next versions by more than a twentieth of
/// what elapses; also across a reopening.
pub async fn time_elapses_whatever_the_wall_clock_does(mut opened: OpenStore) {
    let (row, minute) = (key(KIND, "row"), Duration::from_secs(60));
    let start = opened.clock.now();
    for (step, wall) in
        [start.before(10 * minute), start.after(20 * minute)].into_iter().enumerate()
    {
        let engine = opened.store.handle();
        let before = engine.now();
        opened.clock.set(wall);
        opened.clock.advance(minute);
        let now = engine.now();
        let version = commit(&*engine, vec![put(row.clone(), "")]).await.expect("committed");

        let elapsed = now.since(before);
        assert!(elapsed.abs_diff(minute) <= minute / 20, "step {step}: {elapsed:?}");
        assert_eq!(version, Version::new(now), "step {step}");
        drop(engine);
        opened.store.reopen();
        let after = opened.store.handle().now().since(now);
        assert!(after <= Duration::from_millis(100), "step {step}: {after:?} later");
        assert!(opened.store.handle().now() >= now, "step {step}: back");
    }
}
