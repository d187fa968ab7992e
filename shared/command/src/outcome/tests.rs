//! Tests of the module.

use std::io;

use super::*;
use crate::errors::{EXIT_CODES, Halt};

fn ended(error: CliError) -> ExitCode {
    finish(Err(error), true, None)
}

fn file(kind: io::ErrorKind) -> CliError {
    CliError::File { what: "output".to_owned(), source: io::Error::from(kind) }
}

/// The exit code, and how it is documented.
fn is_documented(code: u8, words: &str) -> bool {
    EXIT_CODES.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with(&format!("{code} ")) && line.contains(words)
    })
}

#[test]
fn an_error_without_a_call_has_the_documented_exit_code() {
    let text = || "text".to_owned();
    let connect = || CliError::Connect { endpoint: text(), cause: text() };
    for (error, code, words) in [
        (CliError::Usage(text()), 2, "usage"),
        (CliError::Rows(text()), 1, "failed"),
        (CliError::Protocol(text()), 1, "failed"),
        (CliError::Rejected, 1, "failed"),
        (file(io::ErrorKind::StorageFull), 1, "failed"),
        (CliError::Source { text: text(), busy: false }, 1, "failed"),
        (CliError::Source { text: text(), busy: true }, 5, "unavailable"),
        (connect(), 5, "unavailable"),
        (connect().misdirected("http://127.0.0.1:1", text()), 6, "wrong address"),
        (CliError::Interrupted, 130, "interrupted"),
    ] {
        let shown = format!("{error:?}");
        assert_eq!(ended(error), ExitCode::from(code), "{shown}");
        assert!(is_documented(code, words), "{shown}");
    }
}

#[test]
fn a_command_that_ended_on_the_way_has_the_exit_code_of_the_cause() {
    for (cause, code) in [(CliError::Interrupted, 130), (CliError::Usage(String::new()), 2)] {
        let at = || Halt {
            endpoint: "http://127.0.0.1:1".to_owned(),
            progress: "3 rows written".to_owned(),
            next: "continue with --resume".to_owned(),
        };

        assert_eq!(ended(cause.halted(true, at)), ExitCode::from(code));
    }
}

#[test]
fn a_closed_output_and_a_success_end_with_zero() {
    assert_eq!(finish(Ok(()), false, None), ExitCode::SUCCESS);
    assert_eq!(ended(file(io::ErrorKind::BrokenPipe)), ExitCode::SUCCESS);
}

#[tokio::test]
async fn an_error_of_the_server_is_not_explained_by_a_probe() {
    let status = tonic::Status::not_found("no such table");

    let explained = explained(status.into(), "http://127.0.0.1:1", &TlsArgs::default()).await;

    assert!(matches!(explained, CliError::Call(_)), "{explained:?}");
    assert_eq!(explained.to_string(), "no such table");
}
