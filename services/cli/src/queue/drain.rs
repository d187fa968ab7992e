//! `drain`: every visible message into a file, none lost on the way.

use std::{
    fs::OpenOptions,
    io::{BufWriter, Write as _},
    time::Duration,
};

use serde_json::json;

use super::{
    Context, DrainArgs,
    messages::{Asked, delete_all, take, to_json},
};
use crate::{errors::CliError, output::thousands};

/// Most messages of one receive. The server's limit.
const RECEIVE_MAX: u32 = 32;
/// How long messages are hidden while they are written down.
const HIDDEN: Duration = Duration::from_secs(300);

/// Drains a queue.
pub(super) async fn run(context: &mut Context, args: DrainArgs) -> Result<(), CliError> {
    let path = args.to.display().to_string();
    let failed = |source| CliError::file(format!("cannot write `{path}`"))(source);
    let file = OpenOptions::new().create(true).append(true).open(&args.to).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let progress = context.output.progress(None);
    let (mut drained, queue) = (0_u64, args.queue);
    let asked = Asked { queue: queue.clone(), max: RECEIVE_MAX, hidden: HIDDEN, wait: None };
    loop {
        let deliveries = take(context, &asked).await?;
        if deliveries.is_empty() {
            break;
        }
        for message in deliveries.iter().filter_map(|delivery| delivery.message.as_ref()) {
            writeln!(out, "{}", to_json(message)).map_err(failed)?;
        }
        // On stable storage before it is deleted: a crash doubles lines, and loses none.
        out.flush().and_then(|()| out.get_ref().sync_data()).map_err(failed)?;
        delete_all(context, &queue, &deliveries).await?;
        drained = drained.saturating_add(deliveries.len().try_into().unwrap_or(0));
        progress.set_message(format!("{} drained", thousands(drained)));
    }
    progress.finish_and_clear();
    let text = format!("drained {} messages to {path}", thousands(drained));
    context.output.either(&text, &json!({ "queue": queue, "drained": drained, "file": path }))
}
