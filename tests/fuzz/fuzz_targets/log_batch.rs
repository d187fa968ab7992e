//! Encoded records of logs: what the service accepts is stored, read and sealed without a loss, and everything else is
//! rejected without a panic.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;
use trestle_log::fuzzing::{
    batch_of_record, batches_of_logs, batches_of_metrics, batches_of_spans, reads_json,
    sealed_records, segments, unsealed_records,
};
use trestle_proto::log::v1::Record;

#[derive(Debug, Arbitrary)]
enum Input {
    /// Messages `ResourceLogs`, as a collector sends them; they are also read as `ResourceMetrics` and `ResourceSpans`.
    Exports(Vec<Vec<u8>>),
    /// A record, a scope, and whether it is sealed.
    Record(Vec<u8>, Vec<u8>, bool),
    /// A batch, as it would be stored.
    Batch(Vec<u8>),
    /// A column of a segment.
    Json(String, String),
}

fuzz_target!(|input: Input| match input {
    Input::Exports(resources) => {
        read_all(batches_of_metrics(&resources));
        read_all(batches_of_spans(&resources));
        read_all(batches_of_logs(&resources));
    }
    Input::Record(record, scope, is_sealed) => {
        let Some(batch) = batch_of_record(&record, &scope) else { return };
        let read = unsealed_records(&batch).expect("an accepted record is read");
        let unsealed = Record::decode(read[0].as_ref()).expect("a record");
        if is_sealed {
            let sealed = Record::decode(seal(&batch).as_ref()).expect("a record");
            // By bytes, since NaN does not equal itself.
            assert_eq!(sealed.encode_to_vec(), unsealed.encode_to_vec(), "{unsealed:?}");
        }
    }
    Input::Batch(batch) => drop(unsealed_records(&batch)),
    Input::Json(json, key) => drop(reads_json(&json, &key)),
});

/// Reads the records of the batches of a request.
fn read_all(batches: Option<Vec<(bytes::Bytes, u32)>>) {
    for (batch, records) in batches.unwrap_or_default() {
        let read = unsealed_records(&batch).expect("accepted records are read");
        assert_eq!(read.len(), usize::try_from(records).expect("a number"));
        for record in read {
            Record::decode(record).expect("a record that any client decodes");
        }
    }
}

/// The only record of a batch, read of its segment.
fn seal(batch: &[u8]) -> bytes::Bytes {
    let (object, checksums) = segments(batch).expect("accepted records are sealed").remove(0);
    let size = u64::try_from(object.len()).expect("a size");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let read = sealed_records(object, size, checksums);
    runtime.expect("a runtime starts").block_on(read).expect("sealed records are read").remove(0)
}
