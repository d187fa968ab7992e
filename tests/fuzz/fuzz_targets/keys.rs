//! Keys and small records: any bytes are read or rejected, and what is read has one spelling.
#![no_main]

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use trestle_fuzz::Key;
use trestle_kv::order;
use trestle_table::keys::{self, DeletedTable, TableId, TableRecord};

#[derive(Debug, Arbitrary)]
struct Input {
    bytes: Vec<u8>,
    one: (u64, Key, Key),
    other: (u64, Key, Key),
}

fuzz_target!(|input: Input| {
    read(&input.bytes);

    let key = |(id, pk, rk): &(u64, Key, Key)| keys::row(TableId(*id), &pk.text(), &rk.text());
    let parts = |(id, pk, rk): &(u64, Key, Key)| (*id, units(pk), units(rk));
    let (one, other) = (key(&input.one), key(&input.other));
    assert_eq!(one.cmp(&other), parts(&input.one).cmp(&parts(&input.other)));
    assert!(one == other || !one.starts_with(&other), "no key is a prefix of another");
});

fn units(key: &Key) -> Vec<u16> {
    key.text().encode_utf16().collect()
}

fn read(bytes: &[u8]) {
    let mut rest = bytes;
    if let Some(text) = order::take_text(&mut rest) {
        let mut again = Vec::new();
        order::push_text(&mut again, &text);
        assert_eq!(again, bytes[..bytes.len() - rest.len()], "one spelling only");
    }
    if let Ok(record) = TableRecord::decode(bytes) {
        assert_eq!(record.encode(), bytes);
    }
    if let Ok(record) = DeletedTable::decode(bytes) {
        assert_eq!(record.encode(), bytes);
    }
    if let Ok(id) = keys::deleted_table_id(bytes) {
        assert!(bytes.starts_with(&keys::deleted_table(id)));
    }
    if let Ok(id) = keys::decode_next_id(Some(&Bytes::copy_from_slice(bytes))) {
        assert!(bytes.starts_with(&keys::encode_next_id(id)));
    }
}
