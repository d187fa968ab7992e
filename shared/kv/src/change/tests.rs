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

#[test]
fn writes_apply_in_their_order_whichever_way_they_are_collected() {
    let put = |key: &'static str| Write::Put { key: key.into(), value: "v".into() };
    let delete = |key: &'static str| Write::Delete { key: key.into() };
    let expected = vec![put("b"), delete("a"), put("a")];
    let mut called = Writes::with_capacity(3);
    called.put("b", "v").delete("a").put("a", "v");
    let mut extended = Writes::from(put("b"));
    extended.extend([delete("a")]);
    extended.push(put("a"));

    for writes in [called, extended, Writes::from(expected.clone())] {
        assert_eq!((writes.as_slice(), writes.len()), (&*expected, 3));
        assert_eq!(writes.into_iter().collect::<Writes>(), expected.clone().into());
    }
    let keys: Vec<_> = expected.iter().map(Write::key).collect();
    assert_eq!(keys, ["b", "a", "a"]);
    assert!(Writes::new().is_empty() && !Writes::from(put("a")).is_empty());
}

#[test]
fn an_absent_key_has_no_value_and_its_own_name() {
    let mut set = ReadSet::default();
    let (absent, present) = (set.add("absent"), set.add("present"));
    let values = [None, Some(Bytes::from_static(b"value"))];
    let reads = Reads::new(&set, &values);

    assert_eq!((reads.get(absent), reads.key(absent)), (None, &Bytes::from_static(b"absent")));
    assert_eq!(reads.get(present), Some(&Bytes::from_static(b"value")));
}
