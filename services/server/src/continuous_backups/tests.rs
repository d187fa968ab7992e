use std::fs;

use opentelemetry_sdk::metrics::SdkMeterProvider;
use trestle_kv::{Change, ChangeSpec, Domain, Keyspace, Writes, key_domain};
use trestle_kv_fjall::{FjallEngine, FjallOptions};

use super::*;

/// A store whose changes are handed over.
struct World {
    folder: tempfile::TempDir,
    free: Arc<AtomicU64>,
    engine: Arc<FjallEngine>,
    hold: ObjectHold,
    handover: ChangeHandover,
}

/// Two journals and a half.
const SPOOL: u64 = 160 * 1024 * 1024;

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = Arc::new(AtomicU64::new(u64::MAX / 2));
        let probed = Arc::clone(&free);
        let keyspaces = vec![Keyspace { name: "rows", kinds: 1..=2, domain: key_domain }];
        let options = FjallOptions {
            marks_groups: true,
            memtable_bytes: 1024 * 1024,
            space_probe: Arc::new(move |_| Ok(probed.load(Relaxed))),
            tick: Duration::from_millis(5),
            ..FjallOptions::new(folder.path().join("kv"), keyspaces)
        };
        let engine = Arc::new(FjallEngine::open(options).unwrap());
        let hold = ObjectHold::default();
        let handover = Self::open(folder.path(), &engine, &hold, SPOOL);
        Self { folder, free, engine, hold, handover }
    }

    fn open(
        data_dir: &Path,
        engine: &Arc<FjallEngine>,
        hold: &ObjectHold,
        spool_bytes: u64,
    ) -> ChangeHandover {
        let (log, hold) = (engine.change_log(), hold.clone());
        let engine: Arc<dyn Engine> = Arc::<FjallEngine>::clone(engine);
        let store = FollowedStore { data_dir, engine, log, hold };
        let meters = SdkMeterProvider::default();
        let meter = opentelemetry::metrics::MeterProvider::meter(&meters, "test");
        ChangeHandover::open(store, spool_bytes, &meter)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn end(&self) -> ChangesEnd {
        ChangesEnd::read(self.path()).unwrap()
    }

    async fn put(&self, number: u8, value: &bytes::Bytes) {
        let (key, value) = (bytes::Bytes::from(vec![1, number]), value.clone());
        let spec = ChangeSpec::new(Domain::of_key(&key, key_domain));
        let change = Change::new(spec, move |_, _| {
            let mut writes = Writes::new();
            writes.put(key.clone(), value.clone());
            writes
        });
        self.engine.commit(change).await.unwrap();
    }

    /// Notes that everything up to an end was sent, at a time.
    fn ship(&self, end: &ChangesEnd, at: u64) {
        let text = serde_json::json!({
            "line": "a",
            "earlier": [],
            "epoch": end.epoch,
            "next": {
                "seq": 1, "position": end.position, "skip": 0, "newest": end.newest, "at": at,
            },
            "writing": null,
        });
        fs::write(self.path().join(CHANGES).join("LINE"), text.to_string()).unwrap();
    }

    fn links(&self) -> usize {
        let entries = fs::read_dir(self.path().join(CHANGES)).unwrap().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "jnl")).count()
    }
}

/// 4 MiB that do not become fewer when the database compresses them.
fn noise() -> bytes::Bytes {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()
    };
    (0..512 * 1024).flat_map(|_| next()).collect()
}

#[tokio::test]
async fn what_was_sent_is_not_kept_and_what_was_not_is_given_up_at_a_bound() {
    let (world, noise) = (World::new(), noise());
    world.handover.step().unwrap();
    let first = world.end();
    assert_eq!(first.epoch, 0);
    // Into the second journal.
    for number in 0..60 {
        world.put(number, &noise).await;
        world.handover.step().unwrap();
        let end = world.end();
        world.ship(&end, end.now);
        if !end.position.starts_with("0:") {
            break;
        }
    }
    world.handover.step().unwrap();
    let stuck = world.end();
    assert_eq!(stuck.epoch, 0, "all of it was sent");
    assert!(!stuck.position.starts_with("0:") && world.links() == 1, "{stuck:?}");

    world.ship(&stuck, stuck.now);
    let bound = World::open(world.path(), &world.engine, &world.hold, 1);
    for number in 0..60 {
        world.put(number, &noise).await;
        bound.step().unwrap();
        if world.end().epoch > 0 {
            break;
        }
    }
    assert!(world.end().epoch > 0, "nothing of it was sent");
    assert_eq!(linked_bytes(&world.path().join(CHANGES)).unwrap(), 0);
    let reopened = World::open(world.path(), &world.engine, &world.hold, SPOOL);
    assert_eq!(*reopened.epoch.lock().unwrap(), world.end().epoch);
}

#[tokio::test]
async fn objects_are_held_while_changes_are_late_and_not_where_space_is_short() {
    let world = World::new();
    world.put(1, &bytes::Bytes::from_static(b"value")).await;
    world.handover.step().unwrap();
    assert!(!world.hold.is_held(), "nothing is sent yet");
    let end = world.end();
    let ago = |seconds| Ticks::new(end.now).unwrap().before(Duration::from_secs(seconds)).get();
    for (seconds, is_held) in [(0, false), (20, false), (40, true), (0, false), (40, true)] {
        world.ship(&end, ago(seconds));
        world.handover.step().unwrap();
        assert_eq!(world.hold.is_held(), is_held, "{seconds}");
    }
    let hold = ObjectHold::default();
    let _restarted = World::open(world.path(), &world.engine, &hold, SPOOL);
    assert!(hold.is_held(), "until it is known how late they are");

    world.free.store(1024, Relaxed);
    for number in 0..200 {
        if world.engine.status().is_space_short() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(number < 199);
    }
    world.handover.step().unwrap();
    assert_eq!((world.end().epoch, world.hold.is_held()), (1, false));
    assert!(world.links() <= 1);
}
