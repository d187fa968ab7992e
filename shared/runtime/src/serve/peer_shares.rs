//! Shares of peers in a limited number of slots: who is admitted, and which member is evicted.
//!
//! Shares bind only at the limit, so that a single peer, such as a gateway, may use all of it. At the limit the peer
//! with the most members loses one to a peer with fewer. That makes the number of slots of each peer at least the limit
//! divided by the number of peers, and no member of a peer with fewer is evicted. A pure structure: times and states
//! are passed in.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::{Duration, Instant},
};

use trestle_rpc::peer::PeerKey;

/// A member is evicted for a newer one of the same peer only from this age on: of connections that are opened
/// together, none is closed for another.
const OWN_AGE_MIN: Duration = Duration::from_secs(1);

/// A member; later ones have higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct MemberId {
    peer: PeerKey,
    number: u64,
}

impl MemberId {
    /// Whether it is one of this peer.
    pub(super) fn is_of(self, peer: PeerKey) -> bool {
        self.peer == peer
    }
}

#[derive(Debug)]
struct Member<T> {
    since: Instant,
    is_open: bool,
    value: T,
}

/// The limit is reached, and no member can be evicted for the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AtLimit;

/// See the module. `T` is what the owner stores for a member.
#[derive(Debug)]
pub(super) struct PeerShares<T> {
    members_max: usize,
    joined: u64,
    members: BTreeMap<MemberId, Member<T>>,
    counts: HashMap<PeerKey, usize>,
    /// The same, in order.
    by_count: BTreeSet<(usize, PeerKey)>,
}

impl<T> PeerShares<T> {
    /// No members, and at most this many.
    pub(super) fn new(members_max: usize) -> Self {
        let (members, counts, by_count) = Default::default();
        Self { members_max, joined: 0, members, counts, by_count }
    }

    /// The number of members.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether this holds for every member, by when it was added and its value.
    pub(super) fn all(&self, holds: impl Fn(Instant, &T) -> bool) -> bool {
        self.members.values().all(|member| holds(member.since, &member.value))
    }

    /// How many members this holds for.
    pub(super) fn count(&self, holds: impl Fn(&T) -> bool) -> usize {
        self.members.values().filter(|member| holds(&member.value)).count()
    }

    /// Whether the next member is rejected unless another one is evicted.
    pub(super) fn is_full(&self) -> bool {
        self.members.len() >= self.members_max
    }

    /// Adds a member that is not open. Below the limit only: make room first.
    pub(super) fn add(&mut self, peer: PeerKey, now: Instant, value: T) -> MemberId {
        self.joined += 1;
        let id = MemberId { peer, number: self.joined };
        self.members.insert(id, Member { since: now, is_open: false, value });
        self.recount(peer, |count| count + 1);
        id
    }

    /// The member opened: it is past its handshake.
    pub(super) fn opened(&mut self, id: MemberId) {
        if let Some(member) = self.members.get_mut(&id) {
            member.is_open = true;
        }
    }

    /// Removes a member; none if it was evicted before.
    pub(super) fn remove(&mut self, id: MemberId) -> Option<T> {
        let member = self.members.remove(&id)?;
        self.recount(id.peer, |count| count - 1);
        Some(member.value)
    }

    /// The member to evict for a new one of this peer. Of the peer with the most members: the oldest that is not
    /// open, else the oldest that is idle, else the newest. If the new one's peer has the most itself, only one of
    /// the first two, and only after [`OWN_AGE_MIN`].
    ///
    /// # Errors
    /// No member can be evicted.
    pub(super) fn evictable(
        &self,
        peer: PeerKey,
        now: Instant,
        is_idle: impl Fn(&T) -> bool,
    ) -> Result<MemberId, AtLimit> {
        let count = self.counts.get(&peer).copied().unwrap_or_default();
        let (most, greediest) = self.by_count.last().copied().ok_or(AtLimit)?;
        // With fewer, the two would only change roles.
        let is_other = most > count + 1;
        let of = if is_other { greediest } else { peer };
        let members = || {
            let of_peer = |number| MemberId { peer: of, number };
            let members = self.members.range(of_peer(0)..=of_peer(u64::MAX));
            members.map(|(id, member)| (*id, member))
        };
        let unused = members()
            .find(|(_, member)| !member.is_open)
            .or_else(|| members().find(|(_, member)| is_idle(&member.value)));
        let is_old =
            |member: &Member<T>| now.saturating_duration_since(member.since) >= OWN_AGE_MIN;
        match unused {
            Some((id, member)) if is_other || is_old(member) => Ok(id),
            None if is_other => members().next_back().map(|(id, _)| id).ok_or(AtLimit),
            _ => Err(AtLimit),
        }
    }

    fn recount(&mut self, peer: PeerKey, change: impl FnOnce(usize) -> usize) {
        let before = self.counts.remove(&peer).unwrap_or_default();
        self.by_count.remove(&(before, peer));
        let after = change(before);
        if after > 0 {
            self.counts.insert(peer, after);
            self.by_count.insert((after, peer));
        }
    }
}

#[cfg(test)]
mod tests;
