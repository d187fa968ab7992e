//! `backup create`.

use std::{
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use trestle_command::{
    errors::CliError,
    output::{Output, bytes, counted},
};
use trestle_kv::Keyspace;
use trestle_kv_fjall::{FjallEngine, StoreReader};
use trestle_model::time::{Clock as _, SystemClock};
use trestle_objects::SourceObjects;

use crate::{
    DataDirectory, NamedObject, RESTORING, StoreRules,
    args::{CreateArgs, SourceArgs},
    changes::ShippedChanges,
    known_targets::KnownTargets,
    lists::{ChunkRef, CutList, Damage, Listed, Lister},
    manifest::{self, BackupManifest, FoundDamage, KeyspaceRows, ListRef, SentParts},
    names::{NameKey, PartName},
    objects, packed,
    repository::{ENTRY_LASTS, PRUNING, RUNNING, Repository, manifest_path},
    rows::{ChunkedRows, RowChunker},
    sealed::Recipients,
    spool::{CheckpointAnswer, Spool},
    throttle::ReadThrottle,
};

/// How rows are compressed: what zstd itself has as its default.
const LEVEL: i32 = 3;
/// Runs that are compressed and sent at a time; each is a few megabytes, three times.
const AT_ONCE: usize = 4;
/// Bytes of a key that a manifest names.
const KEY_BYTES_SHOWN: usize = 200;
/// Runs that are read ahead.
const AHEAD: usize = 2;

/// What a backup is made with.
pub(crate) struct BackupWriter {
    pub(crate) repository: Repository,
    pub(crate) names: Arc<NameKey>,
    pub(crate) throttle: ReadThrottle,
    recipients: Option<Arc<Recipients>>,
    parts: AtomicU64,
    bytes: AtomicU64,
}

impl BackupWriter {
    /// Prepares a target for the backups of a data directory, encrypted for the keys in a file if there is one, and
    /// read at a rate, in bytes a second, if one is given and not 0.
    ///
    /// # Errors
    /// A target of something else, and files that cannot be used.
    pub(crate) async fn open(
        store: &DataDirectory,
        target: &str,
        encrypt: Option<PathBuf>,
        max_rate: Option<u64>,
    ) -> Result<Self, CliError> {
        let store_id = (store.rules.store_id)(&store.path);
        let store_id =
            store_id.map_err(CliError::file("cannot use the id of the data directory"))?;
        let recipients = Recipients::read_if_named(encrypt).await?;
        let failed = || CliError::file("cannot use the targets that the data directory had");
        let known = KnownTargets::of(&store.path).map_err(failed())?;
        if known.has(target).map_err(failed())? && !Repository::is_marked(target).await? {
            let text = KnownTargets::problem(&store.path, target);
            return Err(CliError::Source { text, busy: false });
        }
        let repository = Repository::create(target, &store_id, recipients.as_ref()).await?;
        known.note(&store.path, target).map_err(failed())?;
        let names = NameKey::of(&store.path);
        let names = names.map_err(CliError::file("cannot use the key of the names of backups"))?;
        Ok(Self {
            repository,
            names: Arc::new(names),
            recipients: recipients.map(Arc::new),
            throttle: ReadThrottle::new(max_rate.filter(|rate| *rate > 0)),
            parts: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// Sends a part, encrypted if the backup is, unless it is there.
    ///
    /// # Errors
    /// The target.
    pub(crate) async fn send(
        &self,
        name: PartName,
        plain: Vec<u8>,
        level: i32,
    ) -> Result<(), CliError> {
        self.send_for(self.recipients.clone(), name, plain, level).await
    }

    async fn send_for(
        &self,
        recipients: Option<Arc<Recipients>>,
        name: PartName,
        plain: Vec<u8>,
        level: i32,
    ) -> Result<(), CliError> {
        match self.repository.has(name) {
            true => Ok(()),
            false => self.put(recipients, name.path(), plain, level).await,
        }
    }

    /// Sends the changes of a window, encrypted if the backups are.
    ///
    /// # Errors
    /// The target.
    pub(crate) async fn send_window(&self, path: String, plain: Vec<u8>) -> Result<(), CliError> {
        self.put(self.recipients.clone(), path, plain, LEVEL).await
    }

    /// Sends names of parts to a path, which are never encrypted.
    ///
    /// # Errors
    /// The target.
    pub(crate) async fn send_names(&self, path: String, names: Vec<u8>) -> Result<(), CliError> {
        self.put(None, path, names, 0).await
    }

    async fn put(
        &self,
        recipients: Option<Arc<Recipients>>,
        path: String,
        plain: Vec<u8>,
        level: i32,
    ) -> Result<(), CliError> {
        let to = path.clone();
        let pack = move || {
            let packed = packed::pack(&path, &plain, level);
            match recipients {
                Some(recipients) => recipients.seal(&packed),
                None => Ok(packed),
            }
        };
        let packed = tokio::task::spawn_blocking(pack).await.map_err(|error| broken(&error))?;
        let packed = packed.map_err(|error| broken(&error))?;
        self.parts.fetch_add(1, Relaxed);
        self.bytes.fetch_add(packed.len() as u64, Relaxed);
        self.repository.put(&to, packed).await
    }

    /// Sends a part that is named by what it contains.
    ///
    /// # Errors
    /// The target.
    pub(crate) async fn send_content(&self, plain: Vec<u8>) -> Result<PartName, CliError> {
        let (name, plain) = self.named(plain).await?;
        self.send(name, plain, LEVEL).await?;
        Ok(name)
    }

    async fn send_list(&self, cut: CutList) -> Result<ListRef, CliError> {
        let list = self.send_content(cut.list).await?;
        let (parts, names) = self.named(cut.parts).await?;
        self.send_for(None, parts, names, 0).await?;
        Ok(ListRef { list, parts })
    }

    async fn named(&self, plain: Vec<u8>) -> Result<(PartName, Vec<u8>), CliError> {
        let names = Arc::clone(&self.names);
        let name = move || (names.of_content(&plain), plain);
        tokio::task::spawn_blocking(name).await.map_err(|error| broken(&error))
    }
}

/// The beginning of a key, for people.
pub(crate) fn shown_key(key: &[u8]) -> String {
    key.get(..KEY_BYTES_SHOWN).unwrap_or(key).escape_ascii().to_string()
}

pub(crate) fn broken(error: &dyn std::error::Error) -> CliError {
    CliError::Source { text: format!("the backup ended: {error}"), busy: false }
}

pub(crate) async fn run(
    args: &CreateArgs,
    rules: StoreRules,
    out: &mut Output,
) -> Result<(), CliError> {
    let (store, target) = source(&args.source, rules)?;
    let encrypt = args.source.encrypt.clone();
    let writer = BackupWriter::open(&store, &target, encrypt, args.max_rate).await?;
    let begun = tokio::time::Instant::now();
    let spool = Spool::begin(&store.path, &new_id(), &target)?.run_by(args.source.server);
    let answer = spool.answer(&store).await?;
    if spool.is_resumed {
        out.note(&format!("continuing an interrupted backup: instant=`{}`", answer.instant()));
    }
    // A command that continues has the id, and so the entry, of the one that was killed.
    let id = spool.id();
    let entry = writer.repository.enter(RUNNING, PRUNING, &id).await?;
    writer.repository.look().await?;
    let job = Job { id, answer, begun, spool: &spool, store: &store, writer: &writer };
    let made = job.make(out).await;
    writer.repository.leave(&entry).await?;
    let (manifest, damage) = made?;
    spool.end()?;
    report(&manifest, &damage, &target, out)?;
    if manifest.damage.count == 0 { Ok(()) } else { Err(CliError::Rejected) }
}

/// The data directory that is sent and the target, at a low priority from now on.
///
/// # Errors
/// No target, or one that the data directory may not be sent to.
pub(crate) fn source(
    args: &SourceArgs,
    rules: StoreRules,
) -> Result<(DataDirectory, String), CliError> {
    let path = args.data_dir.clone().unwrap_or_default();
    let store = DataDirectory { path, rules };
    // Where the system rejects it, nothing else changes.
    let _ = rustix::process::nice(10);
    let target = args.target.text()?.to_owned();
    check(&store, &target)?;
    Ok((store, target))
}

/// Whether the data directory has a store that this user may back up, and the target is outside of it.
fn check(store: &DataDirectory, target: &str) -> Result<(), CliError> {
    let path = &store.path;
    let unreadable =
        || CliError::file(format!("cannot read the data directory `{}`", path.display()));
    let usage = |text: &str| Err(CliError::Usage(format!("{text}: `{}`", path.display())));
    if path.join(RESTORING).exists() {
        return usage("a restore into the data directory did not finish");
    }
    let is_store = FjallEngine::exists(&path.join(store.rules.engine_dir));
    if !is_store.map_err(|error| broken(&error))? {
        return usage("there is no store in the data directory");
    }
    // Of what the server made: a mounted data directory may have another owner.
    let rows = std::fs::metadata(path.join(store.rules.engine_dir)).map_err(unreadable())?;
    let (user, owner) = (rustix::process::geteuid().as_raw(), rows.uid());
    if user != owner {
        return usage(&format!("run it as the user of the server, user=`{user}`, owner=`{owner}`"));
    }
    match SourceObjects::are_at(path, target).map_err(unreadable())? {
        true => Err(CliError::Usage(format!(
            "the target must be outside of the data directory and of its objects: target=`{target}`"
        ))),
        false => Ok(()),
    }
}

/// The time, to sort by, and a random number.
pub(crate) fn new_id() -> String {
    let (seconds, nanos) = SystemClock.now().to_unix();
    let text = prost_types::Timestamp { seconds, nanos: 0 }.to_string();
    let time = text.trim_end_matches('Z').chars().filter(char::is_ascii_alphanumeric);
    let (time, millis): (String, _) = (time.collect(), nanos / 1_000_000);
    let random = uuid::Uuid::new_v4().simple().to_string();
    let random = random.get(..8).unwrap_or_default();
    format!("{}{millis:03}z-{random}", time.to_ascii_lowercase())
}

struct Job<'a> {
    id: String,
    answer: CheckpointAnswer,
    begun: tokio::time::Instant,
    spool: &'a Spool,
    store: &'a DataDirectory,
    writer: &'a BackupWriter,
}

impl Job<'_> {
    async fn make(&self, out: &Output) -> Result<(BackupManifest, Vec<Damage>), CliError> {
        let bar = out.progress(None, 0);
        let (path, keyspaces) = (self.spool.rows(), self.store.rules.keyspaces.clone());
        let open = move || StoreReader::open(&path, keyspaces);
        let reader = tokio::task::spawn_blocking(open).await.map_err(|error| broken(&error))?;
        let reader = Arc::new(reader.map_err(|error| broken(&error))?);
        let (mut keyspaces, mut named) = (Vec::new(), NamedObjects::default());
        for keyspace in &self.store.rules.keyspaces {
            bar.set_message(format!("rows: {}", keyspace.name));
            keyspaces.push(self.rows(keyspace, &reader, &mut named).await?);
        }
        drop(reader);
        bar.set_message("objects");
        let NamedObjects { objects, mut damage } = named;
        let copied = objects::copy(self.writer, &self.store.path, objects, self.spool).await?;
        damage.extend(copied.damage);
        let count = damage.len() as u64;
        let lists = send_lists(self.writer, stream::iter(damage.clone()).map(Ok)).await?;
        bar.finish_and_clear();
        let recipients = self.writer.recipients.as_ref();
        let manifest = BackupManifest {
            format: manifest::FORMAT,
            id: self.id.clone(),
            store_id: self.answer.store_id.clone(),
            at: self.answer.at,
            newest: self.answer.newest,
            line: ShippedChanges::read(&self.store.path).map(|shipped| shipped.line),
            instant: self.answer.instant(),
            completed: manifest::time_text(SystemClock.now()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            keyspaces,
            recipients: recipients.map(|it| it.texts()).unwrap_or_default(),
            objects: copied.stored,
            damage: FoundDamage { count, lists },
            sent: SentParts {
                parts: self.writer.parts.load(Relaxed),
                bytes: self.writer.bytes.load(Relaxed),
                millis: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            },
        };
        self.publish(&manifest).await?;
        Ok((manifest, damage))
    }

    /// The manifest, once all that it names is durable.
    async fn publish(&self, manifest: &BackupManifest) -> Result<(), CliError> {
        self.spool.check()?;
        // A prune may no longer respect the entry of this backup then.
        let since = self.spool.age()?;
        if since.max(self.begun.elapsed()) > ENTRY_LASTS - ENTRY_LASTS / 6 {
            return Err(broken(&std::io::Error::other("it ran for longer than 20 hours")));
        }
        self.writer.repository.sync().await?;
        let text = serde_json::to_vec_pretty(manifest).map_err(|error| broken(&error))?;
        let path = manifest_path(&self.id);
        let packed = packed::pack(&path, &text, LEVEL);
        self.writer.repository.put(&path, packed).await?;
        self.writer.repository.sync().await
    }

    async fn rows(
        &self,
        keyspace: &Keyspace,
        reader: &Arc<StoreReader>,
        named: &mut NamedObjects,
    ) -> Result<KeyspaceRows, CliError> {
        let (runs, received) = mpsc::channel(AHEAD);
        let (name, rules, reader) = (keyspace.name, self.store.rules.clone(), Arc::clone(reader));
        let read = tokio::task::spawn_blocking(move || read_rows(&reader, name, &rules, &runs));
        let sent = ReceiverStream::new(received).map(|run: ChunkedRows| async move {
            self.writer.throttle.count(run.bytes.len()).await;
            self.spool.check()?;
            let ChunkedRows { bytes, rows, first, last } = run;
            let name = self.writer.send_content(bytes).await?;
            Ok::<_, CliError>(ChunkRef { name: name.into(), rows, first, last })
        });
        let lists = send_lists(self.writer, sent.buffered(AT_ONCE)).await?;
        let read = read.await.map_err(|error| broken(&error))??;
        named.objects.extend(read.named.objects);
        named.damage.extend(read.named.damage);
        Ok(KeyspaceRows {
            name: name.to_owned(),
            first_kind: *keyspace.kinds.start(),
            last_kind: *keyspace.kinds.end(),
            rows: read.rows,
            bytes: read.bytes,
            lists,
        })
    }
}

/// Sends entries in lists.
pub(crate) async fn send_lists<E: Listed>(
    writer: &BackupWriter,
    entries: impl futures::Stream<Item = Result<E, CliError>>,
) -> Result<Vec<ListRef>, CliError> {
    let (mut lister, mut lists) = (Lister::new(), Vec::new());
    let mut entries = std::pin::pin!(entries);
    while let Some(entry) = entries.try_next().await? {
        if let Some(list) = lister.push(entry) {
            lists.push(writer.send_list(list).await?);
        }
    }
    if let Some(list) = lister.finish() {
        lists.push(writer.send_list(list).await?);
    }
    Ok(lists)
}

#[derive(Default)]
struct NamedObjects {
    objects: Vec<NamedObject>,
    damage: Vec<Damage>,
}

#[derive(Default)]
struct KeyspaceRead {
    rows: u64,
    bytes: u64,
    named: NamedObjects,
}

/// Reads a keyspace in runs, with the objects that its rows name.
fn read_rows(
    reader: &StoreReader,
    keyspace: &str,
    rules: &StoreRules,
    runs: &mpsc::Sender<ChunkedRows>,
) -> Result<KeyspaceRead, CliError> {
    let (mut chunker, mut read) = (RowChunker::new(), KeyspaceRead::default());
    // Where no task receives any more, the error is there.
    let send = |run: Option<ChunkedRows>| run.is_none_or(|run| runs.blocking_send(run).is_ok());
    for row in reader.rows(keyspace, None).map_err(|error| broken(&error))? {
        let row = row.map_err(|error| broken(&error))?;
        match (rules.objects_of)(&row) {
            Ok(objects) => read.named.objects.extend(objects),
            Err(reason) if read.named.damage.len() >= objects::DAMAGE_MAX => drop(reason),
            Err(reason) => {
                let key = shown_key(&row.key);
                let object = format!("objects of a row of `{keyspace}`: {key}");
                read.named.damage.push(Damage { object, reason });
            }
        }
        read.rows += 1;
        read.bytes += (row.key.len() + row.value.len()) as u64;
        if !send(chunker.push(&row.key, &row.value)) {
            return Ok(read);
        }
    }
    send(chunker.finish());
    Ok(read)
}

fn report(
    manifest: &BackupManifest,
    damage: &[Damage],
    target: &str,
    out: &mut Output,
) -> Result<(), CliError> {
    let BackupManifest { id, instant, sent, objects, .. } = manifest;
    let human = format!(
        "backup {id} of {instant}: {} ({}), {} ({}); sent {}{}",
        counted(manifest.rows(), "row"),
        bytes(manifest.row_bytes()),
        counted(objects.count, "object"),
        bytes(objects.bytes),
        bytes(sent.bytes),
        match manifest.damage.count {
            0 => String::new(),
            found => {
                let found = counted(found, "object");
                format!("; {found} could not be read, see `trestle backup show`")
            }
        },
    );
    out.either(&human, &with_damage(show_json(manifest, target), damage))
}

/// The same with what is damaged.
pub(crate) fn with_damage(mut backup: serde_json::Value, damage: &[Damage]) -> serde_json::Value {
    if let Some(fields) = backup.as_object_mut() {
        fields.insert("damage".to_owned(), json!(damage));
    }
    backup
}

/// A backup for programs, without the names of what is damaged.
pub(crate) fn show_json(manifest: &BackupManifest, target: &str) -> serde_json::Value {
    json!({
        "id": manifest.id,
        "target": target,
        "instant": manifest.instant,
        "completed": manifest.completed,
        "version": manifest.version,
        "store_id": manifest.store_id,
        "rows": manifest.rows(),
        "row_bytes": manifest.row_bytes(),
        "objects": manifest.objects.count,
        "object_bytes": manifest.objects.bytes,
        "sent_parts": manifest.sent.parts,
        "sent_bytes": manifest.sent.bytes,
        "seconds": manifest.sent.millis as f64 / 1000.0,
        "lists": manifest.lists().count(),
        "damaged": manifest.damage.count,
        "keys": manifest.recipients,
    })
}

#[cfg(test)]
mod tests;
