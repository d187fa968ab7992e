use super::*;

#[test]
fn a_domain_of_a_key_shares_its_bytes() {
    let key = Bytes::from_static(b"\x01queue7rest");
    let domain = Domain::of_key(&key, |key| DomainRef { group: 9, part: &key[1..7] });

    assert_eq!(domain, Domain::new(9, &b"queue7"[..]));
    assert_eq!(domain.part.as_ptr(), key[1..].as_ptr());
    let constant = Domain::of_key(&key, |_| DomainRef { group: 9, part: b"all" });
    assert_eq!(constant, Domain::new(9, &b"all"[..]));
}

#[test]
fn long_and_binary_parts_are_readable_in_error_texts() {
    let long = [b'x'; 200];

    assert_eq!(DomainRef { group: 1, part: b"a\0b" }.to_string(), r"0x01/a\x00b");
    assert!(DomainRef { group: 1, part: &long }.to_string().ends_with("xx... (200 bytes)"));
}
