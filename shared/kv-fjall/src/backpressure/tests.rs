use super::*;

fn set(indices: &[usize]) -> KeyspaceSet {
    indices.iter().fold(KeyspaceSet::default(), |set, index| set.with(*index))
}

#[test]
fn the_gate_closes_before_the_database_blocks_on_its_own() {
    assert!(!lags(24, 2, 1));
    assert!(lags(25, 0, 1));
    assert!(lags(0, 3, 1));
}

#[test]
fn a_keyspace_that_flushes_waits_while_there_are_too_many_journals() {
    assert!(!lags(0, 2, 4), "its flush frees the oldest one");
    assert!(lags(0, 1, 5));
    assert!(!lags(24, 0, 9), "nothing of it is flushed, so nothing would end the wait");
}

#[test]
fn a_flooded_keyspace_takes_two_thirds_and_leaves_the_others_room() {
    assert_eq!(over_part(&[60, 0, 0], 90), set(&[]));
    assert_eq!(over_part(&[61, 0, 0], 90), set(&[0]));
    assert_eq!(over_part(&[61, 10, 0], 90), set(&[0]));
    assert_eq!(over_part(&[60, 20, 11], 90), set(&[0, 1, 2]), "all of it is in use");
    assert_eq!(over_part(&[40, 40, 0], 90), set(&[0, 1]));
}

#[test]
fn a_set_holds_every_place_that_a_keyspace_can_have() {
    assert!(set(&[15]).intersects(set(&[3, 15])));
    assert!(!set(&[0, 14]).intersects(set(&[15])));
    assert_eq!(set(&[16]), KeyspaceSet::default());
}
