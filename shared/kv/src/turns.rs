//! Turns: those for whom much waits leave room for the others.
//!
//! What costs a store much, such as long scans and large changes, waits for its turn, and turns go around between
//! owners, such as the accounts of a service. One who has a thousand of them waits for their own; another one's first
//! is next. Who alone waits loses nothing: a turn is never kept free, but the last slot of [`Turns`], if so configured.
//!
//! The owner of a task is set for it by [`Owner::scope`], and read where it waits. Tasks without one, such as the jobs
//! of a process, are one owner together.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use foldhash::{HashMap, HashMapExt as _};
use tokio::sync::oneshot;
use tokio::task::futures::TaskLocalFuture;
use tokio::time::Instant;

/// How long work goes on before others get its thread.
const SLICE: Duration = Duration::from_micros(500);
/// Steps after which the time is read, which costs as much as a cheap step.
const TIMED_STEPS: u32 = 8;

/// Of the work of a process that takes longer than a slice.
static LONG_WORK: LazyLock<Turns> = LazyLock::new(|| {
    let threads = available_parallelism().map_or(2, Into::into);
    Turns::new(threads, threads)
});

tokio::task_local! {
    static OWNER: Owner;
}

/// For whom a task works, by a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(Option<usize>);

impl Owner {
    /// The process itself.
    pub const PROCESS: Self = Self(None);

    /// The owner with a number.
    #[must_use]
    pub const fn numbered(number: usize) -> Self {
        Self(Some(number))
    }

    /// The owner of the current task; [`Owner::PROCESS`] where none was set.
    #[must_use]
    pub fn current() -> Self {
        OWNER.try_with(|owner| *owner).unwrap_or(Self::PROCESS)
    }

    /// Sets the owner of a future. A task that it spawns has to be given the owner again.
    pub fn scope<F: Future>(self, work: F) -> TaskLocalFuture<Self, F> {
        OWNER.scope(self, work)
    }
}

/// Work on the threads of all calls that may take long, such as a page of many rows. After a slice it lets others go
/// on; what takes longer than one goes on in turns by owner, as many at a time as there are threads. So the calls of
/// another owner wait for a slice, and not for all such work of one.
///
/// It has a turn until it is dropped: it must not wait for a client, nor for other work of this kind.
#[derive(Debug)]
pub struct Pace {
    since: Instant,
    steps: u32,
    turn: Option<Turn>,
}

impl Default for Pace {
    /// That of work that begins now.
    fn default() -> Self {
        Self { since: Instant::now(), steps: 0, turn: None }
    }
}

impl Pace {
    /// Lets others go on, where it is time. To be called after each row or the like.
    pub async fn step(&mut self) {
        self.steps = self.steps.wrapping_add(1);
        if !self.steps.is_multiple_of(TIMED_STEPS) || self.since.elapsed() < SLICE {
            return;
        }
        self.turn = None;
        tokio::task::yield_now().await;
        self.turn = Some(LONG_WORK.take().await);
        self.since = Instant::now();
    }
}

/// Items that wait, by owner. Each owner in turn gets as much as a quantum; one whose item cost more waits until its
/// later turns have paid for it.
#[derive(Debug)]
pub struct TurnQueue<T> {
    lanes: HashMap<Owner, Lane<T>>,
    /// Those who have items, the next one first.
    order: VecDeque<Owner>,
    quantum: i64,
}

#[derive(Debug)]
struct Lane<T> {
    items: VecDeque<T>,
    /// What is left of its turns; negative where an item cost more.
    credit: i64,
}

impl<T> TurnQueue<T> {
    /// An empty one, where a turn is worth `quantum`, more than 0.
    #[must_use]
    pub fn new(quantum: u32) -> Self {
        let quantum = i64::from(quantum.max(1));
        Self { lanes: HashMap::new(), order: VecDeque::new(), quantum }
    }

    /// Whether no item waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Adds the last item of an owner.
    pub fn push(&mut self, owner: Owner, item: T) {
        let quantum = self.quantum;
        let lane = self.lanes.entry(owner).or_insert_with(|| {
            self.order.push_back(owner);
            Lane { items: VecDeque::new(), credit: quantum }
        });
        lane.items.push_back(item);
    }

    /// The next item, of an owner for whom `may` is true. It costs nothing until it is charged.
    pub fn pop(&mut self, may: impl Fn(Owner) -> bool) -> Option<(Owner, T)> {
        // There is no other turn before one that waits alone, whatever its items cost.
        let is_alone = self.order.len() == 1;
        let mut rejected = 0;
        while rejected < self.order.len() {
            let owner = *self.order.front()?;
            let lane = self.lanes.get_mut(&owner)?;
            if !may(owner) {
                rejected += 1;
            } else if lane.credit > 0 || is_alone {
                let item = lane.items.pop_front()?;
                if lane.items.is_empty() {
                    self.lanes.remove(&owner);
                    self.order.pop_front();
                }
                return Some((owner, item));
            } else {
                rejected = 0;
                lane.credit = lane.credit.saturating_add(self.quantum);
            }
            self.order.rotate_left(1);
        }
        None
    }

    /// Charges an owner for an item that it got. It is forgotten with the last of them.
    pub fn charge(&mut self, owner: Owner, cost: usize) {
        if let Some(lane) = self.lanes.get_mut(&owner) {
            lane.credit = lane.credit.saturating_sub(i64::try_from(cost).unwrap_or(i64::MAX));
        }
    }
}

/// Slots for work, given in turns. Clones share them.
#[derive(Debug, Clone)]
pub struct Turns(Arc<Mutex<Slots>>);

#[derive(Debug)]
struct Slots {
    free: usize,
    most: usize,
    /// How many each owner has.
    held: HashMap<Owner, usize>,
    waiting: TurnQueue<oneshot::Sender<Turn>>,
}

/// A slot, returned when this is dropped.
#[derive(Debug)]
pub struct Turn {
    /// None only after it was returned.
    slots: Option<Turns>,
    owner: Owner,
}

impl Turns {
    /// A number of `slots`, of which an owner has at most `most`. Both are at least 1.
    #[must_use]
    pub fn new(slots: usize, most: usize) -> Self {
        let (free, most) = (slots.max(1), most.max(1));
        let slots = Slots { free, most, held: HashMap::new(), waiting: TurnQueue::new(1) };
        Self(Arc::new(Mutex::new(slots)))
    }

    /// A slot for the owner of the current task, once it is its turn. Dropping the future gives the turn up.
    pub async fn take(&self) -> Turn {
        let owner = Owner::current();
        let (sender, given) = oneshot::channel();
        self.lock().waiting.push(owner, sender);
        self.give();
        // The sender is dropped only with the slots, which this borrows.
        given.await.unwrap_or(Turn { slots: None, owner })
    }

    /// Gives the free slots to those who wait.
    fn give(&self) {
        loop {
            let mut slots = self.lock();
            let Some((owner, waiting)) = slots.next() else { return };
            slots.waiting.charge(owner, 1);
            slots.free -= 1;
            *slots.held.entry(owner).or_default() += 1;
            drop(slots);
            // One who waits no longer drops it, which returns the slot.
            let rejected = waiting.send(Turn { slots: Some(self.clone()), owner });
            if let Err(mut turn) = rejected {
                turn.slots = None;
                self.lock().put_back(owner);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// Who gets a free slot.
    fn next(&mut self) -> Option<(Owner, oneshot::Sender<Turn>)> {
        if self.free == 0 {
            return None;
        }
        let Self { most, held, waiting, .. } = self;
        waiting.pop(|owner| held.get(&owner).is_none_or(|held| held < most))
    }

    fn put_back(&mut self, owner: Owner) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(&owner) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&owner);
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            slots.lock().put_back(self.owner);
            slots.give();
        }
    }
}

#[cfg(test)]
mod tests;
