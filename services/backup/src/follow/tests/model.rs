//! Random stores: at every instant that was noted, what is restored is what there was.

use proptest::prelude::*;

use super::*;
use crate::args::BackupCommand;

/// What happens to a store and to what follows it.
#[derive(Debug, Clone)]
enum ModelStep {
    /// A row is written: kind, number, and how many bytes it has.
    Put(u8, u8, u16),
    /// A row is deleted.
    Delete(u8, u8),
    /// What was committed is sent.
    Send,
    /// The command ends, and is begun again.
    Follow,
    /// The store is closed and opened.
    Open,
    /// The server gave journals up.
    GiveUp,
    /// A backup is made.
    Backup,
    /// The instant is one to be restored.
    Note,
}

fn steps() -> impl Strategy<Value = Vec<ModelStep>> {
    let kinds = || prop_oneof![Just(1_u8), Just(6)];
    let step = prop_oneof![
        8 => (kinds(), 0..12_u8, 0..40_000_u16).prop_map(|it| ModelStep::Put(it.0, it.1, it.2)),
        3 => (kinds(), 0..12_u8).prop_map(|it| ModelStep::Delete(it.0, it.1)),
        4 => Just(ModelStep::Send),
        2 => Just(ModelStep::Follow),
        1 => Just(ModelStep::Open),
        2 => Just(ModelStep::Backup),
        4 => Just(ModelStep::Note),
    ];
    prop::collection::vec(step, 10..60)
}

/// A store that is followed, and what there was at some instants.
struct Model {
    world: World,
    follower: Option<ChangeFollower>,
    noted: Vec<(Ticks, Rows)>,
    /// Instants that need not be restorable: no backup of their line was made, or journals were given up.
    lost: Vec<Ticks>,
    /// From when on the line has a backup.
    based: Option<Ticks>,
}

impl Model {
    async fn new() -> Self {
        let world = World::new();
        world.note();
        let follower = Some(world.follow().await);
        let (noted, lost) = (Vec::new(), Vec::new());
        Self { world, follower, noted, lost, based: None }
    }

    async fn step(&mut self, step: ModelStep) {
        match step {
            ModelStep::Put(kind, number, bytes) => {
                let value: Vec<u8> = (0..bytes).map(|at| number ^ (at % 251) as u8).collect();
                self.world.put(kind, number, value).await;
            }
            ModelStep::Delete(kind, number) => self.world.delete(kind, number).await,
            ModelStep::Send => self.send().await,
            ModelStep::Follow => self.follow().await,
            ModelStep::Open => self.world.open(),
            ModelStep::GiveUp => {
                self.world.epoch += 1;
                self.world.note();
                self.begin_line();
            }
            ModelStep::Backup => self.back_up().await,
            ModelStep::Note => self.note(),
        }
    }

    /// Nothing leads from earlier instants to those from here on, and from here on only the next backup does.
    fn begin_line(&mut self) {
        let sent = self.follower.as_ref().map(|follower| ticks(follower.line.next().at));
        let is_sent = |instant: &Ticks| sent.is_some_and(|sent| *instant <= sent);
        let unsent = self.noted.iter().map(|(instant, _)| *instant).filter(|it| !is_sent(it));
        self.lost.extend(unsent);
        self.based = None;
    }

    async fn send(&mut self) {
        let Some(follower) = &mut self.follower else { return };
        let line = follower.line.id().to_owned();
        self.world.send(follower).await;
        if follower.line.id() != line {
            self.based = None;
        }
    }

    async fn follow(&mut self) {
        let line = self.world.data();
        let before = ShippedChanges::read(&line).map(|shipped| shipped.line);
        let unsent = ShippedChanges::read(&line).map_or(0, |shipped| shipped.next.at);
        self.follower = None;
        let follower = self.world.follow().await;
        if Some(follower.line.id()) != before.as_deref() {
            let unsent_instants = self.noted.iter().map(|(instant, _)| *instant);
            self.lost.extend(unsent_instants.filter(|instant| instant.get() > unsent));
            self.based = None;
        }
        self.follower = Some(follower);
    }

    async fn back_up(&mut self) {
        // The command has no server here, and makes its checkpoint alone.
        self.world.engine = None;
        let [data, target] = [self.world.data(), self.world.target()];
        let args = [target.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
        run(&[&["create"], &args[..]].concat()).await.unwrap();
        self.world.open();
        self.based = Some(self.now());
    }

    fn now(&self) -> Ticks {
        self.world.engine.as_ref().unwrap().now()
    }

    fn note(&mut self) {
        let now = self.now();
        if self.based.is_some_and(|based| based < now) {
            self.noted.push((now, self.world.rows.clone()));
        }
    }

    /// Restores every instant that was noted.
    async fn check(mut self) {
        // The last window covers the instants before it, and no idle one is due yet.
        self.world.put(1, 0, "last").await;
        self.send().await;
        self.world.engine = None;
        let target = self.world.target();
        for (index, (instant, rows)) in self.noted.iter().enumerate() {
            let restored = self.world.folder.path().join(format!("restored-{index}"));
            let text = time(instant.get());
            let args = ["--to", &text, "--data-dir", restored.to_str().unwrap()];
            let done = run(&[&["restore", target.to_str().unwrap()], &args[..]].concat()).await;
            if let Err(error) = done {
                assert!(self.lost.contains(instant), "{text}: {error}");
                continue;
            }
            assert_eq!(&rows_of(&restored), rows, "{text}");
        }
    }
}

async fn run(args: &[&str]) -> Result<(), CliError> {
    #[derive(clap::Parser)]
    struct Line {
        #[command(subcommand)]
        command: BackupCommand,
    }
    let line = <Line as clap::Parser>::try_parse_from([&["backup"], args].concat()).unwrap();
    let mut output = ClientFlags::default().output();
    output.quiet = true;
    crate::run(line.command, rules(), &output).await
}

/// Every row of a data directory.
fn rows_of(data_dir: &Path) -> Rows {
    let keyspaces = rules().keyspaces;
    let reader =
        trestle_kv_fjall::StoreReader::open(&data_dir.join("kv"), keyspaces.clone()).unwrap();
    let rows = |keyspace: &trestle_kv::Keyspace| {
        let rows = reader.rows(keyspace.name, None).unwrap().map(Result::unwrap);
        rows.map(|row| (row.key, row.value)).collect::<Vec<_>>()
    };
    keyspaces.iter().flat_map(rows).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn every_noted_instant_is_restored_as_it_was(steps in steps()) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let mut model = Model::new().await;
            for step in steps {
                model.step(step).await;
            }
            Box::pin(model.check()).await;
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_between_two_lines_is_known_and_both_sides_of_it_are_restored() {
    let mut model = Model::new().await;
    let put = |number| ModelStep::Put(1, number, 100);
    let before = [ModelStep::Backup, put(1), ModelStep::Note, ModelStep::Send];
    let gap = [put(2), ModelStep::GiveUp, ModelStep::Note, put(3), ModelStep::Send];
    let after = [ModelStep::Backup, put(4), ModelStep::Note, ModelStep::Send];
    for step in before.into_iter().chain(gap).chain(after) {
        model.step(step).await;
    }
    assert_eq!((model.noted.len(), model.lost.len()), (2, 0), "none was noted in the gap");
    Box::pin(model.check()).await;
}
