use super::*;

#[test]
fn a_key_that_is_read_twice_has_one_id_in_small_and_large_sets() {
    let mut set = ReadSet::default();
    let key = |number: usize| format!("{number:04}");
    let ids: Vec<_> = (0..100).map(|number| set.add(key(number))).collect();

    let again: Vec<_> = (0..100).map(|number| set.add(key(number))).collect();

    assert_eq!(ids, again);
    assert_eq!(set.keys().len(), 100);
    let values: Vec<_> = (0..100).map(|number| Some(Bytes::from(key(number)))).collect();
    let reads = Reads::new(&set, &values);
    for (number, id) in ids.into_iter().enumerate() {
        assert_eq!(
            (reads.key(id), reads.get(id)),
            (&key(number).into(), Some(&key(number).into()))
        );
    }
}

#[test]
fn the_stronger_lock_of_a_domain_counts() {
    let domain = |name: &'static str| Domain::new(1, name);
    let mut spec = ChangeSpec::new(domain("own"));
    for (name, lock) in
        [("b", Lock::Shared), ("a", Lock::Shared), ("b", Lock::Exclusive), ("b", Lock::Shared)]
    {
        spec.also(domain(name), lock);
    }

    spec.sort_domains();

    let lock = |name| spec.lock_of(domain(name).borrowed());
    assert_eq!(spec.also.len(), 2);
    assert_eq!(
        ["own", "a", "b", "c"].map(lock),
        [Some(Lock::Exclusive), Some(Lock::Shared), Some(Lock::Exclusive), None]
    );
}
