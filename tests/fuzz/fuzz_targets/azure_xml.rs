//! Documents of Azure Storage: any bytes are read or rejected, and what was read is written and
//! read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trestle_azure::xml;
use trestle_proto::queue::v1::{Message, message::Body};

fuzz_target!(|document: &[u8]| {
    if let Ok(policies) = xml::read_policies(document) {
        let written = xml::write_policies(&policies);
        assert_eq!(xml::read_policies(written.as_bytes()), Ok(policies));
    }
    if let Ok(properties) = xml::read_properties(document) {
        let written = xml::write_properties(&properties);
        let again = xml::read_properties(written.as_bytes()).expect("what was written is read");
        // Metrics that are off have no further detail when they are written.
        assert_eq!(xml::write_properties(&again), written);
    }
    if let Ok(tags) = xml::read_tags(document) {
        let written = xml::write_tags(&tags);
        assert_eq!(xml::read_tags(written.as_bytes()), Ok(tags));
    }
    if let Ok(settings) = xml::read_blob_settings(document) {
        let written = xml::write_blob_settings(&settings);
        let again = xml::read_blob_settings(written.as_bytes()).expect("what was written is read");
        assert_eq!(xml::write_blob_settings(&again), written);
    }
    if let Ok(blocks) = xml::read_blocks(document) {
        assert!(blocks.len() <= trestle_model::limits::BLOCKS_MAX);
    }
    if let Ok(Some(text)) = xml::read_message(document) {
        let message = Message { body: Some(Body::Text(text.clone())), ..Message::default() };
        let written = xml::write_peeked(&[message]);
        let inside = written
            .split_once("<DequeueCount>0</DequeueCount>")
            .map(|(_, rest)| rest.trim_end_matches("</QueueMessagesList>"));
        let document = format!("<QueueMessage>{}", inside.expect("the element before the text"));
        assert_eq!(xml::read_message(document.as_bytes()), Ok(Some(text)));
    }
});
