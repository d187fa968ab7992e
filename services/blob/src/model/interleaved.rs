//! The same with the background work between any two operations of a change, and changes between any two operations of
//! the background work.

use std::pin::Pin;

use trestle_kv::stepped::Steps;

use super::*;
use crate::sweep::BlobSweeper;

/// More operations than any task of the model has.
const ALL: usize = 100_000;
const LET_TIME_PASS: u8 = 11;

/// How a change and the background work come between each other, in operations of the engine.
#[derive(Debug, Clone, Copy)]
struct Pause {
    /// The background work does so many before the change.
    before: usize,
    /// The change does so many; then the background work continues.
    begun: usize,
    /// The background work does so many then; after it the change is finished.
    inside: usize,
    /// Whether the change takes so long that what it read is reclaimed.
    is_long: bool,
}

fn pauses() -> impl Strategy<Value = Vec<Pause>> {
    let pause = (0_usize..60, 0_usize..12, 0_usize..200, 0_u8..4);
    let pause = pause.prop_map(|(before, begun, inside, long)| {
        let is_long = long == 0;
        Pause { before, begun, inside, is_long }
    });
    prop::collection::vec(pause, STEPS_MAX)
}

type Tick = Pin<Box<dyn Future<Output = ()>>>;

/// The background work, which goes on as the model permits.
struct Background {
    sweeper: Arc<BlobSweeper>,
    steps: Arc<Steps>,
    tick: Option<Tick>,
}

impl Background {
    fn of(fixture: &BlobFixture) -> Self {
        let (background, steps) = fixture.stepped();
        Self { sweeper: Arc::new(background.sweeper), steps, tick: None }
    }

    /// Does so many operations of ticks that follow each other, or a few less.
    async fn run(&mut self, operations: usize) {
        let sweeper = Arc::clone(&self.sweeper);
        let next = || -> Tick {
            Box::pin(async move {
                sweeper.tick().await.expect("whatever changes meanwhile");
            })
        };
        let tick = self.tick.get_or_insert_with(next);
        if self.steps.run(tick, operations).await.is_some() {
            self.tick = None;
        }
    }

    async fn finish(&mut self) {
        while self.tick.is_some() {
            self.run(ALL).await;
        }
    }
}

async fn check_all(fixture: &BlobFixture, keys: &[BlobKey], models: &[ModelBlob]) {
    for (key, model) in keys.iter().zip(models) {
        check(fixture, key, model).await;
    }
    check_index(fixture, keys).await;
}

async fn run_interleaved(steps: &[Step], pauses: &[Pause], keeps: u8) {
    let fixture = BlobFixture::new();
    let container = fixture.container("logs").await.id;
    let name = |name: usize| BlobName::stored(format!("b{name}"));
    let keys = [0, 1].map(|number| BlobKey { container, name: name(number) });
    let (is_kept, has_versions) = (keeps == 1, keeps == 2);
    let model = ModelBlob { is_kept, has_versions, ..ModelBlob::default() };
    let mut models = [model.clone(), model];
    let deleted_for = Some(KEPT_FOR).filter(|_| is_kept);
    fixture.keep(Retention { deleted_for, versions: has_versions, ..Retention::default() });
    let (writer, writes) = fixture.stepped();
    let mut background = Background::of(&fixture);
    for (number, (step, pause)) in steps.iter().zip(pauses).enumerate() {
        background.run(pause.before).await;
        if step.operation == LET_TIME_PASS {
            fixture.advance(READ_GRACE / 2);
            continue;
        }
        let (key, model) = (&keys[step.blob], &mut models[step.blob]);
        let mut change = Box::pin(run(&writer, key, model, (number, step)));
        let mut done = writes.run(&mut change, pause.begun).await;
        if done.is_none() {
            if pause.is_long {
                fixture.advance(READ_GRACE);
            }
            background.run(pause.inside).await;
            done = writes.run(&mut change, ALL).await;
        }
        assert!(done.is_some(), "a change waits for nothing but the engine");
        drop(change);
        check_all(&fixture, &keys, &models).await;
    }
    background.finish().await;
    check_all(&fixture, &keys, &models).await;
    for time in [KEPT_FOR, READ_GRACE + Duration::from_secs(1), ORPHAN_GRACE] {
        fixture.advance(time);
        fixture.sweep().await;
    }
    check_all(&fixture, &keys, &models).await;
    let expected: usize = models.iter().map(objects_of).sum();
    assert_eq!(fixture.objects().await, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
    #[test]
    fn no_background_work_between_two_operations_of_a_change_loses_anything(
        mut steps in steps(),
        pauses in pauses(),
        keeps in 0_u8..3,
    ) {
        // No extent is full: the model without pauses has those.
        steps.iter_mut().for_each(|step| step.length = step.length.min(LENGTHS[3]));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(run_interleaved(&steps, &pauses, keeps));
    }
}
