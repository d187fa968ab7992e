//! Background loops, on a paused clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use trestle_rpc::exemplar::Exemplars;
use trestle_rpc::semconv;
use trestle_runtime::{openmetrics::Exposition, task::Task};

/// A loop that counts its ticks; the first `busy` of them report more work, and tick `fails`
/// fails.
fn counting(busy: u32, fails: u32) -> (Task, Arc<AtomicU32>) {
    let ticks = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&ticks);
    let task = Task::new("test", Duration::from_secs(10), move || {
        let tick = count.fetch_add(1, Ordering::SeqCst);
        async move {
            if tick == fails {
                return Err("no".into());
            }
            Ok(tick < busy)
        }
    });
    (task, ticks)
}

const NEVER: u32 = u32::MAX;

#[tokio::test(start_paused = true)]
async fn ticks_at_once_while_more_remains_and_then_at_intervals() {
    let (task, ticks) = counting(3, NEVER);
    let stop = CancellationToken::new();
    let running = tokio::spawn(task.run(stop.clone(), || 0.5));

    sleep(Duration::from_secs(9)).await;
    let before = ticks.load(Ordering::SeqCst);
    sleep(Duration::from_secs(2)).await;
    let after = ticks.load(Ordering::SeqCst);
    stop.cancel();
    running.await.unwrap();

    assert_eq!((before, after), (4, 5));
}

#[tokio::test(start_paused = true)]
async fn rests_longer_than_the_interval_where_its_steps_take_long() {
    for (takes, second) in [(1, 11), (3, 33)] {
        let ticks = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ticks);
        let task = Task::new("test", Duration::from_secs(10), move || {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                sleep(Duration::from_secs(takes)).await;
                Ok(false)
            }
        });
        let stop = CancellationToken::new();
        let running = tokio::spawn(task.resting(10).run(stop.clone(), || 0.0));

        sleep(Duration::from_millis(second * 1000 - 1)).await;
        let before = ticks.load(Ordering::SeqCst);
        sleep(Duration::from_millis(2)).await;
        let after = ticks.load(Ordering::SeqCst);
        stop.cancel();
        running.await.unwrap();
        assert_eq!((before, after), (1, 2), "a step takes {takes} s");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_a_failed_tick_after_the_interval() {
    let (task, ticks) = counting(0, 0);
    let stop = CancellationToken::new();
    let running = tokio::spawn(task.run(stop.clone(), || 0.5));

    sleep(Duration::from_secs(11)).await;
    stop.cancel();
    running.await.unwrap();

    assert_eq!(ticks.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_wake_up_ends_the_wait_and_a_stop_ends_the_loop() {
    let (task, ticks) = counting(0, NEVER);
    let (stop, waker) = (CancellationToken::new(), task.waker());
    let started = Instant::now();
    let running = tokio::spawn(task.run(stop.clone(), || 0.5));

    sleep(Duration::from_secs(1)).await;
    waker.notify_one();
    sleep(Duration::from_secs(1)).await;
    stop.cancel();
    running.await.unwrap();

    assert_eq!(ticks.load(Ordering::SeqCst), 2);
    assert_eq!(started.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn failed_ticks_are_counted_from_zero_by_task() {
    let registry = prometheus::Registry::new();
    let reader = opentelemetry_prometheus::exporter().with_registry(registry.clone());
    let meters = SdkMeterProvider::builder().with_reader(reader.build().unwrap()).build();
    let failures = semconv::failed_tasks(&meters.meter("test"));
    let exposition = Exposition::new(registry, Exemplars::default());
    let counted = || {
        let page = exposition.render("").unwrap().1;
        let line = page.lines().find(|line| line.starts_with("trestle_task_failures_total{"));
        let line = line.unwrap_or_else(|| panic!("{page}"));
        assert!(line.contains("trestle_task_name=\"test\""), "{line}");
        line.rsplit(' ').next().unwrap().to_owned()
    };
    let (task, _) = counting(0, 0);
    let stop = CancellationToken::new();

    let task = task.counting(&failures);
    assert_eq!(counted(), "0");
    let running = tokio::spawn(task.run(stop.clone(), || 0.5));
    sleep(Duration::from_secs(11)).await;
    stop.cancel();
    running.await.unwrap();

    assert_eq!(counted(), "1");
}
