//! Copies of a data directory, whose commands begin and end at random: no line has two windows of one number, and each
//! window leads on from the one before it.

use proptest::prelude::*;

use super::*;
use crate::coverage::Coverage;

/// What happens to one of the copies.
#[derive(Debug, Clone, Copy)]
enum CopyStep {
    /// Its command begins, or begins again after it was killed.
    Begin(usize),
    /// It is killed.
    Kill(usize),
    /// A row is written and sent, if its command runs.
    Send(usize),
    /// Its note of the line is that of another one, as if its directory were copied again.
    Copy(usize, usize),
}

const COPIES: usize = 3;

fn steps() -> impl Strategy<Value = Vec<CopyStep>> {
    let copy = || 0..COPIES;
    let step = prop_oneof![
        3 => copy().prop_map(CopyStep::Begin),
        2 => copy().prop_map(CopyStep::Kill),
        6 => copy().prop_map(CopyStep::Send),
        1 => (copy(), copy()).prop_map(|(from, to)| CopyStep::Copy(from, to)),
    ];
    prop::collection::vec(step, 5..40)
}

/// Data directories that send to one target.
struct Copies {
    worlds: Vec<World>,
    followers: Vec<Option<ChangeFollower>>,
    row: u8,
}

impl Copies {
    async fn new() -> Self {
        let worlds: Vec<World> = (0..COPIES).map(|_| World::new()).collect();
        let (first, others) = worlds.split_first().unwrap();
        drop(first.follow().await);
        for other in others {
            fs::copy(first.data().join("store-id"), other.data().join("store-id")).unwrap();
            std::os::unix::fs::symlink(first.target(), other.target()).unwrap();
            other.note();
            fs::write(other.data().join(FOLDER).join("LINE"), line_of(&first.data())).unwrap();
        }
        Self { worlds, followers: (0..COPIES).map(|_| None).collect(), row: 0 }
    }

    async fn step(&mut self, step: CopyStep) {
        match step {
            CopyStep::Begin(index) => {
                self.followers[index] = None;
                self.worlds[index].note();
                // One that is refused tries again later.
                self.followers[index] = self.worlds[index].try_follow().await.ok();
            }
            CopyStep::Kill(index) => self.followers[index] = None,
            CopyStep::Send(index) => self.send(index).await,
            CopyStep::Copy(from, to) if from != to && self.followers[to].is_none() => {
                let line = line_of(&self.worlds[from].data());
                fs::write(self.worlds[to].data().join(FOLDER).join("LINE"), line).unwrap();
            }
            CopyStep::Copy(..) => {}
        }
    }

    async fn send(&mut self, index: usize) {
        self.row = self.row.wrapping_add(1);
        let row = self.row;
        self.worlds[index].put(1, row, vec![row]).await;
        self.worlds[index].note();
        let Some(follower) = &mut self.followers[index] else { return };
        let mut sent = follower.step(&mut output()).await;
        if sent.is_ok() {
            follower.gathers_since = None;
            sent = follower.step(&mut output()).await;
        }
        if sent.is_err() {
            // The command ends with the error, and its server begins it again.
            self.followers[index] = None;
        }
    }

    /// Every line is one run from its beginning.
    async fn check(&self) {
        for (line, windows) in self.worlds[0].windows().await {
            let names: Vec<WindowName> = windows.into_iter().map(|(name, _)| name).collect();
            let last = names.iter().map(|name| name.seq).max().unwrap();
            assert_eq!(names.len() as u64, last + 1, "{line}");
            assert_eq!(Coverage::new(names).first_to(None, (&line, last)), Some(0), "{line}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn no_line_has_two_writers(steps in steps()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut copies = Copies::new().await;
            for step in steps {
                copies.step(step).await;
            }
            copies.check().await;
        });
    }
}

#[tokio::test(start_paused = true)]
async fn the_original_goes_on_where_a_copy_was_refused() {
    let mut copies = Copies::new().await;
    for step in [CopyStep::Begin(0), CopyStep::Send(0), CopyStep::Kill(0), CopyStep::Begin(0)] {
        copies.step(step).await;
    }
    let line = copies.followers[0].as_ref().unwrap().line.id().to_owned();
    copies.step(CopyStep::Begin(1)).await;
    copies.step(CopyStep::Send(0)).await;
    assert_eq!(copies.followers[0].as_ref().unwrap().line.id(), line);
    if let Some(other) = &copies.followers[1] {
        assert_ne!(other.line.id(), line, "the first was silent for long enough");
    }
    copies.check().await;
}

#[tokio::test(start_paused = true)]
async fn of_two_copies_of_a_data_directory_one_goes_on_with_the_line() {
    let mut first = World::new();
    drop(first.follow().await);
    let second = World::new();
    fs::copy(first.data().join("store-id"), second.data().join("store-id")).unwrap();
    let line = line_of(&first.data());
    fs::write(second.data().join(FOLDER).join("LINE"), &line).unwrap();
    std::os::unix::fs::symlink(first.target(), second.target()).unwrap();
    let mut follower = first.follow().await;
    first.put(1, 1, "a").await;
    let (refused, ()) = tokio::join!(second.try_follow(), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        first.send(&mut follower).await;
    });
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("another server sends its changes to the target"), "{error}");
    assert_eq!(first.sent().await, first.rows, "the second wrote nothing");
}

#[tokio::test]
async fn a_command_that_another_one_followed_sends_no_more() {
    let mut first = World::new();
    let mut follower = first.follow().await;
    let shipped: ShippedChanges = serde_json::from_slice(&line_of(&first.data())).unwrap();
    let other = follower.sender.claim(&shipped.line, shipped.run + 1, "other").await.unwrap();
    assert_eq!(other, "other");
    assert_eq!(follower.sender.claim(&shipped.line, shipped.run + 1, "me").await.unwrap(), "other");
    first.put(1, 1, "a").await;
    first.note();
    follower.step(&mut output()).await.unwrap();
    follower.gathers_since = None;
    let error = follower.step(&mut output()).await.unwrap_err().to_string();
    assert!(error.contains("another server with a copy of the data directory"), "{error}");
    let line = &first.windows().await[&shipped.line];
    assert_eq!(line.len(), 1, "the first, empty one");
}

#[tokio::test]
async fn a_claim_that_was_written_and_not_noted_is_that_of_the_command() {
    let world = World::new();
    let follower = world.follow().await;
    let mut shipped: ShippedChanges = serde_json::from_slice(&line_of(&world.data())).unwrap();
    shipped.claim = Some("mine".to_owned());
    follower.sender.claim(&shipped.line, shipped.run + 1, "mine").await.unwrap();
    drop(follower);
    let line = serde_json::to_vec(&shipped).unwrap();
    fs::write(world.data().join(FOLDER).join("LINE"), line).unwrap();
    let follower = world.follow().await;
    assert_eq!(follower.line.id(), shipped.line);
    assert_eq!(follower.line.shipped().run, shipped.run + 2);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_cannot_be_read_is_that_of_another_command() {
    let mut world = World::new();
    let follower = world.follow().await;
    let shipped = follower.line.shipped().clone();
    let path = format!("{CHANGES}/{}/run-{:016x}", shipped.line, shipped.run + 1);
    fs::write(world.target().join(&path), "not a part").unwrap();
    let found = follower.sender.claimant(&shipped.line, shipped.run + 1).await.unwrap();
    assert_eq!(found.as_deref(), Some(""));
    drop(follower);
    let mut follower = world.follow().await;
    assert_ne!(follower.line.id(), shipped.line, "a line of its own");
    assert_eq!(follower.line.shipped().earlier, [shipped.line]);
    world.put(1, 1, "a").await;
    world.send(&mut follower).await;
    assert_eq!(world.windows().await[follower.line.id()].len(), 2);
    // Commands with numbers are no windows, and stay where windows are pruned.
    assert!(WindowName::of_path(&path).is_none());
}
