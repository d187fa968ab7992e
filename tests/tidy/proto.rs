//! Rules on contracts.

use crate::source::{Finding, Source};

/// Services, methods, messages, enums, their fields and values that have no comment above them.
pub(crate) fn uncommented(source: &Source) -> Vec<Finding> {
    // Clients that are tests bring copies of public contracts along.
    if source.extension() != "proto" || source.path.starts_with("tests/") {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let is_commented = |index: usize| index > 0 && lines[index - 1].starts_with("//");
    let is_first = |index: usize| index == 0 || !is_continued(lines[index - 1]);
    let found = lines
        .iter()
        .enumerate()
        .filter(|(index, line)| declares(line) && is_first(*index) && !is_commented(*index));
    found.map(|(index, line)| source.finding(index, format!("no comment on `{line}`"))).collect()
}

fn declares(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    match first {
        "message" | "enum" | "service" | "rpc" | "oneof" => true,
        "syntax" | "option" | "import" | "package" | "reserved" => false,
        _ if first.starts_with("//") => false,
        _ => line.contains(" = "),
    }
}

/// Whether a declaration continues after a line.
fn is_continued(line: &str) -> bool {
    !(line.is_empty() || line.starts_with("//") || line.ends_with([';', '{', '}']))
}

#[test]
fn reports_an_element_without_a_comment() {
    let uncommented_in = |text: &str| uncommented(&Source::new("a.proto", text)).len();

    let fine = "syntax = \"proto3\";\n\n// A.\nmessage A {\n  // B.\n  string b = 1 [\n\
        (c) = D\n  ];\n\
        \n  // E.\n  oneof e {\n    // F.\n    int32 f = 2;\n  }\n  reserved 9;\n}\n";
    assert_eq!(uncommented_in(fine), 0);
    for comment in ["// A.\n", "  // B.\n", "  // E.\n", "    // F.\n"] {
        assert_eq!(uncommented_in(&fine.replace(comment, "")), 1, "{comment}");
    }
    assert_eq!(uncommented_in("service S {\n  rpc M(A) returns (B);\n}\n"), 2);
    assert_eq!(uncommented_in("// E.\nenum E {\n  E_UNSPECIFIED = 0;\n}\n"), 1);
}
