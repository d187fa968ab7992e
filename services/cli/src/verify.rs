//! `verify`: has a server read everything that an account has, and reports what it cannot read.

mod args;
mod contents;
mod names;

use indicatif::ProgressBar;
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use trestle_command::{
    client::Session,
    errors::CliError,
    flags::ClientArgs,
    output::{self, Context, Output, counted, with_fields},
};

use self::args::{KINDS, VerifiedName};
pub use self::args::{VerifiedKind, VerifyAccountArgs};

/// The columns of a result.
const COLUMNS: [&str; 7] = ["kind", "name", "state", "items", "bytes", "item", "error"];

/// A thing of which something cannot be read.
const DAMAGED: &str = "damaged";
/// A thing that was not read for another reason.
const NOT_VERIFIED: &str = "not verified";

/// What was read of one thing.
pub(crate) struct VerifiedItems {
    progress: ProgressBar,
    /// Entities, messages, blobs or segments.
    pub(crate) items: u64,
    /// The bytes of those that are whole.
    pub(crate) bytes: u64,
    /// How many are damaged.
    pub(crate) damaged: u64,
    /// The last one before an error that ended the reading, for people.
    pub(crate) behind: Option<String>,
}

impl VerifiedItems {
    /// Nothing yet; how much it is, is shown.
    pub(crate) fn new(progress: ProgressBar) -> Self {
        Self { progress, items: 0, bytes: 0, damaged: 0, behind: None }
    }

    /// Counts items of so many bytes, and shows how much was read.
    pub(crate) fn add(&mut self, items: u64, bytes: u64, noun: &str) {
        self.items += items;
        self.bytes += bytes;
        let read = output::bytes(self.bytes);
        self.progress.set_message(format!("{}, {read}", counted(self.items, noun)));
        self.progress.tick();
    }
}

impl Drop for VerifiedItems {
    fn drop(&mut self) {
        self.progress.finish_and_clear();
    }
}

/// An item that cannot be read.
pub(crate) struct DamagedItem {
    /// What it is, for people.
    pub(crate) item: String,
    /// What the server reports.
    pub(crate) error: String,
}

/// What became of all things.
#[derive(Default)]
struct VerifiedTotals {
    things: u64,
    bytes: u64,
    /// Things with damage.
    damaged: u64,
    /// Things that could not be read for another reason.
    unverified: u64,
    /// Why something that was named was not verified, the first.
    failed: Option<CliError>,
    /// Whether a kind is served.
    is_served: bool,
    /// Why another one is not.
    absent: Option<CliError>,
}

impl VerifiedTotals {
    /// Counts a thing that is not whole; what it is.
    fn count(&mut self, is_damaged: bool) -> &'static str {
        if is_damaged {
            (self.things, self.damaged) = (self.things + 1, self.damaged + 1);
            return DAMAGED;
        }
        self.unverified += 1;
        NOT_VERIFIED
    }
}

/// Verifies what is named, or everything.
pub(crate) async fn run(args: VerifyAccountArgs, client: &ClientArgs) -> Result<(), CliError> {
    let session = Session::new(client)?;
    let mut context = Context { session, output: Output::standard(&client.output) };
    let mut totals = VerifiedTotals::default();
    if args.names.is_empty() {
        let is_selected = |kind: &VerifiedKind| args.only.is_empty() || args.only.contains(kind);
        for kind in KINDS.into_iter().filter(is_selected) {
            verify_kind(&mut context, kind, &args, &mut totals).await?;
        }
    }
    for name in &args.names {
        verify_one(&mut context, name, args.parallel, (&mut totals, true)).await?;
    }
    let VerifiedTotals { things, bytes: read, damaged, unverified, .. } = totals;
    if let Some(error) = totals.absent.filter(|_| !totals.is_served) {
        return Err(error);
    }
    let mut text = format!("verified {things} of {}", counted(things + unverified, "thing"));
    text += &format!(" ({}), {damaged} damaged", output::bytes(read));
    context.output.unless_empty(things + unverified > 0, "nothing to verify")?;
    context.output.note(&text);
    context.output.finish()?;
    match totals.failed {
        Some(error) => Err(error),
        None if damaged + unverified > 0 => Err(CliError::Rejected),
        None => Ok(()),
    }
}

/// Verifies all things of a kind. A kind that the server does not serve is left out, and so said.
async fn verify_kind(
    context: &mut Context,
    kind: VerifiedKind,
    args: &VerifyAccountArgs,
    totals: &mut VerifiedTotals,
) -> Result<(), CliError> {
    let mut names = Vec::new();
    let listed = names::list(&context.session, kind, &mut names).await;
    totals.is_served |= !matches!(listed, Err(CliError::Misdirected { .. }));
    for name in names {
        let name = VerifiedName { kind, name };
        verify_one(context, &name, args.parallel, (totals, false)).await?;
    }
    match listed {
        Ok(()) => Ok(()),
        Err(error @ CliError::Misdirected { .. }) if args.only.is_empty() => {
            context.output.note(&format!("{kind}: not served here"));
            totals.absent = Some(error);
            Ok(())
        }
        Err(error @ CliError::Misdirected { .. }) => {
            totals.unverified += 1;
            totals.failed.get_or_insert(error);
            Ok(())
        }
        Err(CliError::Call(status)) if is_of_service(&status) => {
            let all = VerifiedName { kind, name: String::new() };
            let state = totals.count(status.code() == Code::DataLoss);
            let error = json!({ "error": status.message() });
            print(&mut context.output, &all, state, error)
        }
        Err(error) => Err(error),
    }
}

/// Verifies a thing, and prints what is damaged in it and what it is as a whole.
async fn verify_one(
    context: &mut Context,
    name: &VerifiedName,
    parallel: u8,
    (totals, is_named): (&mut VerifiedTotals, bool),
) -> Result<(), CliError> {
    let Context { session, output } = context;
    let mut verified = VerifiedItems::new(output.progress(None, 0));
    let mut found = |DamagedItem { item, error }| {
        print(output, name, "damaged item", json!({ "item": item, "error": error }))
    };
    let read = contents::read(session, name, parallel, &mut verified, &mut found).await;
    let (bytes, behind) = (verified.bytes, verified.behind.take());
    let mut record = json!({ "items": verified.items, "bytes": bytes });
    let is_damaged = verified.damaged > 0;
    drop(verified);
    totals.bytes += bytes;
    let state = match read {
        // Deleted since it was listed.
        Err(CliError::Call(status))
            if status.code() == Code::NotFound && !is_named && !is_damaged =>
        {
            return Ok(());
        }
        Ok(()) if !is_damaged => {
            totals.things += 1;
            "whole"
        }
        Ok(()) => totals.count(true),
        Err(CliError::Call(status)) if is_of_service(&status) => {
            let item = behind.map(|behind| format!("all behind {behind}"));
            record = with_fields(record, json!({ "item": item, "error": status.message() }));
            let state = totals.count(is_damaged || status.code() == Code::DataLoss);
            if is_named && status.code() == Code::NotFound {
                totals.failed.get_or_insert(CliError::Call(status));
            }
            state
        }
        // Bytes that are no entity.
        Err(CliError::Protocol(error)) => {
            let item = behind.map(|behind| format!("all behind {behind}"));
            record = with_fields(record, json!({ "item": item, "error": error }));
            totals.count(true)
        }
        Err(error) => return Err(error),
    };
    print(output, name, state, record)
}

fn print(
    output: &mut Output,
    name: &VerifiedName,
    state: &str,
    fields: Value,
) -> Result<(), CliError> {
    let of = json!({ "kind": name.kind.to_string(), "name": name.name, "state": state });
    output.records(&[with_fields(of, fields)], &COLUMNS)?;
    output.flush()
}

/// Whether an error comes from the service, and not from the connection to it.
pub(crate) fn is_of_service(status: &Status) -> bool {
    status.get_details_error_info().is_some()
}
