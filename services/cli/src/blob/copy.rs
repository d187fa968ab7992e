//! `cp`: files to blobs and blobs to files, several at a time.

mod download;
mod not_copied;
mod part_file;
mod server;
mod source_files;
mod upload;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use indicatif::ProgressBar;
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};
use trestle_command::{
    client::Session,
    errors::{CliError, Halt},
    flags::ClientArgs,
    interrupt::Interrupts,
    output::{Context, bytes, counted, thousands},
};

pub(super) use self::not_copied::is_of_item;
use self::source_files::FoundFiles;
use super::{CopyBlobArgs, CopySide};

/// What the copies of a command share. Clones are the same.
#[derive(Clone)]
struct BlobTransfer {
    session: Session,
    progress: ProgressBar,
    /// One for each block or file in flight, which also bounds the memory.
    slots: Arc<Semaphore>,
    parallel: usize,
    /// Whether one of many items may fail alone.
    is_folder: bool,
    is_json: bool,
    copied: Arc<CopiedBlobs>,
}

/// What was copied so far.
#[derive(Default)]
struct CopiedBlobs {
    files: AtomicU64,
    bytes: AtomicU64,
    /// Files or blobs that are not copied.
    skipped: AtomicU64,
}

/// Copies a file, a folder, a blob, or the blobs in a folder.
pub(super) async fn run(
    context: &mut Context,
    args: CopyBlobArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let transfer = BlobTransfer {
        session: context.session.clone(),
        progress: context.output.progress(Some(0), 0),
        slots: Arc::new(Semaphore::new(args.parallel.into())),
        parallel: args.parallel.into(),
        is_folder: args.recursive,
        is_json: client.output.is_json(),
        copied: Arc::default(),
    };
    let is_upload = matches!((&args.from, &args.to), (CopySide::Local(_), CopySide::Remote(_)));
    let is_on_server = !is_upload && matches!(args.to, CopySide::Remote(_));
    let mut interrupts = Interrupts::listen()?;
    let copied = interrupts.unless_pressed(transfer.copy(args)).await;
    transfer.progress.finish_and_clear();
    let files = transfer.copied.files.load(Ordering::Relaxed);
    let length = transfer.copied.bytes.load(Ordering::Relaxed);
    let what = if is_on_server { "blob" } else { "file" };
    let skipped = transfer.copied.skipped.load(Ordering::Relaxed);
    let mut text = format!("copied {} ({})", counted(files, what), bytes(length));
    if skipped > 0 {
        text.push_str(&format!(", {} not copied", thousands(skipped)));
    }
    copied.map_err(|error| {
        if is_of_item(&error) {
            return error;
        }
        let next = match is_upload {
            _ if is_on_server => "repeat it: what was copied is complete",
            true => "repeat it: blocks of large files that were sent are kept for 7 days",
            false => "repeat it: files of the copied blobs are complete, no other was made",
        };
        error.halted(length > 0, || Halt {
            endpoint: client.endpoint.clone(),
            progress: text.clone(),
            next: next.to_owned(),
        })
    })?;
    let object = json!({ "files": files, "bytes": length, "not_copied": skipped });
    context.output.either(&text, &object)?;
    context.output.flush()?;
    match skipped {
        0 => Ok(()),
        _ => Err(CliError::Rows(format!("{} not copied, as reported", counted(skipped, what)))),
    }
}

impl BlobTransfer {
    async fn copy(&self, args: CopyBlobArgs) -> Result<(), CliError> {
        let usage = |rule: &str| Err(CliError::Usage(rule.to_owned()));
        let is_blob = matches!(args.from, CopySide::Remote(_)) && !args.recursive;
        if args.state.is_past() && !is_blob {
            return usage("--snapshot and --version-id are for one blob as the source");
        }
        let has_options = !args.content_type.is_empty() || !args.tags.is_empty();
        if has_options && !matches!(args.from, CopySide::Local(_)) {
            return usage("--content-type and --tag are for files that become blobs");
        }
        let is_folder_of_files = matches!(args.from, CopySide::Local(_)) && args.recursive;
        if args.follow_links && !is_folder_of_files {
            return usage("--follow-links is for a folder of files that become blobs");
        }
        match (args.from, args.to) {
            (CopySide::Local(from), CopySide::Remote(to)) => {
                let (recursive, follow_links) = (args.recursive, args.follow_links);
                let options = source_files::FindOptions { recursive, follow_links };
                let FoundFiles { files, skipped } = source_files::find(from, &to, options).await?;
                skipped.iter().for_each(|item| self.skip(item));
                let options = upload::UploadOptions {
                    content_type: args.content_type,
                    tags: super::tags::each_once(args.tags)?,
                    lease_id: args.lease_id,
                };
                self.upload_all(files, &options).await
            }
            (CopySide::Remote(_), CopySide::Local(_)) if !args.lease_id.is_empty() => {
                usage("--lease-id is for blobs that are written")
            }
            (CopySide::Remote(from), CopySide::Local(to)) => {
                let blobs = self.find_blobs(&from, &to).await?;
                self.download_all(blobs, &args.state).await
            }
            (CopySide::Local(_), CopySide::Local(_)) => {
                usage("one side must be a blob: blob://CONTAINER/NAME")
            }
            (CopySide::Remote(from), CopySide::Remote(to)) => {
                let copies = server::find(&self.session, &from, &to, args.recursive).await?;
                self.copy_all(copies, &args.state, &args.lease_id).await
            }
            (CopySide::Url(_), CopySide::Remote(_)) if args.recursive => {
                usage("a URL is not a folder: leave out --recursive")
            }
            (CopySide::Url(url), CopySide::Remote(to)) => {
                let copies = vec![server::from_url(url, &to)?];
                self.copy_all(copies, &args.state, &args.lease_id).await
            }
            (CopySide::Url(_), _) | (_, CopySide::Url(_)) => {
                usage("a URL is copied to a blob: blob://CONTAINER/NAME")
            }
        }
    }

    /// Waits until a block or a file may be in flight.
    async fn slot(&self) -> Result<SemaphorePermit<'_>, CliError> {
        // It is never closed.
        self.slots.acquire().await.map_err(|_| CliError::Interrupted)
    }

    /// Counts bytes that were copied.
    fn advance(&self, bytes: u64) {
        self.copied.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.progress.inc(bytes);
    }

    /// Counts a file that was copied.
    fn complete(&self) {
        let files = self.copied.files.fetch_add(1, Ordering::Relaxed) + 1;
        self.progress.set_message(counted(files, "file"));
    }
}

/// The result of work on files, on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CliError::file("cannot use a file")(error.into()))?
}
