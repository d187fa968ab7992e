//! The form of the settings on what is kept of blobs.

use std::time::Duration;

use prost::Message;

use super::Stored;
use crate::record::Retention;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RetentionForm {
    #[prost(uint64, tag = "1")]
    deleted_for_seconds: u64,
    #[prost(bool, tag = "2")]
    versions: bool,
}

impl Stored for Retention {
    type Form = RetentionForm;
    const WHAT: &'static str = "settings of data protection";

    fn to_form(&self) -> RetentionForm {
        let deleted_for_seconds = self.deleted_for.map_or(0, |period| period.as_secs());
        RetentionForm { deleted_for_seconds, versions: self.versions }
    }

    fn of_form(form: RetentionForm) -> Option<Self> {
        let RetentionForm { deleted_for_seconds, versions } = form;
        let deleted_for = Some(deleted_for_seconds).filter(|seconds| *seconds > 0);
        Some(Self { deleted_for: deleted_for.map(Duration::from_secs), versions })
    }
}
