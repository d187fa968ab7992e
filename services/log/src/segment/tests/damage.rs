//! Segments that were damaged or cut short.

use super::*;

async fn read_all(source: Arc<ObjectSource>) -> Result<usize, ReadSegmentError> {
    let metadata = load_metadata(source.as_ref()).await?;
    let read = all(0..u64::MAX, Direction::Forward);
    let mut reader = SegmentReader::new(source, metadata, read);
    let mut rows = 0;
    while reader.next_row().await?.is_some() {
        rows += 1;
    }
    Ok(rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_flipped_bit_is_data_loss(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let segment = seal(&SegmentSchema::new(promoted()), &[SampleBatch::of(many(300))], 0).remove(0);
        let mut damaged = segment.bytes.to_vec();
        let at = at.index(damaged.len());
        damaged[at] ^= 1_u8 << bit;
        let damaged = WrittenSegment { bytes: damaged.into(), ..segment };

        let result = block_on(async {
            read_all(stored(&ObjectArea::in_memory(), "a/1.parquet", &damaged).await).await
        });

        let Err(ReadSegmentError::DataLoss { object, .. }) = result else {
            panic!("read {result:?}");
        };
        prop_assert_eq!(object, "a/1.parquet");
    }
}

#[test]
fn an_object_that_is_absent_or_shorter_is_data_loss() {
    let segment = seal(&SegmentSchema::new(vec![]), &[SampleBatch::of(many(10))], 0).remove(0);
    block_on(async {
        let area = ObjectArea::in_memory();
        let checksums = segment.checksums.clone();
        let absent = ObjectSource::new(area.clone(), "2.parquet".into(), 100, checksums.clone());
        let result = read_all(Arc::new(absent)).await;
        assert!(matches!(result, Err(ReadSegmentError::DataLoss { .. })), "{result:?}");

        let size = segment.bytes.len() as u64;
        let cut_off = segment.bytes.slice(..segment.bytes.len() - 1);
        area.store.put(&Path::from("3.parquet"), cut_off.into()).await.unwrap();
        let shorter = ObjectSource::new(area, "3.parquet".into(), size, checksums);
        let result = read_all(Arc::new(shorter)).await;
        assert!(matches!(result, Err(ReadSegmentError::DataLoss { .. })), "{result:?}");
    });
}

#[test]
fn content_that_is_not_a_segment_is_data_loss() {
    for content in [&b""[..], b"PAR1", b"PAR1PAR1PAR1", &[0; 1000]] {
        let bytes = bytes::Bytes::from_static(content);
        let checksums = checksums::checksums_of(&bytes);
        let mut segment =
            seal(&SegmentSchema::new(vec![]), &[SampleBatch::of(many(1))], 0).remove(0);
        (segment.bytes, segment.checksums) = (bytes, checksums);
        let result = block_on(async {
            read_all(stored(&ObjectArea::in_memory(), "1.parquet", &segment).await).await
        });
        assert!(matches!(result, Err(ReadSegmentError::DataLoss { .. })), "{result:?}");
    }
}
