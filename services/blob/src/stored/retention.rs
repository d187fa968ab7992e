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
    #[prost(uint64, tag = "3")]
    containers_deleted_for_seconds: u64,
}

impl Stored for Retention {
    type Form = RetentionForm;
    const WHAT: &'static str = "settings of data protection";

    fn to_form(&self) -> RetentionForm {
        let seconds = |period: Option<Duration>| period.map_or(0, |period| period.as_secs());
        RetentionForm {
            deleted_for_seconds: seconds(self.deleted_for),
            versions: self.versions,
            containers_deleted_for_seconds: seconds(self.containers_deleted_for),
        }
    }

    fn of_form(form: RetentionForm) -> Option<Self> {
        let period = |seconds| Some(Duration::from_secs(seconds)).filter(|it| !it.is_zero());
        Some(Self {
            deleted_for: period(form.deleted_for_seconds),
            versions: form.versions,
            containers_deleted_for: period(form.containers_deleted_for_seconds),
        })
    }
}
