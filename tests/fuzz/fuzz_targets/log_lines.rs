//! Lines of `trestle log append` in every format: records that any client decodes, or the rule that the line breaks.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;
use trestle_cli::{LineFormat, records_of_line};
use trestle_proto::log::v1::Record;

#[derive(Debug, Arbitrary)]
struct Input {
    format: u8,
    pattern: Option<String>,
    now: i32,
    line: Vec<u8>,
}

const FORMATS: [LineFormat; 5] = [
    LineFormat::Json,
    LineFormat::OtlpJson,
    LineFormat::Text,
    LineFormat::Syslog,
    LineFormat::Logfmt,
];

fuzz_target!(|input: Input| {
    let format = FORMATS[usize::from(input.format) % FORMATS.len()];
    let pattern = input.pattern.as_deref();
    match records_of_line(format, pattern, input.now.into(), &input.line) {
        Err(rule) => assert!(!rule.is_empty()),
        Ok(records) => {
            assert!(format == LineFormat::OtlpJson || records.len() == 1);
            for record in records {
                let record = Record::decode(record.as_slice()).expect("a record");
                assert!(
                    (0..=24).contains(&record.severity_number) || format == LineFormat::OtlpJson
                );
                assert!(matches!(record.trace_id.len(), 0 | 16), "{record:?}");
                assert!(matches!(record.span_id.len(), 0 | 8), "{record:?}");
            }
        }
    }
});
