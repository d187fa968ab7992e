use super::*;

fn document() -> String {
    let rows = |operations: &[&str]| {
        let row = |name: &&str| format!("| **{name}** | same; more | `a.py::b` |\n");
        operations.iter().map(row).collect::<String>()
    };
    let sections = OPERATIONS.iter();
    sections.map(|(title, operations)| format!("## {title}\n{}", rows(operations))).collect()
}

#[test]
fn reports_an_operation_without_a_row() {
    let found = |text: &str| missing_operations(&Source::new(DOCUMENT, text));
    assert_eq!(found(&document()), []);
    for (from, to) in [("**Put Message**", "Put Message"), ("## Queues", "## Others")] {
        assert!(!found(&document().replace(from, to)).is_empty(), "{from}");
    }
    assert_eq!(missing_operations(&Source::new("docs/other.md", "")), []);
}

#[test]
fn reports_a_claim_without_a_test() {
    let found = |text: &str| unproven(&Source::new(DOCUMENT, text)).len();
    assert_eq!(found(&document()), 0);
    assert_eq!(found("| a | the same as there | |"), 1);
    assert_eq!(found("| a | Same | every test |"), 0, "the word is written small");
    assert_eq!(found("| a | not there | |"), 0);
}
