//! Tags, and expressions on them.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::limits::PAGE_BLOBS_MAX;
use trestle_proto::blob::v1 as proto;

use super::RequestParser;
use crate::{
    conditions::StatedTagCondition,
    find::FindBlobs,
    tags::{
        KEY_CHARS_MAX, TAGS_MAX, Tags, VALUE_CHARS_MAX,
        expression::{TagCondition, TagFilter},
        is_allowed,
    },
};

impl RequestParser {
    /// The tags of a blob.
    pub(in crate::api) fn tags(&mut self, pairs: HashMap<String, String>, field: &str) -> Tags {
        if !pairs.is_empty() {
            self.use_tags();
        }
        let mut tags: Tags = pairs.into_iter().collect();
        tags.sort_unstable();
        if tags.len() > TAGS_MAX {
            let rule = format!("must be at most {TAGS_MAX}: count=`{}`", tags.len());
            self.push(Reason::TagsTooLarge, field, rule);
        }
        for (key, value) in &tags {
            if key.is_empty() {
                self.push(Reason::EmptyTagName, field, "a key must not be empty");
            }
            for (text, chars_max, what) in
                [(key, KEY_CHARS_MAX, "key"), (value, VALUE_CHARS_MAX, "value")]
            {
                if text.chars().count() > chars_max {
                    let rule = format!("a {what} must have at most {chars_max} characters");
                    let rule = format!("{rule}: {what}=`{}`", quoted(text));
                    self.push(Reason::TagsTooLarge, field, rule);
                } else if !text.chars().all(is_allowed) {
                    let rule = format!("a {what} must be of letters, digits, space and +-./:=_");
                    let rule = format!("{rule}: {what}=`{}`", quoted(text));
                    self.push(Reason::InvalidTags, field, rule);
                }
            }
        }
        tags
    }

    /// A condition on tags; none if it is empty or rejected.
    pub(in crate::api) fn tag_condition(
        &mut self,
        text: String,
        field: &str,
    ) -> Option<StatedTagCondition> {
        if text.is_empty() {
            return None;
        }
        self.use_tags();
        let parsed = TagCondition::parse(&text);
        if let Err(error) = &parsed {
            self.push(Reason::InvalidHeaderValue, field, error.to_string());
        }
        parsed.ok().map(|condition| StatedTagCondition { text, condition })
    }
}

/// A page of blobs that a filter finds.
///
/// # Errors
/// Every violated rule.
pub(in crate::api) fn find_blobs(request: proto::FindBlobsRequest) -> Result<FindBlobs, Fault> {
    let proto::FindBlobsRequest { filter: text, container, page_size, page_token } = request;
    let mut parser = RequestParser::default();
    let filter = TagFilter::parse(&text).map_err(|error| {
        Fault::violation(Reason::InvalidQueryParameterValue, "filter", error.to_string())
    })?;
    let of_filter = filter.container.clone().unwrap_or_default();
    let (name, field) = match container.is_empty() {
        true => (of_filter, "filter"),
        false => (container, "container"),
    };
    let container = (!name.is_empty()).then(|| parser.container(name, field)).flatten();
    let size = page_size.map_or(Ok(PAGE_BLOBS_MAX), usize::try_from);
    let size = size.ok().filter(|size| *size > 0);
    if size.is_none() {
        let rule = format!("must be 1 or more: value=`{}`", page_size.unwrap_or_default());
        parser.push(Reason::OutOfRangeQueryParameterValue, "page_size", rule);
    }
    let page_size = size.unwrap_or_default().min(PAGE_BLOBS_MAX);
    parser.finish(Some(FindBlobs { filter, text, container, page_size, page_token }))
}
