//! Groups as bytes, for tests and fuzzing.

use xxhash_rust::xxh3::xxh3_64;

/// A group as the database writes it, with one row for each key and value.
#[must_use]
pub fn encode_group(seqno: u64, rows: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut items = Vec::new();
    for (key, value) in rows {
        let (key_bytes, value_bytes) = (length(key).to_le_bytes(), length(value));
        items.extend([2, 0, 0]);
        items.extend(1_u64.to_le_bytes());
        items.extend(key_bytes.iter().take(2));
        items.extend(value_bytes.to_le_bytes());
        items.extend(value_bytes.to_le_bytes());
        items.extend(*key);
        items.extend(*value);
    }
    let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let mut group = vec![1];
    group.extend(count.to_le_bytes());
    group.extend(seqno.to_le_bytes());
    group.extend(&items);
    group.push(3);
    group.extend(xxh3_64(&items).to_le_bytes());
    group.extend(b"FJL\x03");
    group
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}
