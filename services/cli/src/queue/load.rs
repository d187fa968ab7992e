//! `load`: every line of a file as a message.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::json;
use trestle_proto::queue::v1::{OutgoingMessage, outgoing_message::Body};

use super::{
    Context, LoadArgs,
    messages::{BATCH_MAX, send_batch},
};
use crate::{
    client::{Random, Retries},
    errors::CliError,
    output::thousands,
};

/// Longest line, in bytes: a message of 64 KiB, every byte of it escaped.
const LINE_BYTES_MAX: u64 = 1024 * 1024;
/// Most bytes of the messages of one call, under the server's limit.
const BATCH_BYTES_MAX: usize = 3 * 1024 * 1024;

/// A line as `drain` writes it. What else is in it says how the message was, not how it is to be.
#[derive(Debug, Deserialize)]
struct Line {
    text: Option<String>,
    data_base64: Option<String>,
}

/// Loads a file.
pub(super) async fn run(context: &mut Context, args: LoadArgs) -> Result<(), CliError> {
    let path = args.file.display().to_string();
    let failed = |source| CliError::file(format!("cannot read `{path}`"))(source);
    let (mut input, bytes): (Box<dyn BufRead + Send>, _) = match path.as_str() {
        "-" => (Box::new(BufReader::new(io::stdin())), None),
        path => {
            let file = File::open(path).map_err(failed)?;
            let bytes = file.metadata().map_err(failed)?.len();
            (Box::new(BufReader::new(file)), Some(bytes))
        }
    };
    let progress = context.output.progress(bytes);
    let (mut loaded, mut line_number) = (0_u64, 0_u64);
    let (mut batch, mut batch_bytes) = (Vec::new(), 0);
    while let Some(line) = next_line(&mut input).map_err(failed)? {
        line_number += 1;
        progress.inc(u64::try_from(line.len()).unwrap_or(0) + 1);
        let body = body_of(line, args.text)
            .map_err(|problem| CliError::Rows(format!("{path}:{line_number}: {problem}")))?;
        let body_bytes = match &body {
            Body::Text(text) => text.len(),
            Body::Data(data) => data.len(),
        };
        if batch.len() == BATCH_MAX || batch_bytes + body_bytes > BATCH_BYTES_MAX {
            loaded += flush(context, &args.queue, &mut batch, &progress).await?;
            batch_bytes = 0;
        }
        batch_bytes += body_bytes;
        batch.push(OutgoingMessage { body: Some(body), ..Default::default() });
    }
    loaded += flush(context, &args.queue, &mut batch, &progress).await?;
    progress.finish_and_clear();
    let text = format!("loaded {} messages into {}", thousands(loaded), args.queue);
    context.output.either(&text, &json!({ "queue": args.queue, "loaded": loaded }))
}

fn next_line(input: &mut dyn BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    let mut bounded = input.take(LINE_BYTES_MAX);
    if bounded.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    if !line.ends_with('\n') && u64::try_from(line.len()).unwrap_or(u64::MAX) >= LINE_BYTES_MAX {
        return Err(io::Error::other("a line is longer than 1 MiB"));
    }
    let trimmed = line.strip_suffix('\n').unwrap_or(&line);
    Ok(Some(trimmed.strip_suffix('\r').unwrap_or(trimmed).to_owned()))
}

fn body_of(line: String, is_text: bool) -> Result<Body, String> {
    if is_text {
        return Ok(Body::Text(line));
    }
    let parsed: Line = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    match (parsed.text, parsed.data_base64) {
        (Some(text), None) => Ok(Body::Text(text)),
        (None, Some(data)) => {
            let decoded = STANDARD.decode(data);
            decoded.map(|data| Body::Data(data.into())).map_err(|error| error.to_string())
        }
        _ => Err("must have either text or data_base64".to_owned()),
    }
}

/// Sends a batch, again if that may help: its request id keeps it from being sent twice.
async fn flush(
    context: &mut Context,
    queue: &str,
    batch: &mut Vec<OutgoingMessage>,
    progress: &ProgressBar,
) -> Result<u64, CliError> {
    if batch.is_empty() {
        return Ok(0);
    }
    let mut random = Random::from_system();
    let request_id = format!("load-{:016x}{:016x}", random.next(), random.next());
    let mut retries = Retries::new(random);
    loop {
        match send_batch(context, queue, batch.clone(), &request_id).await {
            Ok(sent) => {
                batch.clear();
                let count = u64::try_from(sent.len()).unwrap_or(0);
                progress.set_message(format!("{} at a time", thousands(count)));
                return Ok(count);
            }
            Err(CliError::Call(status)) => match retries.next(&status) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(CliError::Call(status)),
            },
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_text_or_an_object_with_one_body() {
        let text = |text: &str| Body::Text(text.to_owned());
        assert_eq!(body_of("{".to_owned(), true), Ok(text("{")));
        assert_eq!(body_of(r#"{"text":"a","dequeue_count":3}"#.to_owned(), false), Ok(text("a")));
        let data = body_of(r#"{"data_base64":"AP8="}"#.to_owned(), false);
        assert_eq!(data, Ok(Body::Data(vec![0, 255].into())));
        for line in ["{", "{}", r#"{"text":"a","data_base64":""}"#, r#"{"data_base64":"?"}"#] {
            assert!(body_of(line.to_owned(), false).is_err(), "{line}");
        }
    }

    #[test]
    fn lines_end_at_their_breaks_and_at_the_bound() {
        let mut input: &[u8] = b"a\r\nb\n\nc";
        let lines: Vec<_> =
            std::iter::from_fn(|| next_line(&mut input).expect("readable")).collect();
        assert_eq!(lines, ["a", "b", "", "c"]);
        let long = vec![b'x'; usize::try_from(LINE_BYTES_MAX).expect("fits") + 1];
        assert!(next_line(&mut &long[..]).is_err());
    }
}
