use super::*;

#[test]
fn lists_have_a_bound_for_all_a_share_for_each_account_and_none_for_the_server() {
    let memory = ReadMemory::default();
    let account = |name| memory.of(&AccountName::parse(name).expect("a name"));
    let (one, other) = (account("one"), account("other"));

    let held: Vec<_> = std::iter::from_fn(|| one.list(1024 * 1024).ok()).collect();

    assert!((64..=72).contains(&held.len()), "three quarters: {}", held.len());
    assert!(one.list(1024 * 1024).is_err());
    let of_other = other.list(4 * 1024 * 1024).expect("a share of its own");
    let of_server = memory.list(LISTS_BYTES).expect("never rejected");
    drop((held, of_other, of_server));
    assert_eq!(memory.free(), (LISTS_BYTES, AHEAD_BYTES));
}

#[test]
fn the_largest_change_of_one_list_fits() {
    let account = ReadMemory::default().of(&AccountName::development());
    account.list(LISTS_BYTES / 2).expect("fits");
}
