use std::{cell::Cell, net::IpAddr, rc::Rc};

use proptest::prelude::*;

use super::*;

fn peer(address: &str) -> PeerKey {
    address.parse::<IpAddr>().expect("an address").into()
}

#[test]
fn a_peer_is_an_ipv4_address_or_a_network_of_64_bits() {
    assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
    assert_ne!(peer("10.0.0.1"), peer("10.0.0.2"));
    assert_eq!(peer("2001:db8:0:1::1"), peer("2001:db8:0:1:ffff::2"));
    assert_ne!(peer("2001:db8:0:1::1"), peer("2001:db8:0:2::1"));
}

/// Members whose value is whether they are idle.
type Shares = PeerShares<Rc<Cell<bool>>>;

fn joins(
    shares: &mut Shares,
    peer: PeerKey,
    now: Instant,
) -> Result<(MemberId, Option<MemberId>), AtLimit> {
    let mut evicted = None;
    if shares.is_full() {
        let id = shares.evictable(peer, now, |is_idle| is_idle.get())?;
        shares.remove(id);
        evicted = Some(id);
    }
    Ok((shares.add(peer, now, Rc::default()), evicted))
}

#[test]
fn one_peer_may_use_every_slot_and_others_evict_up_to_half() {
    let (mut shares, now) = (Shares::new(8), Instant::now());
    let (greedy, other) = (peer("10.0.0.1"), peer("10.0.0.2"));
    let first: Vec<_> = (0..8).map(|_| joins(&mut shares, greedy, now).expect("free").0).collect();

    assert_eq!(joins(&mut shares, greedy, now), Err(AtLimit));
    for id in first.into_iter().take(4) {
        let (_, evicted) = joins(&mut shares, other, now).expect("a share");
        assert_eq!(evicted, Some(id), "the oldest that is not open");
    }
    assert_eq!(joins(&mut shares, other, now), Err(AtLimit), "its share is used");
}

#[test]
fn evicts_the_oldest_unopened_before_the_oldest_idle_before_the_newest() {
    let (mut shares, now) = (Shares::new(4), Instant::now());
    let (greedy, other) = (peer("10.0.0.1"), peer("::1"));
    let ids: Vec<_> = (0..4).map(|_| joins(&mut shares, greedy, now).expect("free").0).collect();
    for id in [ids[0], ids[1], ids[3]] {
        shares.opened(id);
    }
    shares.members[&ids[1]].value.set(true);
    let evicted = |shares: &mut Shares| {
        let id = shares.evictable(other, now, |is_idle| is_idle.get()).expect("one");
        shares.remove(id);
        // Replaced by one that is in use.
        let slot = shares.add(greedy, now, Rc::default());
        shares.opened(slot);
        (id, slot)
    };

    assert_eq!(evicted(&mut shares).0, ids[2]);
    let (idle, newest) = evicted(&mut shares);
    assert_eq!(idle, ids[1]);
    assert_eq!(evicted(&mut shares).0, newest);
}

#[test]
fn a_peer_replaces_its_own_unused_members_only_after_a_while() {
    let (mut shares, now) = (Shares::new(2), Instant::now());
    let own = peer("10.0.0.1");
    let [first, second] = [(); 2].map(|()| joins(&mut shares, own, now).expect("free").0);
    let later = now + OWN_AGE_MIN;

    assert_eq!(joins(&mut shares, own, later - Duration::from_millis(1)), Err(AtLimit));
    assert_eq!(joins(&mut shares, own, later).expect("old").1, Some(first));
    // In use, however old.
    shares.opened(second);
    assert_eq!(joins(&mut shares, own, later), Err(AtLimit));
}

#[derive(Debug, Clone)]
enum Step {
    Join(u8),
    Close(prop::sample::Index),
    Open(prop::sample::Index),
    Toggle(prop::sample::Index),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let index = || any::<prop::sample::Index>();
    // Most from two peers, so that one of them has many.
    prop_oneof![
        6 => prop_oneof![Just(0_u8), Just(0), Just(1), 2_u8..6].prop_map(Step::Join),
        1 => index().prop_map(Step::Close),
        2 => index().prop_map(Step::Open),
        2 => index().prop_map(Step::Toggle),
        1 => (0_u64..1_500).prop_map(Step::Wait),
    ]
}

/// A member as the model has it: everything in one list, oldest first.
#[derive(Clone)]
struct Listed {
    id: MemberId,
    peer: PeerKey,
    since: Instant,
    is_open: bool,
    is_idle: Rc<Cell<bool>>,
}

/// The decision in the words of the rule, over the whole list.
fn expected(listed: &[Listed], peer: PeerKey, now: Instant) -> Result<MemberId, AtLimit> {
    let count = |peer| listed.iter().filter(|member| member.peer == peer).count();
    let others = listed.iter().map(|member| (count(member.peer), member.peer));
    let (most, greediest) = others.max().ok_or(AtLimit)?;
    let is_other = most > count(peer) + 1;
    let of = if is_other { greediest } else { peer };
    let members: Vec<_> = listed.iter().filter(|member| member.peer == of).collect();
    let unopened = members.iter().find(|member| !member.is_open);
    let idle = members.iter().find(|member| member.is_idle.get());
    match (unopened.or(idle), is_other) {
        (Some(member), true) => Ok(member.id),
        (Some(member), false) if now - member.since >= OWN_AGE_MIN => Ok(member.id),
        (None, true) => members.last().map(|member| member.id).ok_or(AtLimit),
        (_, false) => Err(AtLimit),
    }
}

proptest! {
    #[test]
    fn decides_as_the_model_and_keeps_the_share_of_every_peer(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        const MEMBERS_MAX: usize = 12;
        let (mut shares, mut now) = (Shares::new(MEMBERS_MAX), Instant::now());
        let mut listed: Vec<Listed> = Vec::new();
        for step in steps {
            match step {
                Step::Join(number) => {
                    let peer = peer(&format!("10.0.0.{number}"));
                    let decision = expected(&listed, peer, now);
                    let is_full = listed.len() == MEMBERS_MAX;
                    let before = listed.iter().filter(|member| member.peer == peer).count();
                    let joined = joins(&mut shares, peer, now);
                    prop_assert_eq!(joined.map(|(_, evicted)| evicted), match decision {
                        _ if !is_full => Ok(None),
                        decision => decision.map(Some),
                    });
                    let peers: BTreeSet<_> = listed.iter().map(|member| member.peer).chain([peer]).collect();
                    let share = MEMBERS_MAX / peers.len();
                    prop_assert!(joined.is_ok() || before >= share, "rejected below its share");
                    if let Ok((id, evicted)) = joined {
                        listed.retain(|member| Some(member.id) != evicted);
                        let is_idle = Rc::clone(&shares.members[&id].value);
                        listed.push(Listed { id, peer, since: now, is_open: false, is_idle });
                    }
                }
                Step::Wait(ms) => now += Duration::from_millis(ms),
                Step::Close(_) | Step::Open(_) | Step::Toggle(_) if listed.is_empty() => {}
                Step::Close(index) => {
                    let member = listed.remove(index.index(listed.len()));
                    prop_assert!(shares.remove(member.id).is_some());
                    prop_assert!(shares.remove(member.id).is_none());
                }
                Step::Open(index) => {
                    let member = index.index(listed.len());
                    listed[member].is_open = true;
                    shares.opened(listed[member].id);
                }
                Step::Toggle(index) => {
                    let member = &index.get(&listed);
                    member.is_idle.set(!member.is_idle.get());
                }
            }
            prop_assert_eq!(shares.len(), listed.len());
            prop_assert!(shares.len() <= MEMBERS_MAX);
        }
    }
}
