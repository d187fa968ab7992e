//! Segments that are opened beside each other.

use std::time::Duration;

use trestle_objects::faulty::{FaultyObjects, ObjectFault};
use trestle_proto::log::v1::Record;

use super::*;
use crate::row::RequiredEquality;

/// Matches records of a trace.
struct OfTrace([u8; 16]);

impl RowPredicate for OfTrace {
    fn properties(&self) -> Vec<Property> {
        vec![Property::TraceId]
    }

    fn required(&self) -> Vec<RequiredEquality> {
        vec![RequiredEquality::TraceId(self.0)]
    }

    fn matches(&self, row: &dyn RowFields) -> bool {
        row.trace_id() == self.0
    }
}

/// So many segments, each with a record of another trace, on a store whose next reads are slow.
async fn traced(segments: u8) -> (LogFixture, Arc<OpenStream>, Arc<FaultyObjects>) {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = fixture.plain_stream().await;
    for trace in 1..=segments {
        let trace_id = vec![trace; 16].into();
        let record = Record { trace_id, ..record(u64::from(trace) * SECOND, &format!("{trace}")) };
        fixture.append(&stream, &[record]).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
    }
    store.plan(vec![ObjectFault::Slow; segments.into()]);
    (fixture, stream, store)
}

#[tokio::test(start_paused = true)]
async fn segments_that_a_trace_may_not_be_in_are_examined_beside_each_other() {
    let mut slow = Duration::ZERO;
    for (segments, times) in [(1, 1), (8, 1), (32, 4)] {
        for is_backward in [false, true] {
            let (fixture, stream, _) = traced(segments).await;
            let predicate = Some(Arc::new(OfTrace([segments / 2 + 1; 16])) as _);
            let plan = ReadPlan { predicate, is_backward, ..plan() };
            let began = tokio::time::Instant::now();

            let found = fixture.read(&stream, plan).await.unwrap();

            assert_eq!(texts(&found), [(segments / 2 + 1).to_string()]);
            slow = if slow.is_zero() { began.elapsed() } else { slow };
            assert!(
                began.elapsed() <= slow * times,
                "{segments}: {:?} of {slow:?}",
                began.elapsed()
            );
        }
    }
    assert!(!slow.is_zero());
}
