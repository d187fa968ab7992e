use super::*;

fn rust(text: &str) -> Source {
    Source::new("a/b.rs", text)
}

#[test]
fn reports_a_long_file() {
    assert_eq!(long_files(&rust(&"\n".repeat(500))).len(), 0);
    assert_eq!(long_files(&rust(&"\n".repeat(501))).len(), 1);
}

#[test]
fn reports_a_long_line_of_code() {
    let (fits, long) = ("é".repeat(120), "é".repeat(121));

    assert_eq!(long_lines(&rust(&fits)), []);
    assert_eq!(
        long_lines(&rust(&format!("\n{long}")))[0].to_string(),
        "a/b.rs:2: line is too long"
    );
    assert_eq!(long_lines(&Source::new("a.md", &long)), []);
}

#[test]
fn reports_unfinished_work_without_an_issue() {
    let (one, other) = (concat!("TO", "DO"), concat!("FIX", "ME"));
    for open in ["", ": later", "(me)", "(#)", "(#x)"] {
        assert_eq!(open_ends(&rust(&format!("// {one}{open}"))).len(), 1, "{open}");
        assert_eq!(open_ends(&Source::new("a.sh", &format!("# {other}{open}"))).len(), 1);
    }
    assert_eq!(open_ends(&rust(&format!("// {one}(#12): later, AU{one}"))), []);
}

#[test]
fn reports_a_registry_host_outside_lock_files() {
    let text = concat!("https://static.crates", ".io/x");

    assert_eq!(registry_hosts(&Source::new("a.toml", text)).len(), 1);
    assert_eq!(registry_hosts(&Source::new("tests/fuzz/Cargo.lock", text)), []);
    assert_eq!(registry_hosts(&Source::new("a.md", "the crates of this workspace")), []);
}

#[test]
fn reports_an_empty_name() {
    assert_eq!(empty_names(&Source::new("a/util.rs", "")).len(), 1);
    assert_eq!(empty_names(&Source::new("shared/common/lib.rs", "")).len(), 1);
    assert_eq!(empty_names(&rust("fn a() {}\n    pub mod helpers {\n}")).len(), 1);
    assert_eq!(empty_names(&rust("// mod util;\nmod utility;\nmod order;")), []);
}
