//! Tests of the errors of a source, which name it, and of the default checkpoint.

use std::cell::Cell;

use clap::{Args as _, Command, FromArgMatches as _};
use trestle_command::flags::ClientFlags;

use super::*;

/// A server that is never called.
pub(super) fn unused_server() -> TrestleSource {
    let command = ClientFlags::augment_args(Command::new("trestle"));
    let matches = command.get_matches_from(["trestle", "--endpoint", "127.0.0.1:1"]);
    let client = ClientFlags::from_arg_matches(&matches).unwrap().resolve().unwrap();
    TrestleSource {
        session: Session::new(&client).unwrap(),
        name: "http://there:1".to_owned(),
        account: Some("acme".to_owned()),
        checkpoint: PathBuf::from("there-1.trestle-import"),
    }
}

fn renamed(text: &str) -> Renamed {
    text.parse().unwrap()
}

fn copy_args() -> CopyArgs {
    CopyArgs {
        into_existing: false,
        resume: false,
        checkpoint: None,
        skip_blobs: false,
        snapshots: false,
        parallel: 8,
    }
}

#[test]
fn a_checkpoint_is_named_by_the_address() {
    for (endpoint, name) in [
        ("http://127.0.0.1:50051", "127.0.0.1-50051"),
        ("https://tables.example/", "tables.example"),
        ("http://[::1]:7", "---1--7"),
    ] {
        assert_eq!(file_name(endpoint), name);
    }
}

#[test]
fn containers_are_not_selected_where_blobs_are_skipped() {
    let selection = Selection { containers: vec![renamed("docs")], ..Selection::default() };
    let without_blobs = CopyArgs { skip_blobs: true, ..copy_args() };

    let error = check(&selection, &without_blobs).unwrap_err().to_string();

    assert_eq!(error, "--container cannot be used with --skip-blobs");
    assert!(check(&selection, &copy_args()).is_ok());
    assert!(check(&Selection::default(), &without_blobs).is_ok());
    let twice = Selection { tables: vec![renamed("a"), renamed("A=b")], ..Selection::default() };
    assert!(check(&twice, &copy_args()).is_err());
}

#[tokio::test]
async fn an_error_of_the_source_names_it_and_whether_it_is_temporary() {
    let server = unused_server();
    for (status, text, is_temporary) in [
        (
            Status::permission_denied("no"),
            "the source rejects a read: no: endpoint=`http://there:1`",
            false,
        ),
        (
            Status::deadline_exceeded("late"),
            "the source rejects a read: late: endpoint=`http://there:1`",
            true,
        ),
        (
            Status::unavailable("busy"),
            "the source rejects a read: busy: endpoint=`http://there:1`",
            true,
        ),
    ] {
        match server.failed(status, "a read") {
            CliError::Source { text: found, busy } => {
                assert_eq!((found.as_str(), busy), (text, is_temporary));
            }
            other => panic!("an error of the source: {other}"),
        }
    }
    let unconnected =
        CliError::Connect { endpoint: "http://there:1".to_owned(), cause: "refused".to_owned() };
    let error = server.failed(unconnected, "a read");
    assert!(matches!(&error, CliError::Source { busy: true, .. }), "{error}");
    let text = "the source cannot be reached for a read: refused: endpoint=`http://there:1`";
    assert_eq!(error.to_string(), text);
    // An error of the copy itself is not one of the source.
    let other = server.failed(CliError::Protocol("broken".to_owned()), "a read");
    assert!(matches!(other, CliError::Protocol(_)), "{other}");
}

#[tokio::test]
async fn a_selected_name_that_is_absent_or_malformed_is_an_error_of_its_flag() {
    let (server, name) = (unused_server(), renamed("orders=before"));
    let find = async |status: Status| {
        let call = async || Err::<Response<()>, Status>(status.clone());
        server.find(call, "--table", &name).await.unwrap_err()
    };

    let absent = find(Status::not_found("absent")).await;
    let malformed = find(Status::invalid_argument("must be short")).await;
    let rejected = find(Status::permission_denied("no")).await;

    let text = "--table: the source does not have it: value=`orders=before`, \
                endpoint=`http://there:1`";
    assert!(matches!(&absent, CliError::Usage(found) if found == text), "{absent}");
    let text = "--table: must be short: value=`orders=before`";
    assert!(matches!(&malformed, CliError::Usage(found) if found == text), "{malformed}");
    let text = "the source rejects --table=orders=before: no: endpoint=`http://there:1`";
    assert_eq!(rejected.to_string(), text);
}

#[tokio::test]
async fn a_call_is_repeated_while_its_error_is_temporary() {
    let (server, calls) = (unused_server(), Cell::new(0));
    let call = async || {
        calls.set(calls.get() + 1);
        match calls.get() {
            3 => Ok(Response::new("answer")),
            _ => Err(Status::unavailable("busy")),
        }
    };

    let answered = server.call(call, "a read").await.unwrap();

    assert_eq!((answered, calls.get()), ("answer", 3));
    let call = async || Err::<Response<()>, Status>(Status::internal("broken"));
    let error = server.call(call, "a read").await.unwrap_err();
    assert!(error.to_string().starts_with("the source rejects a read: broken"), "{error}");
}

#[tokio::test]
async fn policies_that_may_not_be_read_are_skipped_and_other_errors_are_not() {
    let server = unused_server();
    let policy = AccessPolicy { id: "readers".to_owned(), ..AccessPolicy::default() };
    let mut plan = ImportPlan::default();
    let list = |found: Vec<AccessPolicy>| found;

    let call = async || Ok(Response::new(vec![policy.clone()]));
    let read = server.policies(call, "table `a`", list, &mut plan).await.unwrap();
    let call = async || Err(Status::permission_denied("no"));
    let skipped = server.policies(call, "table `b`", list, &mut plan).await.unwrap();
    let call = async || Err(Status::internal("broken"));
    let error = server.policies(call, "table `c`", list, &mut plan).await.unwrap_err();

    assert_eq!((read, skipped), (vec![policy], Vec::new()));
    let expected = Skipped::new("table `b`", "access policies", "no".to_owned());
    assert_eq!(plan.skipped, [expected]);
    let text = "the source rejects policies of table `c`: broken: endpoint=`http://there:1`";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn a_checkpoint_is_continued_with_the_same_selection_only() {
    let trestle = |selection: Selection| Trestle {
        server: unused_server(),
        selection,
        tables: Vec::new(),
        queues: Vec::new(),
        containers: Vec::new(),
        parallel: 8,
        skip_blobs: false,
        snapshots: true,
    };
    let everything = trestle(Selection::default()).identity().unwrap();
    let selection = Selection { tables: vec![renamed("a=b")], ..Selection::default() };
    let one = trestle(selection);

    let identity = one.identity().unwrap();

    assert_eq!(identity["server"], "http://there:1");
    assert_eq!((&identity["account"], &identity["--snapshots"]), (&json!("acme"), &json!(true)));
    assert_eq!(identity["--table"], json!(["a=b"]));
    assert_ne!(identity, everything);
    assert_eq!(one.checkpoint(), PathBuf::from("there-1.trestle-import"));
}
