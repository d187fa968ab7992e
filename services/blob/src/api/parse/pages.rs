//! Requests on page blobs.

#[cfg(test)]
mod tests;

use trestle_model::fault::Reason;
use trestle_model::limits::{PAGE_BLOB_BYTES_MAX, PAGE_RANGES_MAX};
use trestle_proto::blob::v1::{self as proto, update_page_blob_request::SequenceNumber};

use super::RequestParser;
use crate::pages::{PAGE_BYTES, PageUpdate, SequenceConditions, SequenceUpdate};

/// The largest sequence number. Azure.
const SEQUENCE_MAX: u64 = i64::MAX as u64;

/// Conditions on the sequence number.
pub(in crate::api) fn sequence_conditions(
    conditions: Option<proto::SequenceConditions>,
) -> SequenceConditions {
    let proto::SequenceConditions { at_most, less_than, equal } = conditions.unwrap_or_default();
    SequenceConditions { at_most, less_than, equal }
}

impl RequestParser {
    /// The length of a page blob.
    pub(in crate::api) fn page_blob_size(&mut self, size: u64) -> u64 {
        if !size.is_multiple_of(PAGE_BYTES) || size > PAGE_BLOB_BYTES_MAX {
            let rule = format!("must be a multiple of {PAGE_BYTES}, at most {PAGE_BLOB_BYTES_MAX}");
            self.push(Reason::InvalidHeaderValue, "size", format!("{rule}: value=`{size}`"));
        }
        size
    }

    /// A sequence number.
    pub(in crate::api) fn sequence_number(&mut self, number: u64, field: &str) -> u64 {
        if number > SEQUENCE_MAX {
            let rule = format!("must be at most {SEQUENCE_MAX}: value=`{number}`");
            self.push(Reason::InvalidHeaderValue, field, rule);
        }
        number
    }

    /// A number of bytes that begins or ends pages.
    pub(in crate::api) fn pages(&mut self, bytes: u64, field: &str) -> u64 {
        if !bytes.is_multiple_of(PAGE_BYTES) {
            let rule = format!("must be a multiple of {PAGE_BYTES}: value=`{bytes}`");
            self.push(Reason::InvalidPageRange, field, rule);
        }
        bytes
    }

    /// The length of pages, in bytes.
    pub(in crate::api) fn pages_length(&mut self, bytes: u64, field: &str) -> u64 {
        if bytes == 0 {
            self.push(Reason::InvalidPageRange, field, "must be at least one page");
        }
        self.pages(bytes, field)
    }

    /// What becomes of a sequence number.
    fn sequence_update(&mut self, update: SequenceNumber) -> Option<SequenceUpdate> {
        match update {
            SequenceNumber::Set(number) => {
                Some(SequenceUpdate::Set(self.sequence_number(number, "set")))
            }
            SequenceNumber::Raise(number) => {
                Some(SequenceUpdate::Raise(self.sequence_number(number, "raise")))
            }
            SequenceNumber::Increment(true) => Some(SequenceUpdate::Increment),
            SequenceNumber::Increment(false) => {
                let rule = "must be true, or absent: value=`false`";
                self.push(Reason::InvalidInput, "increment", rule);
                None
            }
        }
    }

    /// What becomes of a page blob.
    pub(in crate::api) fn page_update(
        &mut self,
        size: Option<u64>,
        sequence: Option<SequenceNumber>,
    ) -> PageUpdate {
        if size.is_none() && sequence.is_none() {
            let rule = "required: the new length, or set, raise or increment";
            self.push(Reason::InvalidInput, "size", rule);
        }
        PageUpdate {
            size: size.map(|size| self.page_blob_size(size)),
            sequence: sequence.and_then(|update| self.sequence_update(update)),
        }
    }

    /// Most ranges in a page.
    pub(in crate::api) fn ranges_max(&mut self, page_size: Option<i32>) -> usize {
        let size = page_size.map_or(Ok(PAGE_RANGES_MAX), usize::try_from);
        let size = size.ok().filter(|size| *size > 0);
        if size.is_none() {
            let rule = format!("must be 1 or more: value=`{}`", page_size.unwrap_or_default());
            self.push(Reason::OutOfRangeQueryParameterValue, "page_size", rule);
        }
        size.unwrap_or_default().min(PAGE_RANGES_MAX)
    }
}
