use trestle_kv::MemoryEngine;

use super::*;

#[tokio::test]
async fn numbers_rise_within_a_start_and_from_start_to_start() {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
    let first = Sequences::new(Arc::clone(&engine));
    let counter = first.counter().await.expect("committed");
    let (a, b) = (counter.take(3), counter.take(1));
    assert_eq!((b, counter.peek()), (a + 3, a + 4));

    let second = Sequences::new(engine);
    let c = second.counter().await.expect("committed").take(1);

    assert!(c > b + 1_000_000, "{c} after {b}");
}
