//! `cp`: files to blobs and blobs to files, several at a time.

mod download;
mod upload;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use indicatif::ProgressBar;
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{CopyBlobArgs, CopySide};
use crate::{
    args::ClientArgs,
    client::Session,
    errors::{CliError, Halt},
    interrupt::Interrupts,
    output::{Context, bytes, counted},
};

/// What the copies of a command share. Clones are the same.
#[derive(Clone)]
struct BlobTransfer {
    session: Session,
    progress: ProgressBar,
    /// One for each block or file in flight, which also bounds the memory.
    slots: Arc<Semaphore>,
    parallel: usize,
    copied: Arc<CopiedBlobs>,
}

/// What was copied so far.
#[derive(Default)]
struct CopiedBlobs {
    files: AtomicU64,
    bytes: AtomicU64,
}

/// Copies a file, a folder, a blob, or the blobs in a folder.
pub(super) async fn run(
    context: &mut Context,
    args: CopyBlobArgs,
    client: &ClientArgs,
) -> Result<(), CliError> {
    let transfer = BlobTransfer {
        session: context.session.clone(),
        progress: context.output.progress(Some(0)),
        slots: Arc::new(Semaphore::new(args.parallel.into())),
        parallel: args.parallel.into(),
        copied: Arc::default(),
    };
    let is_upload = matches!(args.to, CopySide::Remote(_));
    let mut interrupts = Interrupts::listen()?;
    let copied = interrupts.unless_pressed(transfer.copy(args)).await;
    transfer.progress.finish_and_clear();
    let files = transfer.copied.files.load(Ordering::Relaxed);
    let length = transfer.copied.bytes.load(Ordering::Relaxed);
    let text = format!("copied {} ({})", counted(files, "file"), bytes(length));
    copied.map_err(|error| {
        let next = match is_upload {
            true => "repeat it: blocks of large files that were sent are kept for 7 days",
            false => "repeat it: files of the copied blobs are complete, no other was made",
        };
        error.halted(length > 0, || Halt {
            endpoint: client.endpoint.clone(),
            progress: text.clone(),
            next: next.to_owned(),
        })
    })?;
    context.output.either(&text, &json!({ "files": files, "bytes": length }))
}

impl BlobTransfer {
    async fn copy(&self, args: CopyBlobArgs) -> Result<(), CliError> {
        let usage = |rule: &str| Err(CliError::Usage(rule.to_owned()));
        match (args.from, args.to) {
            (CopySide::Local(from), CopySide::Remote(to)) => {
                let files = upload::find(from, &to, args.recursive).await?;
                let options = upload::UploadOptions {
                    content_type: args.content_type,
                    lease_id: args.lease_id,
                };
                self.upload_all(files, &options).await
            }
            (CopySide::Remote(_), CopySide::Local(_))
                if !args.content_type.is_empty() || !args.lease_id.is_empty() =>
            {
                usage("--content-type and --lease-id are for blobs that are written")
            }
            (CopySide::Remote(from), CopySide::Local(to)) => {
                let blobs = download::find(&self.session, &from, &to, args.recursive).await?;
                self.download_all(blobs).await
            }
            (CopySide::Local(_), CopySide::Local(_)) => {
                usage("one side must be a blob: blob://CONTAINER/NAME")
            }
            (CopySide::Remote(_), CopySide::Remote(_)) => {
                usage("one side must be a file or a folder, without blob://")
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
