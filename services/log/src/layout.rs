//! Where the objects of segments are: `ACCOUNT/stream=NAME/date=YYYY-MM-DD/ID.parquet`, with the day of the records in
//! UTC. Other engines read such folders as columns.

use trestle_model::{etag::format_time, name::AccountName, time::Ticks};

use crate::{names::StreamName, stream::SegmentId};

/// Nanoseconds of a day.
pub(crate) const DAY_NANOS: u64 = 86_400_000_000_000;
/// Characters of a date.
const DATE_CHARS: usize = 10;

/// The path of the object of a segment of a day since 1970.
pub(crate) fn path(account: &AccountName, stream: &StreamName, day: u64, id: SegmentId) -> String {
    let (account, date, id) = (account.as_str(), date(day), id.0);
    format!("{account}/stream={stream}/date={date}/{id:016x}.parquet")
}

/// The date of a day since 1970.
fn date(day: u64) -> String {
    let seconds = i64::try_from(day * (DAY_NANOS / 1_000_000_000)).unwrap_or(i64::MAX);
    let time = Ticks::from_unix(seconds, 0).map(format_time).unwrap_or_default();
    time.get(..DATE_CHARS).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_stream_and_the_date_of_its_records() {
        let account = AccountName::parse("acme").unwrap();
        let stream = StreamName::stored("web.api".to_owned());
        let path = |day| path(&account, &stream, day, SegmentId(0xAB));

        assert_eq!(path(0), "acme/stream=web.api/date=1970-01-01/00000000000000ab.parquet");
        assert!(path(20_782).contains("/date=2026-11-25/"));
        // The last day that a time in nanoseconds has.
        assert!(path(u64::MAX / DAY_NANOS).contains("/date=2554-07-21/"));
    }
}
