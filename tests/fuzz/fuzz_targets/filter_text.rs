//! Texts in the filter language: every parsed text has a canonical text that parses to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trestle_table::query::{Filter, NameFilter, QueryPlan};

fuzz_target!(|text: &str| {
    match Filter::parse(text) {
        Err(error) => {
            assert!(text.is_char_boundary(error.position), "{error}");
            assert!(!error.to_string().is_empty());
        }
        Ok(None) => assert!(text.trim().is_empty(), "`{text}` is not empty"),
        Ok(Some(filter)) => {
            let canonical = filter.to_string();
            match Filter::parse(&canonical) {
                Ok(again) => assert_eq!(again.as_ref(), Some(&filter), "{canonical}"),
                // The canonical text may be longer than the language allows.
                Err(error) => assert!(canonical.len() > text.len(), "{error}"),
            }
            let plan = QueryPlan::new(Some(&filter));
            drop(plan.advice(text.len().is_multiple_of(2)));
        }
    }
    if let Ok(Some(filter)) = NameFilter::parse(text) {
        let (in_range, name) = (filter.range(), "abc");
        assert!(in_range.is_some() || !filter.matches(name));
    }
});
