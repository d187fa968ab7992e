//! Records of sources with right clocks, at a server whose clocks are wrong or disagree.

use std::time::Duration;

use super::{exports::export_logs_at, *};
use crate::{
    fixture::{START, texts},
    layout::DAY_NANOS,
};

const DAY_SECONDS: i64 = 86_400;

#[tokio::test]
async fn wall_clock_that_is_days_behind_rejects_no_record() {
    let fixture = LogFixture::new();
    fixture.step(-3 * DAY_SECONDS);
    let api = LogApi::new(fixture.logs.clone(), &crate::fixture::meter());

    let exported = export_logs_at(&api, &[START]).await.unwrap();
    create(&api, "appended").await;
    append(&api, append_of("appended", &[record(0, "right")])).await.unwrap();

    assert_eq!(exported.partial_success, None);
    let stored = records_of(&read(&api, read_of("appended")).await.unwrap());
    assert_eq!(texts(&stored), ["right"]);
}

#[tokio::test]
async fn server_that_was_started_under_a_clock_days_behind_accepts_the_right_times() {
    let fixture = LogFixture::new();
    // The clock was behind when the store was started, and is right from then on.
    fixture.step(3 * DAY_SECONDS);
    let api = LogApi::new(fixture.logs.clone(), &crate::fixture::meter());

    let exported = export_logs_at(&api, &[START + 3 * DAY_NANOS]).await.unwrap();

    assert_eq!(exported.partial_success, None);
}

#[tokio::test]
async fn while_the_clocks_disagree_no_record_is_lost_in_a_partial_success() {
    let fixture = LogFixture::new();
    let api = LogApi::new(fixture.logs.clone(), &crate::fixture::meter());
    create(&api, "web").await;
    let times = [START, START + 20 * DAY_NANOS];
    let early = append_of("web", &[record(20 * DAY_NANOS, "early")]);
    for seconds in [61, -122] {
        fixture.step(seconds);

        let status = export_logs_at(&api, &times).await.unwrap_err();
        let appended = append(&api, early.clone()).await.unwrap_err();

        for status in [status, appended] {
            assert_eq!(status.code(), Code::Unavailable, "{status:?}");
            assert!(status.message().contains("the clocks of the server disagree"), "{status:?}");
            let retry = tonic_types::StatusExt::get_details_retry_info(&status);
            assert!(retry.is_some_and(|retry| retry.retry_delay.is_some()));
        }
        assert!(read(&api, read_of("web")).await.unwrap().iter().all(|it| it.records.is_empty()));
    }

    // The wall clock is right again.
    fixture.step(61);
    fixture.advance(Duration::from_secs(1));
    let exported = export_logs_at(&api, &times).await.unwrap();
    assert_eq!(exported.partial_success.map(|partial| partial.rejected_log_records), Some(1));
    let status = append(&api, early).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
}
