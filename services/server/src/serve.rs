//! A server from its settings to its end.

use std::{
    pin::pin,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use futures::future::LocalBoxFuture;
use opentelemetry::metrics::Meter;
use tracing::{info, warn};
use trestle_backup::{MountArgs, MountedBackup};
use trestle_kv::Engine;
use trestle_model::time::SystemClock;
use trestle_objects::ObjectStorage;
use trestle_rpc::exemplar::Exemplars;
use trestle_runtime::{serve::Drained, task::Task, telemetry::Telemetry};

use crate::{
    backup,
    banner::{self, StartReport},
    compose::{NodeDeps, compose},
    continuous_backups,
    database::{self, OpenedDatabase},
    descriptors::DescriptorPlan,
    process_error::ProcessError,
    reload::{Reloads, SettingsSource},
    roles::ROLES,
    running::{Listeners, Running, Signals},
    scheduled_backups,
    settings::Settings,
    storage,
};

/// The warning about addresses for clients of Azure Storage that no listener has.
pub const UNSERVED: &str =
    "no effect without the role gateway, which serves clients of Azure Storage";
/// How long a forced shutdown may take.
const FORCED_WITHIN: Duration = Duration::from_secs(2);

/// How often it is looked whether the store has stopped.
const STOPPED_POLL: Duration = Duration::from_millis(500);

/// A server before its start.
pub struct Server {
    /// Its settings.
    pub settings: Settings,
    /// The descriptors that it may use.
    pub descriptors: DescriptorPlan,
    /// Where the settings are from.
    pub source: SettingsSource,
    /// The backup that it shows, if it has no store of its own.
    pub backup: MountArgs,
}

/// What a server keeps, in this process.
#[derive(Default)]
struct OwnedData {
    engine: Option<Arc<dyn Engine>>,
    objects: Option<ObjectStorage>,
    /// Responds to requests of backups, and hands changes over to them; or asks a database about itself.
    tasks: Vec<Task>,
    /// The backup that all of it is from, if it is.
    shown: Option<String>,
}

impl Server {
    /// Serves until a signal. `print` writes the line of the listeners that are ready.
    ///
    /// # Errors
    /// Every kind of [`ProcessError`].
    pub fn serve(
        self,
        print: fn(&str) -> Result<(), ProcessError>,
    ) -> LocalBoxFuture<'static, Result<(), ProcessError>> {
        Box::pin(async move {
            let telemetry = Telemetry::start(&self.settings.telemetry, rand::random)?;
            telemetry.install()?;
            let ended = self.serve_with(&telemetry, print).await;
            telemetry.shutdown().await;
            ended
        })
    }

    async fn serve_with(
        self,
        telemetry: &Telemetry,
        print: fn(&str) -> Result<(), ProcessError>,
    ) -> Result<(), ProcessError> {
        let Self { settings, descriptors, source, .. } = &self;
        let config = source.file().map(|file| file.display().to_string());
        descriptors.log();
        let unserved = settings.server.unserved_keys(ROLES);
        if !unserved.is_empty() {
            warn!(keys = unserved.join(", "), roles = %settings.server.roles, "{UNSERVED}");
        }
        // Before signals are handled: a target that never answers must not keep the process.
        let mounted = match settings.owns_data(ROLES) {
            true => self.backup.open(backup::rules()).await?,
            false => None,
        };
        let meter = telemetry.meter();
        let database = match settings.owns_data(ROLES) && mounted.is_none() {
            true => database::open(settings, &meter).await?,
            false => None,
        };
        let signals = Signals::take()?;
        let listeners = Listeners::bind(settings).await?;
        for (listener, address) in settings.server.exposed(&settings.tls) {
            warn!(listener, %address, "this address is not loopback and nothing is encrypted");
        }

        listeners.count_on(&meter);
        let opening = Instant::now();
        let data = self.open((mounted, database), &meter, telemetry.traces().exemplars).await?;
        let recovery = opening.elapsed();
        let watched = data.engine.as_ref().filter(|_| settings.storage.exit_when_stopped);
        let watched = watched.map(Arc::downgrade);
        let deps = NodeDeps {
            engine: data.engine,
            objects: data.objects,
            listen: Some(listeners.grpc()?),
            clock: Arc::new(SystemClock),
            meter: meter.clone(),
            traces: telemetry.traces(),
            access: telemetry.access(),
            random: rand::random,
            source: Some(source.clone()),
        };
        let mut node = compose(settings, ROLES, deps).await?;
        node.tasks.extend(data.tasks);
        if data.shown.is_none() {
            scheduled_backups::add_to(&mut node, settings, Arc::new(SystemClock))?;
            continuous_backups::add_to(&mut node, settings, Arc::new(SystemClock))?;
        }
        let reloads = Reloads::new(&meter).located_in(source.clone());
        listeners.watches(&reloads).for_each(|task| node.watch(task));
        let ready = listeners.ready()?;
        let (reload, members) = (node.reload.clone(), node.members.clone());
        let running = Running::start(node, listeners, settings, telemetry.exposition());
        let (config, backup) = (config.as_deref(), data.shown.as_deref());
        banner::log(settings, &StartReport { config, backup, recovery, ready: &ready });
        print(&ready)?;
        let ended = until_signal(running, signals, &reload, watched).await;
        members.leave().await;
        ended
    }

    /// Opens what the roles of this process keep.
    async fn open(
        &self,
        (mounted, database): (Option<MountedBackup>, Option<OpenedDatabase>),
        meter: &Meter,
        exemplars: Exemplars,
    ) -> Result<OwnedData, ProcessError> {
        let settings = &self.settings;
        if !settings.owns_data(ROLES) {
            return Ok(OwnedData::default());
        }
        let has_objects = settings.has_objects(ROLES);
        if let Some(mounted) = mounted {
            mounted.notes.iter().for_each(|note| warn!("{note}"));
            let shown = format!("{} of {}, read-only", mounted.id, mounted.instant);
            let engine: Arc<dyn Engine> = Arc::new(mounted.engine);
            let objects = has_objects.then_some(mounted.objects);
            let engine = Some(storage::observed(engine, meter, exemplars));
            return Ok(OwnedData { engine, objects, tasks: Vec::new(), shown: Some(shown) });
        }
        if let Some(OpenedDatabase { engine, task }) = database {
            let objects = match has_objects {
                true => Some(database::open_objects(&settings.storage, &engine).await?),
                false => None,
            };
            let engine = Some(storage::observed(engine, meter, exemplars));
            return Ok(OwnedData { engine, objects, tasks: vec![task], shown: None });
        }
        let files = self.descriptors.store_files;
        let is_followed = settings.backup.continuous_target().is_some();
        let store = storage::open(&settings.storage, (files, is_followed), meter, exemplars)?;
        let objects = match has_objects {
            true => Some(storage::open_objects(&settings.storage, store.disk.clone()).await?),
            false => None,
        };
        let backups = storage::backups(&settings.storage, &store, objects.as_ref(), meter)?;
        let changes = storage::changes(settings, &store, objects.as_ref(), meter);
        let tasks = backups.into_iter().chain(changes).collect();
        Ok(OwnedData { engine: Some(store.engine), objects, tasks, shown: None })
    }
}

/// Waits until a store accepts no writes any more, and returns why. Without a store it never ends.
async fn stopped(store: Option<Weak<dyn Engine>>) -> Arc<str> {
    let Some(store) = store else { return std::future::pending().await };
    let mut poll = tokio::time::interval(STOPPED_POLL);
    loop {
        poll.tick().await;
        let status = store.upgrade().map(|engine| engine.status());
        if let Some(reason) = status.and_then(|status| status.stopped) {
            return reason;
        }
    }
}

/// Serves until a signal, the failure of a listener, or that of the store, and then ends calls.
async fn until_signal(
    running: Running,
    mut signals: Signals,
    reload: &crate::reload::Reload,
    store: Option<Weak<dyn Engine>>,
) -> Result<(), ProcessError> {
    let (watchdog, forced) = (running.watchdog(), running.forced());
    let failed = tokio::select! {
        () = signals.shutdown(reload) => None,
        () = watchdog.failure() => None,
        reason = stopped(store) => Some(reason),
    };
    if failed.is_some() {
        warn!("the store stopped; shutting down, so that a supervisor restarts the server");
    }
    let stopping_since = Instant::now();
    let mut stopping = pin!(running.stop());
    let drained = tokio::select! {
        drained = &mut stopping => Ok(drained),
        () = signals.shutdown(reload) => {
            forced.cancel();
            tokio::time::timeout(FORCED_WITHIN, stopping).await
        }
    };
    if let Some(reason) = failed {
        return Err(ProcessError::StorageStopped { reason });
    }
    match (watchdog.failed(), drained) {
        (Some(listener), _) => Err(ProcessError::Listener { listener: listener.to_owned() }),
        (None, Ok(Drained::Clean)) => {
            info!("stopped cleanly in {} ms", stopping_since.elapsed().as_millis());
            Ok(())
        }
        (None, Ok(Drained::Cut(connections))) => Err(ProcessError::Cut { connections }),
        (None, Err(_)) => Err(ProcessError::Hung),
    }
}
