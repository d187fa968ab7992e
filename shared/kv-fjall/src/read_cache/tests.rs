use super::*;

fn cached(group: u64, key: &[u8]) -> CachedReads {
    CachedReads { group, reads: vec![CachedRead { hash: xxh3_64(key), value: Some(None) }] }
}

fn holds(recent: &RecentWrites, group: u64, key: &[u8]) -> bool {
    recent.still_newest(&cached(group, key), 0, xxh3_64(key)).is_some()
}

#[test]
fn a_value_holds_until_a_later_group_writes_its_key() {
    let (written, other) = (Bytes::from_static(b"k"), b"other");
    let mut recent = RecentWrites::default();

    recent.record(5, [(&written, &None)].into_iter(), &HotKeys::default());

    assert!(holds(&recent, 5, &written), "cached with the write");
    assert!(!holds(&recent, 4, &written), "cached before the write");
    assert!(holds(&recent, 4, other), "never written");
}

#[test]
fn a_value_read_before_a_forgotten_group_is_read_again() {
    let keys = |from: usize, count: usize| -> Vec<Bytes> {
        (from..from + count).map(|number| number.to_string().into()).collect()
    };
    let mut recent = RecentWrites::default();

    let hot_keys = HotKeys::default();
    recent.record(1, keys(0, 10).iter().map(|key| (key, &None)), &hot_keys);
    recent.record(2, keys(10, KEYS_MAX).iter().map(|key| (key, &None)), &hot_keys);

    assert!(!holds(&recent, 0, b"unrelated"), "group 1 is forgotten");
    assert!(holds(&recent, 1, b"unrelated"));
    assert!(!holds(&recent, 1, b"10"));
    assert!(holds(&recent, 2, b"10"));
    assert_eq!(recent.written.len(), KEYS_MAX, "forgotten keys take no memory");
}

#[test]
fn a_key_written_again_is_remembered_by_its_last_group() {
    let key = Bytes::from_static(b"k");
    let mut recent = RecentWrites::default();
    let hot_keys = HotKeys::default();
    recent.record(1, [(&key, &None)].into_iter(), &hot_keys);
    recent.record(2, [(&key, &None)].into_iter(), &hot_keys);

    let many: Vec<Bytes> = (0..KEYS_MAX - 1).map(|n| n.to_string().into()).collect();
    recent.record(3, many.iter().map(|key| (key, &None)), &hot_keys);

    assert!(!holds(&recent, 1, &key), "group 1 is forgotten, its key is not");
    assert!(holds(&recent, 2, &key));
}
