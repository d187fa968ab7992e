//! Which connection a call gets, and how long calls wait for one, on a clock that is paused.

use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{DuplexStream, duplex},
    task::JoinHandle,
    time::{advance, sleep},
};

use super::*;

const WAIT: Duration = Duration::from_secs(30);
const LIMITS: WaitLimits = WaitLimits { wait: WAIT, waiting_max: 2 };
/// Calls on a connection here.
const CALLS_MAX: usize = 2;

/// A connection to nothing. Its end is with the dropped peer.
struct Opened {
    connection: Arc<UpstreamConnection>,
    peer: DuplexStream,
    driver: JoinHandle<()>,
}

impl Opened {
    async fn new(is_serving: bool) -> Self {
        let (own, peer) = duplex(64 * 1024);
        let shaken = http2::handshake(TokioExecutor::new(), TokioIo::new(own)).await;
        let (sender, driver) = shaken.expect("a handshake");
        let (running, end) = watch::channel(());
        let driver = tokio::spawn(async move {
            driver.await.ok();
            drop(running);
        });
        let connection = Arc::new(UpstreamConnection {
            sender,
            calls: AtomicUsize::new(0),
            calls_max: CALLS_MAX,
            end,
            is_serving: AtomicBool::new(is_serving),
            is_limited: AtomicBool::new(false),
        });
        Self { connection, peer, driver }
    }

    /// As if the process ended: the connection is closed, and not withdrawn yet.
    async fn close(self) -> Arc<UpstreamConnection> {
        drop(self.peer);
        self.driver.await.expect("a driver");
        assert!(self.connection.sender.is_closed());
        self.connection
    }

    fn calls(&self) -> usize {
        self.connection.calls()
    }

    fn is_of(&self, lease: &Lease) -> bool {
        Arc::ptr_eq(&self.connection, &lease.0)
    }
}

fn pool() -> Arc<Pool> {
    let pool = Pool::new("127.0.0.1:1".to_owned(), LIMITS);
    pool.begin();
    Arc::new(pool)
}

async fn pool_of<const N: usize>(serving: [bool; N]) -> (Arc<Pool>, Vec<Opened>) {
    let (pool, mut opened) = (pool(), Vec::new());
    for is_serving in serving {
        let connection = Opened::new(is_serving).await;
        pool.publish(&connection.connection);
        opened.push(connection);
    }
    (pool, opened)
}

/// How long a future takes, and what it returns.
async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let begun = Instant::now();
    let done = work.await;
    (begun.elapsed(), done)
}

#[tokio::test(start_paused = true)]
async fn calls_go_to_the_connection_with_the_fewest() {
    let (pool, opened) = pool_of([true, true]).await;

    let leases: Vec<Lease> = (0..4).filter_map(|_| pool.lease()).collect();

    assert_eq!(leases.len(), 4);
    assert_eq!([opened[0].calls(), opened[1].calls()], [2, 2]);
    drop(leases);
    assert_eq!([opened[0].calls(), opened[1].calls()], [0, 0], "a lease ends when it is dropped");
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_leases_nothing_and_requests_another_connection() {
    let (pool, opened) = pool_of([true]).await;
    let leases: Vec<Lease> = (0..CALLS_MAX).filter_map(|_| pool.lease()).collect();
    assert_eq!(leases.len(), CALLS_MAX);

    assert!(pool.lease().is_none());
    assert_eq!(opened[0].calls(), CALLS_MAX, "the rejected one does not count");
    timeout(Duration::ZERO, pool.grow.notified()).await.expect("another one is requested");
}

#[tokio::test(start_paused = true)]
async fn a_connection_of_a_process_that_serves_is_preferred_even_with_more_calls() {
    let (pool, opened) = pool_of([false, true]).await;

    let first = pool.lease().expect("a lease");
    let second = pool.lease().expect("a lease");
    assert!(opened[1].is_of(&first) && opened[1].is_of(&second));

    pool.set_serving(&opened[1].connection, false);
    let third = pool.lease().expect("a process that shuts down still accepts calls");
    assert!(opened[0].is_of(&third), "both do not serve: the one with fewer calls");
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_gets_no_call_before_it_is_withdrawn() {
    let (pool, mut opened) = pool_of([true, true]).await;
    let closed = opened.remove(0).close().await;

    let leases: Vec<Lease> = (0..CALLS_MAX).filter_map(|_| pool.lease()).collect();
    assert!(leases.iter().all(|lease| opened[0].is_of(lease)));
    assert_eq!(closed.calls(), 0);
    pool.withdraw(&closed);
    pool.withdraw(&opened[0].connection);
    assert!(pool.lease().is_none(), "no connection is left");
}

#[tokio::test(start_paused = true)]
async fn a_call_sees_the_end_of_its_connection() {
    let (pool, mut opened) = pool_of([true]).await;
    let lease = pool.lease().expect("a lease");
    assert!(timeout(WAIT, lease.ended()).await.is_err(), "it is open");

    opened.remove(0).close().await;

    timeout(Duration::ZERO, lease.ended()).await.expect("it has ended");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_connection_and_gets_the_next_one() {
    let (pool, later) = (pool(), Opened::new(true).await);
    let connects = async {
        sleep(Duration::from_secs(3)).await;
        pool.publish(&later.connection);
    };

    let ((took, lease), ()) = tokio::join!(timed(pool.lease_soon()), connects);
    assert!(later.is_of(&lease.expect("a lease")));
    assert_eq!(took, Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_bounded_time_after_the_last_connection() {
    let (pool, mut opened) = pool_of([true]).await;
    let closed = opened.remove(0).close().await;
    pool.withdraw(&closed);
    pool.failed("connection refused");
    advance(Duration::from_secs(10)).await;

    let (took, lease) = timed(pool.lease_soon()).await;
    assert!(lease.is_none());
    assert_eq!(took, WAIT.checked_sub(Duration::from_secs(10)).expect("a rest"));
    let (took, lease) = timed(pool.lease_soon()).await;
    assert!(lease.is_none());
    assert_eq!(took, Duration::ZERO, "the time of the role is over for later calls");
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_is_waited_for_where_no_wait_is_set() {
    let pool = Pool::new("127.0.0.1:1".to_owned(), WaitLimits { wait: Duration::ZERO, ..LIMITS });
    pool.begin();

    let (took, lease) = timed(pool.lease_soon()).await;
    assert!(lease.is_none());
    assert_eq!(took, CONNECT_WITHIN);
    pool.failed("connection refused");
    assert_eq!(timed(pool.lease_soon()).await.0, Duration::ZERO, "the attempt failed");
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_may_wait_are_rejected_at_once() {
    let pool = pool();
    let waits = || {
        let pool = Arc::clone(&pool);
        tokio::spawn(async move { timed(pool.lease_soon()).await.0 })
    };
    let waiting = [waits(), waits()];
    tokio::task::yield_now().await;

    let (took, lease) = timed(pool.lease_soon()).await;
    assert!(lease.is_none());
    assert_eq!(took, Duration::ZERO);
    for waited in waiting {
        assert_eq!(waited.await.expect("a call"), WAIT);
    }
    assert_eq!(pool.waiting.available_permits(), LIMITS.waiting_max, "slots are given back");
}

#[tokio::test(start_paused = true)]
async fn a_call_queues_on_a_full_connection_when_no_other_is_opened_in_time() {
    let (pool, opened) = pool_of([true]).await;
    let leases: Vec<Lease> = (0..CALLS_MAX).filter_map(|_| pool.lease()).collect();

    let (took, lease) = timed(pool.lease_soon()).await;
    assert!(opened[0].is_of(&lease.expect("it waits in the queue of the connection")));
    assert_eq!(took, GROW_WITHIN);
    drop(leases);
}

#[tokio::test(start_paused = true)]
async fn a_call_on_a_full_pool_gets_the_connection_that_is_opened_for_it() {
    let (pool, opened) = pool_of([true]).await;
    let _leases: Vec<Lease> = (0..CALLS_MAX).filter_map(|_| pool.lease()).collect();
    let grows = async {
        pool.grow.notified().await;
        sleep(Duration::from_millis(20)).await;
        let another = Opened::new(true).await;
        pool.publish(&another.connection);
        another
    };

    let ((took, lease), another) = tokio::join!(timed(pool.lease_soon()), grows);
    assert!(another.is_of(&lease.expect("a lease")));
    assert_eq!(took, Duration::from_millis(20));
    assert_eq!(opened[0].calls(), CALLS_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_role_has_no_problem_while_it_serves_or_restarts() {
    let (pool, mut opened) = pool_of([true]).await;
    assert_eq!(pool.problem().await, None);

    pool.set_serving(&opened[0].connection, false);
    assert_eq!(pool.problem().await, None, "it may restart");
    advance(WAIT).await;
    assert_eq!(pool.problem().await, Some("its process does not serve"));

    let closed = opened.remove(0).close().await;
    pool.withdraw(&closed);
    assert_eq!(pool.problem().await, Some("its process is unreachable"));
    let again = Opened::new(true).await;
    pool.publish(&again.connection);
    assert_eq!(pool.problem().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_role_that_never_connected_is_a_problem_once_an_attempt_failed() {
    let pool = pool();
    let fails = async {
        sleep(Duration::from_secs(2)).await;
        pool.failed("connection refused");
    };
    let ((took, problem), ()) = tokio::join!(timed(pool.problem()), fails);
    assert_eq!((took, problem), (Duration::from_secs(2), Some("not connected yet")));

    let silent = self::pool();
    let (took, problem) = timed(silent.problem()).await;
    assert_eq!((took, problem), (CONNECT_WITHIN, Some("not connected yet")));
}

#[tokio::test(start_paused = true)]
async fn a_role_is_limited_while_any_of_its_connected_processes_is() {
    let (pool, full, other) = (pool(), Opened::new(true).await, Opened::new(true).await);
    pool.publish(&full.connection);
    pool.publish(&other.connection);
    let mut found = vec![pool.is_limited()];

    pool.set_limited(&full.connection, true);
    found.push(pool.is_limited());
    pool.set_limited(&other.connection, true);
    pool.set_limited(&full.connection, false);
    found.push(pool.is_limited());
    pool.withdraw(&other.connection);
    found.push(pool.is_limited());

    assert_eq!(found, [false, true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_role_serves_while_any_of_its_connected_processes_does() {
    let (pool, one, other) = (pool(), Opened::new(true).await, Opened::new(true).await);
    let mut found = vec![pool.is_serving()];
    pool.publish(&one.connection);
    pool.publish(&other.connection);
    for (connection, is_serving) in [(&one, false), (&other, false), (&one, true)] {
        pool.set_serving(&connection.connection, is_serving);
        found.push(pool.is_serving());
    }

    pool.withdraw(&one.connection);
    found.push(pool.is_serving());

    assert_eq!(found, [false, true, false, true, false]);
}
