//! Expressions on tags of blobs: parsed or rejected at a position within the text, never a panic.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trestle_blob::{TagCondition, TagFilter};

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    text: &'a str,
    tags: Vec<(String, String)>,
}

fuzz_target!(|input: Input<'_>| {
    let Input { text, tags } = input;
    match TagCondition::parse(text) {
        Err(error) => assert!(text.is_char_boundary(error.position), "{error}"),
        Ok(condition) => drop(condition.holds(&tags)),
    }
    match TagFilter::parse(text) {
        Err(error) => assert!(text.is_char_boundary(error.position), "{error}"),
        // A filter is a condition too, unless it names a container.
        Ok(filter) if filter.container.is_none() => {
            let condition = TagCondition::parse(text).expect("a filter is a condition");
            assert_eq!(filter.holds(&tags), condition.holds(&tags), "{text}");
        }
        Ok(filter) => drop(filter.holds(&tags)),
    }
});
