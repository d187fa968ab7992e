//! Batches with more bytes than their request: how many more, where they are charged, and that no work precedes that.

use std::sync::Arc;

use trestle_proto::opentelemetry::proto::{
    logs::v1::LogRecord,
    metrics::v1::{
        Histogram, HistogramDataPoint, Metric, ResourceMetrics, ScopeMetrics, metric::Data,
    },
};
use trestle_rpc::layer::shares::{Holder, SharePool};

use super::{
    logs::{log, logs, pair, scope_logs},
    *,
};

const MIB: usize = 1024 * 1024;

/// A request of points with so many buckets each, whose attributes have so many bytes.
fn histograms(points: usize, buckets: usize, attribute_bytes: usize) -> Bytes {
    let point = HistogramDataPoint {
        time_unix_nano: NOW,
        attributes: vec![pair("large", text(&"x".repeat(attribute_bytes)))],
        bucket_counts: vec![1; buckets],
        explicit_bounds: (0_u16..).take(buckets - 1).map(f64::from).collect(),
        ..HistogramDataPoint::default()
    };
    let histogram = Histogram { data_points: vec![point; points], ..Histogram::default() };
    let data = Some(Data::Histogram(histogram));
    let metric = Metric { name: "h".to_owned(), data, ..Metric::default() };
    let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }];
    ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }.encode_to_vec().into()
}

fn room_of(pool: &Arc<SharePool>) -> BatchRoom {
    let derived = DerivedBytes::new(Arc::clone(pool), Holder::account_alone("acme"));
    BatchRoom { derived: Some(derived), ..BatchRoom::default() }
}

#[test]
fn a_batch_has_at_most_128_times_the_bytes_of_its_request() {
    // 1,024 buckets with 4 KB of attributes are 4 MB, of 20 KB.
    for (points, stored) in [(1, 0), (3, 1)] {
        let request = histograms(points, 1_024, 4_000);
        let most = 128 * request.len() + MIB;

        let (batch, rejected) = batch_of::<ResourceMetrics>(&[request]);

        assert_eq!(rejected.count, (points - stored) as u64, "{}", rejected.message);
        let bytes = batch.map_or(0, |batch| batch.bytes.len());
        assert!(bytes <= most, "{bytes} {most}");
        let rule = format!("have over {} bytes", most.min(BATCH_BYTES_MAX));
        assert!(rejected.message.contains(&rule), "{rule}: {}", rejected.message);
    }
    // A histogram of many buckets with long attributes.
    assert_eq!(batch_of::<ResourceMetrics>(&[histograms(1, 160, 6_000)]).1.count, 0);
}

#[test]
fn bytes_beyond_twice_the_request_are_charged_until_the_batch_is_dropped() {
    let pool = SharePool::new("bytes", 64 * MIB);
    // The attributes of a point are in each of its records.
    let request = histograms(1, 100, 50_000);
    let uncharged = 2 * request.len() + 4096;

    let exported = export_within::<ResourceMetrics>(&[request], room_of(&pool)).unwrap();

    let bytes = exported.batches[0].bytes.len();
    assert!(bytes > 4 * MIB, "{bytes}");
    let charged = 64 * MIB - pool.free();
    assert!((bytes - uncharged..bytes).contains(&charged), "{charged} of {bytes}");
    drop(exported);
    assert_eq!(pool.free(), 64 * MIB);

    let plain = logs(None, vec![scope_logs(vec![log(&"x".repeat(50_000))])]);
    let exported = export_within::<ResourceLogs>(&[plain], room_of(&pool)).unwrap();
    assert!(exported.charged.is_none() && exported.batches.len() == 1);
}

#[test]
fn a_request_whose_bytes_cannot_be_charged_is_rejected_as_a_whole() {
    let pool = SharePool::new("bytes of expanded exports", 4 * MIB);
    for (request, is_large) in
        [(histograms(1, 120, 50_000), true), (histograms(1, 2, 50_000), false)]
    {
        let exported = export_within::<ResourceMetrics>(&[request], room_of(&pool));
        assert_eq!(exported.is_err(), is_large, "{exported:?}");
        if let Err(fault) = exported {
            assert_eq!(fault.reason, Reason::ServerBusy);
            assert!(fault.message.contains("bytes of expanded exports"), "{}", fault.message);
            assert!(fault.retry_after.is_some());
        }
    }
    let metrics = export_within::<ResourceMetrics>(&[histograms(1, 160, 30_000)], room_of(&pool));
    assert_eq!(metrics.unwrap_err().reason, Reason::ServerBusy);
    assert_eq!(pool.free(), 4 * MIB);
}

#[test]
fn a_batch_has_records_of_as_many_days_as_its_request_has_left() {
    let of_day = |day: u64| LogRecord { time_unix_nano: NOW - day * DAY, ..log("x") };
    let request = logs(None, vec![scope_logs((0..5).map(of_day).collect())]);

    let room = BatchRoom { days: 3, ..BatchRoom::default() };
    let exported = export_within::<ResourceLogs>(&[request], room).unwrap();

    let counts = (exported.batches[0].records, exported.days, exported.rejected.count);
    assert_eq!(counts, (3, 3, 2));
    assert!(exported.rejected.message.contains("at most 3 days"), "{:?}", exported.rejected);
}

#[test]
fn a_point_that_no_batch_has_room_for_is_rejected_alone() {
    // 300 records of 30 KB are 9 MB; a large request may have that in several batches, but not of one point.
    let large = histograms(1, 300, 30_000);
    let points = histograms(2, 1, 1_000_000);
    let room = BatchRoom { bytes: 96 * MIB, ..BatchRoom::default() };
    let requests = [large, points.clone(), points.clone(), points];

    let exported = export_within::<ResourceMetrics>(&requests, room).unwrap();

    assert_eq!(exported.rejected.count, 1, "{:?}", exported.rejected);
    assert!(exported.rejected.message.contains("over 8323072 bytes"), "{:?}", exported.rejected);
    let records: Vec<_> = exported.batches.iter().map(|batch| batch.records).collect();
    assert_eq!(records, [8, 4], "whole points, of two records each");
}
