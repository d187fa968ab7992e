use super::*;
use crate::{manifest::tests::manifest, window::tests::name};

#[test]
fn a_backup_whose_manifest_cannot_be_read_is_listed_with_the_reason() {
    let shown = record("a", Err("it is missing".to_owned()), "to", &Coverage::default());
    assert_eq!(shown, json!({ "id": "a", "target": "to", "state": "it is missing" }));
}

#[test]
fn how_far_a_backup_can_be_restored_is_shown_where_windows_follow_it() {
    let shown = |windows| {
        let base = BackupManifest {
            newest: Some(6),
            ..BackupManifest { line: Some("a".to_owned()), ..manifest("a") }
        };
        record("a", Ok(base), "to", &Coverage::new(windows))
    };
    assert_eq!(shown(Vec::new())[UNTIL], Value::Null);
    assert_eq!(shown(vec![name("a", 0, [8, 9, 9])])[UNTIL], Value::Null);
    let until = shown(vec![name("a", 0, [5, 9, 9])]);
    assert!(until[UNTIL].is_string(), "{until}");
}

#[test]
fn damage_is_in_the_state_of_a_backup() {
    let state = |count| {
        let mut damaged = manifest("a");
        damaged.damage.count = count;
        record("a", Ok(damaged), "to", &Coverage::default())["state"].clone()
    };
    assert_eq!((state(0), state(1)), (json!("complete"), json!("with damage")));
}
