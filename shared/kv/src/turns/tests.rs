use super::*;

const ONE: Owner = Owner::numbered(1);
const TWO: Owner = Owner::numbered(2);
const THREE: Owner = Owner::numbered(3);

fn any(_: Owner) -> bool {
    true
}

/// The owners of the next items, each charged `cost`.
fn drain(queue: &mut TurnQueue<&str>, cost: usize) -> Vec<(Owner, String)> {
    let mut order = Vec::new();
    while let Some((owner, item)) = queue.pop(any) {
        queue.charge(owner, cost);
        order.push((owner, item.to_owned()));
    }
    order
}

#[test]
fn owners_take_turns_and_the_items_of_one_keep_their_order() {
    let mut queue = TurnQueue::new(1);
    for item in ["a", "b", "c"] {
        queue.push(ONE, item);
    }
    queue.push(TWO, "d");
    queue.push(THREE, "e");

    let order = drain(&mut queue, 1);

    let expected = [(ONE, "a"), (TWO, "d"), (THREE, "e"), (ONE, "b"), (ONE, "c")];
    assert_eq!(order, expected.map(|(owner, item)| (owner, item.to_owned())));
    assert!(queue.is_empty());
    assert!(queue.lanes.is_empty() && queue.order.is_empty(), "it keeps nothing of those who left");
}

#[test]
fn a_turn_is_worth_many_cheap_items_and_a_dear_one_costs_later_turns() {
    let mut queue = TurnQueue::new(10);
    for _ in 0..3 {
        queue.push(ONE, "dear");
    }
    for _ in 0..25 {
        queue.push(TWO, "cheap");
    }
    let mut order = String::new();
    while let Some((owner, item)) = queue.pop(any) {
        queue.charge(owner, if item == "dear" { 30 } else { 1 });
        order.push(if item == "dear" { 'D' } else { 'c' });
    }
    assert_eq!(order, format!("D{}{}", "c".repeat(25), "DD"), "as much for each");
}

#[test]
fn who_waits_alone_waits_for_no_turn() {
    let mut queue = TurnQueue::new(1);
    for item in ["a", "b"] {
        queue.push(ONE, item);
    }
    assert!(queue.pop(any).is_some());
    queue.charge(ONE, usize::MAX);
    assert_eq!(queue.pop(any), Some((ONE, "b")));
    assert_eq!(queue.pop(any), None);
}

#[test]
fn owners_that_may_not_now_keep_their_items() {
    let mut queue = TurnQueue::new(1);
    queue.push(ONE, "a");
    queue.push(TWO, "b");
    assert_eq!(queue.pop(|owner| owner == TWO), Some((TWO, "b")));
    assert_eq!(queue.pop(|owner| owner == TWO), None);
    assert_eq!(queue.pop(any), Some((ONE, "a")));
}

/// Has an owner wait for a slot; the turn, once it has it.
fn wait(turns: &Turns, owner: Owner) -> tokio::task::JoinHandle<Turn> {
    let turns = turns.clone();
    tokio::spawn(owner.scope(async move { turns.take().await }))
}

async fn yield_often() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_next_slot_is_for_the_owner_whose_turn_it_is() {
    let turns = Turns::new(1, 1);
    let first = wait(&turns, ONE).await.unwrap();
    let mut many: Vec<_> = (0..50).map(|_| wait(&turns, ONE)).collect();
    yield_often().await;
    let other = wait(&turns, TWO);
    yield_often().await;
    assert!(!other.is_finished());

    // At most one more of the first owner was before it.
    drop(first);
    yield_often().await;
    drop(many.remove(0).await.unwrap());
    assert_eq!(other.await.unwrap().owner, TWO);
    for waiting in many {
        drop(waiting.await.unwrap());
    }
    let slots = turns.lock();
    assert_eq!((slots.free, slots.held.len(), slots.waiting.is_empty()), (1, 0, true));
}

#[tokio::test]
async fn an_owner_has_no_more_than_its_most_and_another_gets_the_rest() {
    let turns = Turns::new(3, 2);
    let held = [wait(&turns, ONE).await.unwrap(), wait(&turns, ONE).await.unwrap()];
    let third = wait(&turns, ONE);
    yield_often().await;
    assert!(!third.is_finished());
    let other = wait(&turns, TWO).await.unwrap();
    assert_eq!(other.owner, TWO);
    drop(other);
    yield_often().await;
    assert!(!third.is_finished());
    drop(held);
    drop(third.await.unwrap());
}

#[tokio::test]
async fn who_waits_no_longer_gets_no_slot_and_loses_none() {
    let turns = Turns::new(1, 1);
    let held = wait(&turns, ONE).await.unwrap();
    let abandoned: Vec<_> = (0..10).map(|_| wait(&turns, TWO)).collect();
    yield_often().await;
    for waiting in &abandoned {
        waiting.abort();
    }
    yield_often().await;
    let last = wait(&turns, TWO);
    drop(held);
    drop(last.await.unwrap());
    assert_eq!(turns.lock().free, 1);
}

#[tokio::test]
async fn a_task_without_an_owner_works_for_the_process() {
    assert_eq!(Owner::current(), Owner::PROCESS);
    ONE.scope(async {
        assert_eq!(Owner::current(), ONE);
        assert_eq!(tokio::spawn(async { Owner::current() }).await.unwrap(), Owner::PROCESS);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn work_that_takes_long_goes_on_in_turns_and_keeps_none() {
    let mut pace = Pace::default();
    for _ in 0..TIMED_STEPS {
        pace.step().await;
    }
    assert!(pace.turn.is_none(), "it was short");
    tokio::time::advance(SLICE).await;
    let (others, mut went_on) = (tokio::spawn(async {}), false);
    for _ in 0..TIMED_STEPS {
        assert!(pace.turn.is_none());
        pace.step().await;
        went_on = others.is_finished();
    }
    assert!(went_on, "others went on meanwhile");
    assert!(pace.turn.is_some());
    let free = LONG_WORK.lock().free;
    drop(pace);
    assert_eq!(LONG_WORK.lock().free, free + 1);
}
