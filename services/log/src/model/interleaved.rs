//! The same with the background work between any two operations of a call, and calls between any two operations of the
//! background work. The stores do not fail.

use std::pin::Pin;

use trestle_kv::stepped::{SteppedEngine, Steps};

use super::*;

/// More operations than any task of the model has.
const ALL: usize = 1_000_000;

/// A task of the background.
#[derive(Debug, Clone, Copy)]
enum Job {
    Sweep,
    Seal,
    Merge,
}

/// What a client calls.
#[derive(Debug, Clone)]
enum Call {
    Append(Vec<u8>),
    /// Every record is read.
    Read,
    /// The unsealed records are sealed by a call, while the background does the same.
    Flush,
    /// Records that are many small segments.
    ManySeals,
}

/// A call, and how it and the background work come between each other, in operations of the engine.
#[derive(Debug, Clone)]
struct Interleaved {
    call: Call,
    /// The jobs of the background, which follow those that have not ended.
    jobs: Vec<Job>,
    /// The background does so many operations before the call.
    before: usize,
    /// The call does so many; then the background continues.
    begun: usize,
    /// The background does so many then; after it the call is finished.
    inside: usize,
    /// How long the call takes then, in seconds.
    seconds: u16,
}

fn interleaved() -> impl Strategy<Value = Interleaved> {
    let call = prop_oneof![
        4 => vec(0..40_u8, 1..6).prop_map(Call::Append),
        4 => Just(Call::Read),
        1 => Just(Call::Flush),
        1 => Just(Call::ManySeals),
    ];
    let jobs = vec(select(&[Job::Sweep, Job::Seal, Job::Merge][..]), 1..3);
    let seconds = prop_oneof![3 => Just(0_u16), 1 => 0..8_000_u16];
    let numbers = (0..40_usize, 0..12_usize, 0..120_usize, seconds);
    (call, jobs, numbers).prop_map(|(call, jobs, (before, begun, inside, seconds))| Interleaved {
        call,
        jobs,
        before,
        begun,
        inside,
        seconds,
    })
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A process that only does background work, as the model permits.
struct Background {
    process: Arc<LogFixture>,
    stream: Arc<OpenStream>,
    steps: Arc<Steps>,
    running: Option<Task>,
    queued: std::collections::VecDeque<Job>,
}

impl Background {
    fn start(&self, job: Job) -> Task {
        let (process, stream) = (Arc::clone(&self.process), Arc::clone(&self.stream));
        Box::pin(async move {
            // A seal or a merge may find that another one came before it; nothing else is an error.
            match job {
                Job::Sweep => drop(process.sweeper.tick().await.expect("swept")),
                Job::Seal => drop(process.logs.flush(&stream).await),
                Job::Merge => drop(process.logs.merge_small(&stream).await.expect("merged")),
            }
        })
    }

    /// Does so many operations of one job, or fewer.
    async fn run(&mut self, operations: usize) {
        let next = match self.running.take() {
            Some(task) => Some(task),
            None => self.queued.pop_front().map(|job| self.start(job)),
        };
        let Some(mut task) = next else { return };
        if self.steps.run(&mut task, operations).await.is_none() {
            self.running = Some(task);
        }
    }

    async fn finish(&mut self) {
        while self.running.is_some() || !self.queued.is_empty() {
            self.run(ALL).await;
        }
    }
}

/// A call of a client, and what a read returned.
async fn call(
    process: &LogFixture,
    stream: &Arc<OpenStream>,
    call: &Call,
    first: u64,
) -> Option<Vec<Record>> {
    let records = |first: u64, times: &[u8]| -> Vec<_> {
        let texts = (first..).zip(times);
        texts.map(|(at, time)| record(u64::from(*time) * SECOND, &at.to_string())).collect()
    };
    match call {
        Call::Append(times) => {
            process.append(stream, &records(first, times)).await.expect("appended");
        }
        Call::ManySeals => {
            for (at, time) in (first..).zip(0..9_u8) {
                process.append(stream, &records(at, &[time])).await.expect("appended");
                // The background may seal them first.
                let _ = process.logs.flush(stream).await;
            }
        }
        Call::Flush => drop(process.logs.flush(stream).await),
        Call::Read => return Some(process.read_all(stream).await.expect("read")),
    }
    None
}

async fn run_interleaved(steps: &[Interleaved]) {
    let mut model = Modelled::new(0).await;
    let process = || {
        let (engine, steps) = SteppedEngine::new(Arc::clone(&model.sound.logs.engine));
        let mut process = model.sound.reopened_on(Arc::new(engine));
        process.logs.slice_bytes = SLICE_BYTES;
        (process, steps)
    };
    let ((client, calls), (background, jobs)) = (process(), process());
    let mut background = Background {
        process: Arc::new(background),
        stream: Arc::clone(&model.stream),
        steps: jobs,
        running: None,
        queued: Default::default(),
    };
    for step in steps {
        background.queued.extend(&step.jobs);
        background.run(step.before).await;
        let (first, stream) = (model.acknowledged.len() as u64, Arc::clone(&model.stream));
        let mut task = Box::pin(call(&client, &stream, &step.call, first));
        let mut done = calls.run(&mut task, step.begun).await;
        if done.is_none() {
            model.sound.advance(Duration::from_secs(step.seconds.into()));
            background.run(step.inside).await;
            done = calls.run(&mut task, ALL).await;
        }
        drop(task);
        let times: Vec<u8> = match &step.call {
            Call::Append(times) => times.clone(),
            Call::ManySeals => (0..9).collect(),
            Call::Read | Call::Flush => Vec::new(),
        };
        let appended = (first..).zip(&times).map(|(at, time)| (u64::from(*time), at.to_string()));
        model.acknowledged.extend(appended);
        if let Some(read) = done.expect("a call waits for nothing but the engine") {
            assert_eq!(texts(&read), model.expected(0..u64::MAX), "a read during {step:?}");
        }
        model.check().await;
    }
    background.finish().await;
    model.check().await;
    model.check_end().await;
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_background_work_between_two_operations_of_a_call_loses_a_record(
        steps in vec(interleaved(), 4..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(run_interleaved(&steps));
    }
}
