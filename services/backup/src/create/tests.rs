use super::*;

#[test]
fn a_directory_without_a_store_or_with_half_of_one_is_not_backed_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let store = DataDirectory { path, rules: crate::tests::rules() };
    let error = check(&store, "to").unwrap_err().to_string();
    assert!(error.contains("there is no store"), "{error}");
    std::fs::write(folder.path().join(RESTORING), "").unwrap();
    let error = check(&store, "to").unwrap_err().to_string();
    assert!(error.contains("did not finish"), "{error}");
}

#[test]
fn ids_are_apart_from_each_other() {
    let (first, second) = (new_id(), new_id());
    assert_ne!(first, second);
    assert!(first.bytes().all(|it| it == b'-' || it.is_ascii_alphanumeric()), "{first}");
}
