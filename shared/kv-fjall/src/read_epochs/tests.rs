use super::*;

const SHORT: Duration = Duration::from_millis(5);

#[test]
fn passes_once_the_snapshots_of_before_are_closed_whatever_is_opened_later() {
    let epochs = Arc::new(ReadEpochs::default());
    assert!(epochs.pass(SHORT), "none is open");

    let before = epochs.enter();
    let cloned = before.clone();
    assert!(!epochs.pass(SHORT));
    let later = epochs.enter();
    drop(before);
    assert!(!epochs.pass(SHORT), "a clone of it is open");
    drop(cloned);

    assert!(!epochs.pass(SHORT), "the later one is before this call");
    drop(later);
    assert!(epochs.pass(SHORT));
}

#[test]
fn a_snapshot_that_opens_while_one_waits_is_not_waited_for() {
    let epochs = Arc::new(ReadEpochs::default());
    let before = epochs.enter();
    let waits = std::thread::spawn({
        let epochs = Arc::clone(&epochs);
        move || epochs.pass(Duration::from_secs(10))
    });
    while !epochs.is_odd.load(SeqCst) {
        std::thread::yield_now();
    }
    let _later = epochs.enter();
    drop(before);

    assert!(waits.join().expect("it ends"));
}

#[test]
fn snapshots_of_every_thread_are_waited_for() {
    let epochs = ReadEpochs::default();
    let guards = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(|| epochs.enter())).collect();
        threads.into_iter().map(|thread| thread.join().expect("it ends")).collect::<Vec<_>>()
    });

    for guard in guards {
        assert!(!epochs.pass(SHORT));
        drop(guard);
    }

    assert!(epochs.pass(SHORT));
}
