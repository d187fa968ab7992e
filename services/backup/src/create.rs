//! `backup create`.

use std::{
    os::unix::fs::MetadataExt as _,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use futures::{StreamExt as _, stream};
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
    args::{CreateArgs, SourceArgs},
    changes::ShippedChanges,
    failure::broken,
    lists::{ChunkRef, Damage},
    manifest::{self, BackupManifest, FoundDamage, KeyspaceRows, SentParts},
    objects, packed,
    repository::{ENTRY_LASTS, PRUNING, RUNNING, manifest_path},
    rows::{ChunkedRows, RowChunker, shown_key},
    rules::{DataDirectory, NamedObject, RESTORING, StoreRules},
    show::{show_json, with_damage},
    spool::{CheckpointAnswer, Spool},
    writer::{BackupWriter, LEVEL, send_lists},
};

/// Runs that are compressed and sent at a time; each is a few megabytes, three times.
const AT_ONCE: usize = 4;
/// Runs that are read ahead.
const AHEAD: usize = 2;

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

#[cfg(test)]
mod tests;
