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
    /// Whether a kind is served.
    is_served: bool,
    /// Why another one is not.
    absent: Option<CliError>,
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
    let VerifiedTotals { things, bytes: read, damaged, unverified, is_served, absent } = totals;
    if let Some(error) = absent.filter(|_| !is_served) {
        return Err(error);
    }
    let mut text = format!("verified {things} of {}", counted(things + unverified, "thing"));
    text += &format!(" ({}), {damaged} damaged", output::bytes(read));
    context.output.unless_empty(things + unverified > 0, "nothing to verify")?;
    context.output.note(&text);
    context.output.finish()?;
    if damaged + unverified > 0 { Err(CliError::Rejected) } else { Ok(()) }
}

/// Verifies all things of a kind. A kind that the server does not serve is left out, and so said.
async fn verify_kind(
    context: &mut Context,
    kind: VerifiedKind,
    args: &VerifyAccountArgs,
    totals: &mut VerifiedTotals,
) -> Result<(), CliError> {
    let names = match names::list(&context.session, kind).await {
        Ok(names) => names,
        Err(error @ CliError::Misdirected { .. }) if args.only.is_empty() => {
            context.output.note(&format!("{kind}: not served here"));
            totals.absent = Some(error);
            return Ok(());
        }
        Err(CliError::Call(status)) if is_of_service(&status) => {
            (totals.unverified, totals.is_served) = (totals.unverified + 1, true);
            let all = VerifiedName { kind, name: String::new() };
            let error = json!({ "error": status.message() });
            return print(&mut context.output, &all, "not verified", error);
        }
        Err(error) => return Err(error),
    };
    totals.is_served = true;
    for name in names {
        let name = VerifiedName { kind, name };
        verify_one(context, &name, args.parallel, (totals, false)).await?;
    }
    Ok(())
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
    let state = match read {
        Ok(()) if !is_damaged => "whole",
        Ok(()) => "damaged",
        // Deleted since it was listed.
        Err(CliError::Call(status)) if status.code() == Code::NotFound && !is_named => {
            return Ok(());
        }
        Err(CliError::Call(status))
            if is_of_service(&status) && status.code() != Code::NotFound =>
        {
            let item = behind.map(|behind| format!("behind {behind}"));
            record = with_fields(record, json!({ "item": item, "error": status.message() }));
            if status.code() == Code::DataLoss { "damaged" } else { "not verified" }
        }
        Err(error) => return Err(error),
    };
    totals.bytes += bytes;
    match state {
        "not verified" => totals.unverified += 1,
        _ => totals.things += 1,
    }
    totals.damaged += u64::from(state == "damaged");
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
