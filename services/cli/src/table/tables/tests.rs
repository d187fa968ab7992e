use super::*;

#[test]
fn a_prefix_becomes_a_range_of_lower_case_names() {
    assert_eq!(prefix_filter("Log").unwrap(), "TableName ge 'log' and TableName lt 'loh'");
    assert_eq!(prefix_filter("z").unwrap(), "TableName ge 'z' and TableName lt '{'");
    assert_eq!(prefix_filter("a9").unwrap(), "TableName ge 'a9' and TableName lt 'a:'");
}

#[test]
fn rejects_a_prefix_that_no_name_can_have() {
    for prefix in ["", "a'b", "é", "a b"] {
        assert!(matches!(prefix_filter(prefix), Err(CliError::Usage(_))), "{prefix}");
    }
}
