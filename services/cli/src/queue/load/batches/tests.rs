//! Tests of the module.

use serde_json::json;
use trestle_proto::queue::v1::outgoing_message::Body;

use super::*;

fn at(byte: u64) -> Position {
    Position { byte, line: byte / 7, row: byte / 7 }
}

fn messages(texts: &[&str]) -> Vec<OutgoingMessage> {
    let body = |text: &str| Some(Body::Text(text.to_owned()));
    let message = |text: &&str| OutgoingMessage { body: body(text), ..Default::default() };
    texts.iter().map(message).collect()
}

#[test]
fn a_load_resumes_under_the_request_id_of_its_batch_unless_that_changed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, kept) = (directory.path().join("lines"), directory.path().join("kept"));
    std::fs::write(&file, "x".repeat(1000)).expect("written");
    let open = |resume| {
        let mut load = Checkpoint::new(json!({ "queue": "jobs" }), Batches::new());
        load.keep(kept.clone(), Some(&file)).expect("a file");
        load.load(resume).map(|()| load)
    };
    let mut first = open(false).expect("new");
    let batches = [messages(&["a", "b"]), messages(&["c"]), messages(&["C"])];
    let (middle, end) = (at(700), at(800));
    let before = begin(&mut first, middle, &batches[0]).expect("written");
    first.state.sent = middle;
    let id = begin(&mut first, end, &batches[1]).expect("written");
    assert!(before != id && id.len() <= 64, "{id}");

    let mut resumed = open(true).expect("it exists");
    assert_eq!((resumed.state.sent, resumed.state.pending_end()), (middle, Some(end)));
    assert_eq!(begin(&mut resumed, end, &batches[1]).expect("as it was"), id);
    assert_ne!(begin(&mut resumed, end, &batches[2]).expect("written"), id, "changed");
    assert!(open(false).is_err(), "not started again by accident");

    resumed.remove().expect("removed");
    let mut again = open(false).expect("new");
    let again_id = begin(&mut again, middle, &batches[0]).expect("written");
    assert_ne!(again_id, before, "another load");
    assert!(open(false).is_err(), "something may be sent");
    again.remove().expect("removed");
    assert_eq!(open(true).expect("new").state.sent, Position::default());
}
