use std::fs::{self, File};

use trestle_kv::{Keyspace, key_domain};
use trestle_kv_fjall::{FjallEngine, FjallOptions, StoreReader};
use trestle_model::time::{ManualClock, SystemClock, Ticks};

use super::{
    spool::{KEPT, RequestState},
    *,
};

fn keyspaces() -> Vec<Keyspace> {
    vec![Keyspace { name: "rows", kinds: 1..=2, domain: key_domain }]
}

/// A data directory with a store and the task that responds to its requests.
struct World {
    data_dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
    hold: ObjectHold,
    backups: Backups,
}

impl World {
    fn new() -> Self {
        Self::with_free_bytes(Arc::new(AtomicU64::new(u64::MAX / 2)))
    }

    /// On a disk with this number of free bytes.
    fn with_free_bytes(free: Arc<AtomicU64>) -> Self {
        let data_dir = tempfile::tempdir().unwrap();
        let options = FjallOptions {
            space_probe: Arc::new(move |_| Ok(free.load(Ordering::Relaxed))),
            tick: Duration::from_millis(5),
            ..FjallOptions::new(data_dir.path().join("kv"), keyspaces())
        };
        let engine = Arc::new(FjallEngine::open(options).unwrap());
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let hold = ObjectHold::default();
        let store = BackedUpStore {
            data_dir: data_dir.path(),
            store_id: Uuid::nil(),
            checkpointer: engine.checkpointer(),
            engine,
            clock: Arc::<ManualClock>::clone(&clock),
        };
        let backups = Backups::open(store, hold.clone()).unwrap();
        Self { data_dir, clock, hold, backups }
    }

    fn path(&self, id: &str, name: &str) -> PathBuf {
        self.data_dir.path().join(SPOOL).join(id).join(name)
    }

    /// A request as the command makes it; its lock.
    fn request(&self, id: &str) -> File {
        fs::create_dir_all(self.path(id, "")).unwrap();
        let lock = File::create(self.path(id, "LOCK")).unwrap();
        lock.try_lock().unwrap();
        File::create(self.path(id, "REQUEST")).unwrap();
        lock
    }

    fn has(&self, id: &str, name: &str) -> bool {
        self.path(id, name).exists()
    }

    /// Looks until nothing is due.
    fn respond(&self) {
        while self.backups.step().unwrap() {}
    }

    fn kept(&self) -> u64 {
        self.backups.kept.load(Ordering::Relaxed)
    }
}

#[test]
fn a_request_gets_a_checkpoint_which_lasts_as_long_as_its_directory() {
    let world = World::new();
    world.respond();
    assert!(!world.hold.is_held());
    let _lock = world.request("a");
    world.respond();
    assert!(world.hold.is_held() && world.kept() == 1);
    let answer = fs::read_to_string(world.path("a", "READY")).unwrap();
    let answer: CheckpointAnswer = serde_json::from_str(&answer).unwrap();
    assert_eq!((answer.format, answer.store_id), (1, Uuid::nil().to_string()));
    assert!(Ticks::new(answer.at).unwrap() <= world.backups.engine.now());
    StoreReader::open(&world.path("a", "kv"), keyspaces()).unwrap();

    fs::remove_dir_all(world.path("a", "")).unwrap();
    world.respond();
    assert!(!world.hold.is_held() && world.kept() == 0);
}

#[test]
fn an_abandoned_checkpoint_is_removed_after_a_while_unless_its_command_runs() {
    let world = World::new();
    let locks = ["a", "b"].map(|id| world.request(id));
    world.respond();
    let [abandoned, _runs] = locks;
    drop(abandoned);
    world.clock.advance(KEPT - Duration::from_secs(60));
    world.respond();
    assert!(world.has("a", "READY") && world.has("b", "READY"));
    world.clock.advance(Duration::from_secs(120));
    world.respond();
    assert!(!world.has("a", "") && world.has("b", "READY"));
    assert!(world.hold.is_held() && world.kept() == 1);
}

#[test]
fn too_many_requests_and_those_that_fail_are_answered_with_a_reason() {
    let world = World::new();
    let ids = ["a", "b", "c", "d", "e"];
    let _locks = ids.map(|id| world.request(id));
    world.respond();
    assert_eq!(ids.map(|id| world.has(id, "READY")), [true, true, true, true, false]);
    assert_eq!(fs::read_to_string(world.path("e", "FAILED")).unwrap().trim_end(), TOO_MANY);
    assert!(!world.has("e", "kv") && world.kept() == KEPT_MAX);
}

#[test]
fn where_space_is_short_a_checkpoint_is_given_up() {
    let free = Arc::new(AtomicU64::new(u64::MAX / 2));
    let world = World::with_free_bytes(Arc::clone(&free));
    let _lock = world.request("a");
    world.respond();
    assert!(world.has("a", "kv") && world.hold.is_held());
    free.store(0, Ordering::Relaxed);
    let until = Instant::now() + Duration::from_secs(30);
    while !world.backups.engine.status().is_space_short() {
        assert!(Instant::now() < until);
        std::thread::yield_now();
    }
    world.respond();
    assert_eq!(fs::read_to_string(world.path("a", "FAILED")).unwrap().trim_end(), SPACE_SHORT);
    assert!(!world.has("a", "kv") && !world.has("a", "READY"));
    assert!(!world.hold.is_held() && world.kept() == 0);
}

#[test]
fn a_later_process_holds_objects_before_its_first_step() {
    let world = World::new();
    let _lock = world.request("a");
    world.respond();
    let hold = ObjectHold::default();
    let store = BackedUpStore {
        data_dir: world.data_dir.path(),
        store_id: Uuid::nil(),
        checkpointer: world.backups.checkpointer.clone(),
        engine: Arc::clone(&world.backups.engine),
        clock: Arc::<ManualClock>::clone(&world.clock),
    };
    let later = Backups::open(store, hold.clone()).unwrap();
    assert!(hold.is_held() && later.kept.load(Ordering::Relaxed) == 1);
}

#[test]
fn what_is_due_follows_from_what_is_there() {
    use RequestAction::{Discard, End, Keep, Leave, Make};
    let none = RequestState::default();
    let requested = RequestState { is_requested: true, ..none };
    let ready = RequestState { is_ready: true, has_checkpoint: true, ..requested };
    let failed = RequestState { is_failed: true, ..requested };
    for (state, action, where_space_is_short) in [
        (none, Leave, Leave),
        (requested, Make, End),
        (RequestState { has_checkpoint: true, ..requested }, Make, End),
        (ready, Keep, End),
        (RequestState { is_requested: false, ..ready }, Keep, End),
        (failed, Leave, Leave),
        (RequestState { is_failed: true, ..ready }, Discard, Discard),
    ] {
        assert_eq!(state.action(false), action, "{state:?}");
        assert_eq!(state.action(true), where_space_is_short, "{state:?}");
    }
    assert!(failed.is_over() && RequestState { is_old: true, ..ready }.is_over());
    assert!(!ready.is_over());
}
