use super::*;

const RATES: EffectRates =
    EffectRates { delay: 0.2, delay_max: Duration::from_millis(1), fail: 0.2, abort: 0.2 };

fn drawn(seed: u64) -> Vec<Option<Effect>> {
    let points = PressurePoints::seeded(seed, RATES);
    (0..50).map(|_| points.next(CommitPoint::AfterSync)).collect()
}

#[test]
fn a_seed_gives_the_same_effects_and_another_seed_gives_others() {
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    for effect in [Some(Effect::Fail), Some(Effect::Abort), None] {
        assert!(drawn(1).contains(&effect), "{effect:?}");
    }
}

#[test]
fn an_armed_effect_happens_at_its_point_and_count_and_once() {
    let points = PressurePoints::new();
    points.arm(CommitPoint::BeforeJournal, 2, Effect::Fail);

    assert_eq!(points.next(CommitPoint::BeforeJournal), None);
    assert_eq!(points.next(CommitPoint::AfterSync), None);
    assert_eq!(points.next(CommitPoint::BeforeJournal), Some(Effect::Fail));
    assert_eq!(points.next(CommitPoint::BeforeJournal), None);
    assert_eq!(points.reached(CommitPoint::BeforeJournal), 3);
}
