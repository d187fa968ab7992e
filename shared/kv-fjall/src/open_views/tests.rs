use super::*;
use crate::open::open;
use crate::options::FjallOptions;
use trestle_kv::{DomainRef, Keyspace};

fn engine(directory: &tempfile::TempDir) -> Arc<EngineState> {
    let domain = |_: &[u8]| DomainRef { group: 1, part: &[] };
    let keyspaces = vec![Keyspace { name: "a", kinds: 1..=1, domain }];
    Arc::new(open(&FjallOptions::new(directory.path(), keyspaces)).unwrap())
}

fn add(engine: &Arc<EngineState>) -> OpenView {
    OpenView::open(Arc::clone(engine))
}

fn places(engine: &EngineState) -> usize {
    engine.views.lists.iter().map(|list| list.lock().all.len()).sum()
}

fn is_ended(result: &Result<(), EngineError>) -> bool {
    matches!(result, Err(EngineError::SnapshotEnded { .. }))
}

#[test]
fn only_old_views_are_ended_and_an_ended_one_holds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory);
    let views = [add(&engine), add(&engine)];
    let checks = views.each_ref().map(OpenView::new_check);
    assert_eq!(engine.views.end_older_than(Duration::from_secs(3600)), 0);
    assert!(views.iter().all(|view| view.read(|_, _| Ok(())).is_ok()));
    assert!(checks.iter().all(|it| it.check().is_ok()));
    assert!(!engine.reads.pass(Duration::ZERO));

    assert_eq!(engine.views.end_older_than(Duration::ZERO), 2);

    assert!(views.iter().all(|view| is_ended(&view.read(|_, _| Ok(())))));
    assert!(checks.iter().all(|it| is_ended(&it.check())));
    assert!(engine.reads.pass(Duration::ZERO), "nothing is kept for them");
    assert_eq!(engine.views.end_older_than(Duration::ZERO), 0, "each is ended once");
}

#[test]
fn the_age_of_a_view_does_not_count_from_the_one_before_it_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory);
    let closed = add(&engine);
    engine.views.note_at(0);
    let place = Arc::as_ptr(&closed.place);
    drop(closed);

    let view = add(&engine);

    assert_eq!(Arc::as_ptr(&view.place), place, "the place is used again");
    assert_eq!(engine.views.end_at(100, 50), 0);
    assert_eq!(engine.views.end_at(149, 50), 0);
    assert_eq!(engine.views.end_at(150, 50), 1);
    assert!(is_ended(&view.read(|_, _| Ok(()))));
}

#[test]
fn a_check_fails_once_its_view_is_closed_whatever_is_opened_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory);
    let first = add(&engine);
    let check = first.new_check();
    assert!(check.check().is_ok());

    drop(first);
    let second = add(&engine);

    assert!(is_ended(&check.check()));
    assert!(second.new_check().check().is_ok());
}

#[test]
fn an_ended_view_gives_its_place_back_once() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory);
    let ended = add(&engine);
    assert_eq!(engine.views.end_older_than(Duration::ZERO), 1);
    let next = add(&engine);
    assert!(next.read(|_, _| Ok(())).is_ok());
    assert!(is_ended(&ended.read(|_, _| Ok(()))), "the next one is elsewhere");

    drop(ended);

    let held = [add(&engine), add(&engine)];
    assert!(held.iter().chain([&next]).all(|view| view.read(|_, _| Ok(())).is_ok()));
    assert_eq!(places(&engine), 3);
}

#[test]
fn places_are_as_many_as_views_are_open_and_freed_after_many_were() {
    const MANY: usize = 3 * PLACES_KEPT;
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory);
    let mut held: Vec<_> = (0..MANY).map(|_| add(&engine)).collect();
    for _ in 0..10 * MANY {
        drop(add(&engine));
    }
    assert_eq!(places(&engine), MANY + 1);
    let last = held.pop();

    drop(held);
    assert_eq!(engine.views.end_older_than(Duration::ZERO), 1);
    drop(last);

    assert_eq!(places(&engine), 0);
}

#[test]
fn views_of_many_threads_are_ended_together() {
    const THREADS: usize = 40;
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory);
    let threads = || {
        std::thread::scope(|scope| {
            let open = |_| scope.spawn(|| (0..100).map(|_| add(&engine)).next_back());
            let threads: Vec<_> = (0..THREADS).map(open).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        })
    };
    let views = threads();

    assert_eq!(engine.views.end_older_than(Duration::ZERO), THREADS);

    assert!(views.iter().all(|view| is_ended(&view.read(|_, _| Ok(())))));
    drop(views);
    assert!(engine.reads.pass(Duration::ZERO));
}
