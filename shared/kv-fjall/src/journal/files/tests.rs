use super::*;

#[test]
fn the_written_part_ends_with_the_last_byte_that_is_not_zero() {
    let mebibyte = 1024 * 1024;
    for (writes, end) in [
        (&[][..], 0),
        (&[(0, 1)], 1),
        (&[(PIECE as u64 - 1, 1)], PIECE as u64),
        (&[(PIECE as u64, 3)], PIECE as u64 + 1),
        (&[(5, 7), (3 * mebibyte, 7), (3 * mebibyte + 9, 0)], 3 * mebibyte + 1),
        (&[(64 * mebibyte - 1, 7)], 64 * mebibyte),
    ] {
        let file = tempfile::tempfile().expect("a file can be made");
        file.set_len(64 * mebibyte).expect("it can be long");
        for (position, byte) in writes {
            file.write_all_at(&[*byte], *position).expect("it can be written");
        }
        assert_eq!(written(&file).expect("it can be read"), end);
    }
}

#[test]
fn a_hash_is_of_the_first_bytes_and_of_no_fewer() {
    let file = tempfile::tempfile().expect("a file can be made");
    file.write_all_at(b"abcdef", 0).expect("it can be written");

    let of = |bytes| hash(&file, bytes).expect("it can be read");

    let hashes = [of(3), of(5), of(6)];
    assert_eq!(of(7), None);
    assert!(hashes.iter().all(Option::is_some) && hashes[0] != hashes[1]);
    file.write_all_at(b"X", 5).expect("it can be written");
    assert_eq!([of(3), of(5)], hashes[..2]);
    assert_ne!(of(6), hashes[2]);
}
