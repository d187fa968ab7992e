use std::io::Cursor;

use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::super::encode_group;
use super::*;

/// An item as the database writes it, with every field as it is given.
struct ItemBytes<'a> {
    value_type: u8,
    compression: u8,
    key: &'a [u8],
    value_bytes: u32,
    stored: &'a [u8],
}

impl Default for ItemBytes<'_> {
    fn default() -> Self {
        Self { value_type: 0, compression: 0, key: b"\x05k", value_bytes: 1, stored: b"v" }
    }
}

impl ItemBytes<'_> {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![2, self.value_type, self.compression];
        bytes.extend(7_u64.to_le_bytes());
        bytes.extend(u16::try_from(self.key.len()).unwrap().to_le_bytes());
        bytes.extend(self.value_bytes.to_le_bytes());
        bytes.extend(u32::try_from(self.stored.len()).unwrap().to_le_bytes());
        bytes.extend(self.key);
        bytes.extend(self.stored);
        bytes
    }
}

/// A group of items whose hash is right.
fn group(items: &[Vec<u8>]) -> Vec<u8> {
    let all = items.concat();
    let mut bytes = vec![1];
    bytes.extend(u32::try_from(items.len()).unwrap().to_le_bytes());
    bytes.extend(9_u64.to_le_bytes());
    bytes.extend(&all);
    bytes.push(3);
    bytes.extend(xxh3_64(&all).to_le_bytes());
    bytes.extend(b"FJL\x03");
    bytes
}

fn read(bytes: &[u8]) -> Result<LoggedGroup, GroupFault> {
    GroupReader::new(Cursor::new(bytes), bytes.len() as u64).read(0).unwrap()
}

/// The reason why a group of one item is damaged.
fn damage(item: &ItemBytes<'_>) -> String {
    match read(&group(&[item.encode()])).unwrap_err() {
        GroupFault::Damaged(reason) => reason,
        GroupFault::Unsupported(reason) => panic!("{reason}"),
    }
}

#[test]
fn a_group_has_its_rows_its_end_and_its_hash() {
    let deleted = ItemBytes { value_type: 1, value_bytes: 0, stored: b"", ..Default::default() };
    let bytes = group(&[ItemBytes::default().encode(), deleted.encode()]);
    let read = read(&bytes).unwrap();
    assert_eq!((read.end, read.seqno), (bytes.len() as u64, 9));
    let rows: Vec<_> =
        read.items.iter().map(|item| (&item.key[..], item.value.as_deref())).collect();
    assert_eq!(rows, [(&b"\x05k"[..], Some(&b"v"[..])), (&b"\x05k"[..], None)]);
    let mut reader = GroupReader::new(Cursor::new(&bytes), read.end);
    assert_eq!(reader.check_before(read.end).unwrap(), Some(read.check));
    for elsewhere in [0, 1, 12, read.end - 1, read.end + 1, u64::MAX] {
        assert_eq!(reader.check_before(elsewhere).unwrap(), None, "{elsewhere}");
    }
}

#[test]
fn groups_follow_each_other_and_the_last_may_be_torn() {
    let first = encode_group(5, &[(b"\x05a", b"1"), (b"\x05b", b"")]);
    let second = encode_group(6, &[(b"\x05c", &[7; 100_000])]);
    let both = [first.clone(), second.clone()].concat();
    let mut reader = GroupReader::new(Cursor::new(&both), both.len() as u64);
    let found = reader.read(0).unwrap().unwrap();
    assert_eq!((found.end, found.items.len()), (first.len() as u64, 2));
    let found = reader.read(found.end).unwrap().unwrap();
    assert_eq!((found.end, found.seqno), (both.len() as u64, 6));
    for cut in [1, 14, 50_000, second.len() - 1] {
        let torn = &both[..first.len() + cut];
        let mut reader = GroupReader::new(Cursor::new(torn), torn.len() as u64);
        reader.read(0).unwrap().unwrap();
        let fault = reader.read(first.len() as u64).unwrap().unwrap_err();
        assert!(matches!(fault, GroupFault::Damaged(_)), "{cut}: {fault:?}");
    }
}

#[test]
fn nothing_is_read_behind_the_end() {
    let first = encode_group(5, &[(b"\x05a", b"1")]);
    let both = [first.clone(), encode_group(6, &[(b"\x05b", b"2")])].concat();
    let mut reader = GroupReader::new(Cursor::new(&both), first.len() as u64);
    assert_eq!(reader.end(), first.len() as u64);
    reader.read(0).unwrap().unwrap();
    assert!(reader.read(first.len() as u64).unwrap().is_err());
    let mut reader = GroupReader::new(Cursor::new(&both), first.len() as u64 - 1);
    assert!(reader.read(0).unwrap().is_err(), "a part of a group is none");
}

#[test]
fn values_that_do_not_decompress_to_their_length_are_damage() {
    let plain = vec![b'x'; 10_000];
    let stored = lz4_flex::block::compress(&plain);
    let packed = |value_bytes, stored| ItemBytes {
        compression: 1,
        value_bytes,
        stored,
        ..ItemBytes::default()
    };
    let whole = read(&group(&[packed(10_000, &stored).encode()])).unwrap();
    assert_eq!(whole.items[0].value.as_deref(), Some(&plain[..]));
    for length in [0, 1, 9_999, 10_001, 8 * 1024 * 1024] {
        let reason = damage(&packed(length, &stored));
        assert!(reason.contains("decompressed") || reason.contains("not possible"), "{reason}");
    }
    let mut changed = stored.clone();
    changed.truncate(stored.len() / 2);
    assert!(damage(&packed(10_000, &changed)).contains("cannot be decompressed"));
    assert!(damage(&packed(10_000, &[0xff; 40])).contains("cannot be decompressed"));
}

#[test]
fn lengths_that_no_engine_writes_are_damage() {
    let key = vec![5; 60_001];
    let long = vec![0; 200];
    let wrong = [
        ItemBytes { key: b"", ..Default::default() },
        ItemBytes { key: &key, ..Default::default() },
        ItemBytes { compression: 1, value_bytes: 8 * 1024 * 1024 + 1, ..Default::default() },
        ItemBytes { compression: 1, value_bytes: u32::MAX, ..Default::default() },
        ItemBytes { compression: 1, value_bytes: 10, stored: &long, ..Default::default() },
    ];
    for item in wrong {
        let reason = damage(&item);
        assert!(reason.contains("a length that is not possible"), "{reason}");
    }
    let longest = ItemBytes { key: &key[..60_000], ..Default::default() };
    assert_eq!(read(&group(&[longest.encode()])).unwrap().items[0].key.len(), 60_000);
}

#[test]
fn items_that_this_engine_does_not_write_are_not_supported() {
    let weak = ItemBytes { value_type: 2, value_bytes: 0, stored: b"", ..Default::default() };
    let mut clear = vec![4];
    clear.extend(7_u64.to_le_bytes());
    for (items, expected) in [
        (vec![weak.encode()], "another type: type=`2`"),
        (vec![clear.clone()], "a keyspace was cleared"),
        (vec![ItemBytes::default().encode(), clear], "a keyspace was cleared"),
    ] {
        match read(&group(&items)).unwrap_err() {
            GroupFault::Unsupported(reason) => assert!(reason.contains(expected), "{reason}"),
            GroupFault::Damaged(reason) => panic!("{reason}"),
        }
    }
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    let bytes = encode_group(5, &[(b"\x05a", b"one"), (b"\x05b", &[9; 40])]);
    // Behind the start, which no hash covers: the order of groups does.
    for at in 13..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(read(&changed).is_err(), "{at}");
    }
    let mut changed = bytes.clone();
    changed[3] ^= 1;
    assert!(read(&changed).is_err(), "another number of items");
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_or_rejected_and_never_more_than_there_are(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        from in 0_u64..500,
    ) {
        let mut reader = GroupReader::new(Cursor::new(&bytes), bytes.len() as u64);
        if let Ok(Ok(group)) = reader.read(from) {
            prop_assert!(group.end <= bytes.len() as u64);
        }
        let _ = reader.check_before(from);
    }

    #[test]
    fn groups_of_any_rows_are_read_as_they_were_written(
        rows in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 1..60), prop::collection::vec(any::<u8>(), 0..300)),
            1..12,
        ),
        seqno in 1_u64..,
    ) {
        let pairs: Vec<_> = rows.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let bytes = encode_group(seqno, &pairs);
        let read = read(&bytes).unwrap();
        let found: Vec<_> = read
            .items
            .iter()
            .map(|item| (&item.key[..], item.value.as_deref().unwrap()))
            .collect();
        prop_assert_eq!(found, pairs);
        prop_assert_eq!(read.seqno, seqno);
    }
}
