//! Filters of records: every parsed text has a canonical text that parses to the same, and every error a position in
//! it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trestle_log::fuzzing::canonical_filter;

fuzz_target!(|text: &str| {
    match canonical_filter(text) {
        Err((position, error)) => {
            assert!(text.is_char_boundary(position), "{error}");
            assert!(!error.is_empty());
        }
        Ok(None) => assert!(text.trim().is_empty(), "`{text}` is not empty"),
        Ok(Some(canonical)) => match canonical_filter(&canonical) {
            Ok(again) => assert_eq!(again.as_ref(), Some(&canonical), "{text}"),
            // The canonical text may be longer than the language allows.
            Err((_, error)) => assert!(canonical.len() > text.len(), "{error}"),
        },
    }
});
