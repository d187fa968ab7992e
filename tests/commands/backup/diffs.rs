//! `backup diff` of tables that are larger than a message, and have unusual keys.

use super::*;

/// The entities of a table as a file, with keys in an order that is not that of UTF-8.
fn file(
    backups: &Backups,
    name: &str,
    entities: impl Iterator<Item = (String, String, u32)>,
) -> String {
    let path = backups.text(name);
    let line = |(partition, row, value): (String, String, u32)| {
        let entity = serde_json::json!({ "PartitionKey": partition, "RowKey": row, "v": value });
        format!("{entity}\n")
    };
    fs::write(&path, entities.map(line).collect::<String>()).unwrap();
    path
}

fn keys(number: u32) -> (String, String) {
    let row = match number % 4 {
        0 => format!("\u{10000}{number}"),
        1 => format!("\u{ff21}{number}"),
        2 => format!("r'{number}"),
        _ => format!("R{number}"),
    };
    (["", "a", "A", "\u{1f600}"][number as usize / 4 % 4].to_owned(), row)
}

#[test]
fn every_difference_of_a_large_table_is_shown_once() {
    let backups = Backups::new();
    let server = backups.serve("data");
    let entities = |numbers: &mut dyn Iterator<Item = u32>, value: fn(u32) -> u32| {
        let entity = |number| {
            let (partition, row) = keys(number);
            (partition, row, value(number))
        };
        numbers.map(entity).collect::<Vec<_>>()
    };
    let before = file(&backups, "before.jsonl", entities(&mut (0..6000), |it| it).into_iter());
    succeeds(&server, &["table", "create", "large"]);
    succeeds(&server, &["table", "import", "large", &before]);
    backups.create();
    let changed = entities(&mut (0..6000).step_by(7), |it| it + 1);
    let added = entities(&mut (6000..6100), |it| it);
    let after = file(&backups, "after.jsonl", changed.into_iter().chain(added));
    succeeds(&server, &["table", "import", "large", &after, "--mode", "replace"]);
    for number in [1, 4321] {
        let (partition, row) = keys(number);
        succeeds(&server, &["entity", "delete", "large", "-p", &partition, "-r", &row]);
    }

    let target = backups.text("target");
    let diff = ["backup", "diff", &target, "--table", "large", "-o", "jsonl"];
    let found = succeeds(&server, &diff).output;
    let mut found: Vec<_> = found
        .lines()
        .map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| record[name].as_str().unwrap().to_owned();
            ((text("partition_key"), text("row_key")), text("change"))
        })
        .collect();
    let in_order = |pair: &[((String, String), String)]| {
        let units = |keys: &(String, String)| {
            let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
            (units(&keys.0), units(&keys.1))
        };
        units(&pair[0].0) < units(&pair[1].0)
    };
    assert!(found.windows(2).all(in_order), "in the order of keys");
    let change = |number: u32| match number {
        1 | 4321 => Some("removed"),
        6000.. => Some("added"),
        number => (number % 7 == 0).then_some("changed"),
    };
    let expected = (0..6100).filter_map(|number| Some((keys(number), change(number)?.to_owned())));
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}
