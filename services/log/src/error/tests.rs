//! What clients receive of each error.

use super::*;

fn name() -> StreamName {
    StreamName::stored("web".to_owned())
}

#[test]
fn each_error_has_a_reason_and_those_to_retry_a_time() {
    for (error, reason, is_retried, text) in [
        (
            LogError::StreamExists(name()),
            Reason::LogStreamAlreadyExists,
            false,
            "the stream exists with other settings: stream=`web`",
        ),
        (
            LogError::StreamNotFound(name()),
            Reason::LogStreamNotFound,
            false,
            "the stream does not exist: stream=`web`",
        ),
        (
            LogError::Sequence { next: 2, expected: 1 },
            Reason::SequenceConditionNotMet,
            false,
            "the next sequence is not the expected one: next_sequence=`2`, expected=`1`",
        ),
        (
            LogError::Backlog { bytes: 9, max: 8 },
            Reason::LogBacklogFull,
            true,
            "too many records wait to be sealed: unsealed_bytes=`9`, max=`8`",
        ),
        (
            LogError::Busy,
            Reason::ServerBusy,
            true,
            "too many reads of unsealed records are in progress",
        ),
        (
            LogError::KeepsChanging(name()),
            Reason::ServerUnavailable,
            true,
            "the stream keeps changing: stream=`web`",
        ),
        (
            LogError::ClocksDisagree { offset_ms: -90_000 },
            Reason::ServerUnavailable,
            true,
            "records have times out of range, and the clocks of the server disagree: service time \
             is ahead of the wall clock by `-90000` ms",
        ),
        (LogError::Objects, Reason::ServerUnavailable, true, "the object store failed"),
        (
            LogError::ShuttingDown,
            Reason::ServerUnavailable,
            false,
            "the server is shutting down: open the stream again",
        ),
        (LogError::corrupt("head"), Reason::CorruptRecord, false, "stored data is corrupt: head"),
    ] {
        let fault = Fault::from(error);
        assert_eq!((fault.reason, fault.message.as_str()), (reason, text));
        assert_eq!(fault.retry_after.is_some(), is_retried, "{text}");
    }
}

#[test]
fn errors_of_the_object_store_do_not_reach_clients() {
    let secret = || object_store::Error::Generic { store: "s3", source: "key=secret".into() };
    let errors = [
        LogError::from(ReadSegmentError::Store(secret())),
        LogError::from(WriteObjectError::Store(secret())),
        LogError::from(MergeSegmentsError::Read(ReadSegmentError::Store(secret()))),
    ];
    for error in errors {
        assert_eq!(Fault::from(error).message, "the object store failed");
    }
}

#[test]
fn lost_bytes_of_an_object_are_corrupt_data_with_its_path() {
    let lost = ReadSegmentError::DataLoss { object: "a/1".to_owned(), detail: "b".to_owned() };
    let fault = Fault::from(LogError::from(lost));
    assert_eq!(fault.reason, Reason::CorruptRecord);
    assert!(fault.message.contains("object=`a/1`, b"), "{}", fault.message);
}

#[test]
fn a_full_disk_is_not_an_error_of_the_object_store() {
    let full = CommitError::Rejected { reason: "over a limit of storage".into() };
    let error = LogError::from(WriteObjectError::Space(full));
    assert!(matches!(error, LogError::Commit(_)), "{error}");
}
