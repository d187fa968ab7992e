use super::*;
use crate::write_history::WriteHistory;

fn stamp(ticks: i32) -> Stamp {
    let (time, etag) = ((1, ticks), ticks.to_string());
    Stamp { time, etag }
}

/// Rows of the partition `p` and their values.
fn contents(rows: &[(&str, i64)]) -> Contents {
    let row =
        |(row, value): &(&str, i64)| (("p".to_owned(), (*row).to_owned()), (*value, stamp(1)));
    Contents { rows: rows.iter().map(row).collect(), tables: BTreeMap::new() }
}

/// A row `r` whose value 1 was acknowledged, and perhaps 2 was written after that.
fn acknowledged(maybe: Option<i64>) -> WriteHistory {
    let item = Item::Row("p".to_owned(), "r".to_owned());
    let mut history = WriteHistory::default();
    history.attempt(&item, State::Value(1));
    history.acknowledge(&item, State::Value(1), Some(stamp(1)));
    if let Some(value) = maybe {
        history.attempt(&item, State::Value(value));
    }
    history
}

#[test]
fn accepts_a_history_without_violations() {
    acknowledged(None).check(&contents(&[("r", 1)]));
    acknowledged(Some(2)).check(&contents(&[("r", 1)]));
    let whole = contents(&["0", "1", "2", "3", "4"].map(|row| (row, 7)));
    assert_eq!(whole.of(&Item::Group("p".to_owned())).0, State::Value(7));
}

#[test]
#[should_panic(expected = "is Absent, acknowledged")]
fn detects_a_lost_row() {
    acknowledged(Some(2)).check(&contents(&[]));
}

#[test]
#[should_panic(expected = "is Value(2), acknowledged")]
fn detects_a_value_that_was_never_written() {
    acknowledged(Some(3)).check(&contents(&[("r", 2)]));
}

#[test]
#[should_panic(expected = "etag")]
fn detects_a_new_value_under_an_old_version() {
    acknowledged(Some(2)).check(&contents(&[("r", 2)]));
}

#[test]
#[should_panic(expected = "half a batch")]
fn detects_a_partial_batch() {
    contents(&[("0", 7), ("1", 7)]).of(&Item::Group("p".to_owned()));
}

#[test]
#[should_panic(expected = "half a batch")]
fn detects_a_batch_that_changed_some_of_its_rows() {
    let rows = [("0", 7), ("1", 7), ("2", 7), ("3", 7), ("4", 6)];
    contents(&rows).of(&Item::Group("p".to_owned()));
}

#[test]
#[should_panic(expected = "never written:")]
fn detects_a_row_that_was_never_written() {
    let written = Item::Row("p".to_owned(), "r".to_owned());
    contents(&[("r", 1), ("s", 1)]).has_only(&[&written]);
}
