use super::*;

fn table(id: u64) -> ListedTable {
    ListedTable { id, checksum: u128::from(id) << 90 | 7, global_seqno: id * 3 }
}

/// Two runs in the first level, none in the second, one of two tables in the third.
fn levels() -> Vec<Vec<Vec<ListedTable>>> {
    vec![vec![vec![table(9)], vec![table(7)]], Vec::new(), vec![vec![table(1), table(2)]]]
}

fn list() -> TableList {
    let section = |name: &str, bytes: Vec<u8>| ArchiveSection { name: name.into(), bytes };
    let sections = vec![
        section("format_version", vec![3]),
        section("tables", encode_levels(&levels())),
        section("blob_files", vec![0; 4]),
    ];
    TableList { version: 5, sections, levels: levels() }
}

/// A keyspace whose tables have these contents, listed with their checksums.
fn keyspace(database: &Path, number: u64, contents: &[(u64, &[u8])]) -> PathBuf {
    let folder = folder(database, number);
    fs::create_dir_all(folder.join(TABLES)).unwrap();
    let mut tables = Vec::new();
    for (id, bytes) in contents {
        fs::write(folder.join(TABLES).join(id.to_string()), bytes).unwrap();
        tables.push(ListedTable { id: *id, checksum: xxh3_128(bytes), global_seqno: 0 });
    }
    TableList { levels: vec![vec![tables]], ..list() }.write(&folder).unwrap();
    folder
}

fn keyspaces() -> Vec<Keyspace> {
    let keyspace = |name, kinds| Keyspace { name, kinds, domain: trestle_kv::key_domain };
    vec![keyspace("meta", 1..=9), keyspace("rows", 10..=19)]
}

fn problems(database: &Path) -> Vec<(String, FileProblem)> {
    let found = damaged(database, &keyspaces(), FileCheck::Whole).unwrap();
    found.into_iter().map(|file| (file.file, file.problem)).collect()
}

#[test]
fn levels_are_read_as_they_were_written_and_not_where_they_are_cut() {
    let bytes = encode_levels(&levels());

    assert_eq!(parse_levels(&bytes), Some(levels()));
    for end in 0..bytes.len() {
        assert_eq!(parse_levels(&bytes[..end]), None, "{end}");
    }
}

#[test]
fn a_table_with_another_kind_of_checksum_is_not_read() {
    let mut bytes = encode_levels(&[vec![vec![table(1)]]]);
    // Behind the numbers of levels, runs and tables, and the id.
    let kind = 1 + 1 + 4 + 8;
    assert_eq!(bytes[kind], 0);
    bytes[kind] = 1;

    assert_eq!(parse_levels(&bytes), None);
}

#[test]
fn a_written_list_is_read_back() {
    let folder = tempfile::tempdir().unwrap();

    list().write(folder.path()).unwrap();

    assert_eq!(TableList::read(folder.path()).unwrap(), Ok(list()));
}

#[test]
fn a_list_that_is_changed_cut_or_missing_is_named() {
    for (name, change, problem) in [
        ("current", Some(&b"short"[..]), FileProblem::Changed),
        ("v5", Some(&b"another"[..]), FileProblem::Changed),
        ("v5", None, FileProblem::Missing),
    ] {
        let folder = tempfile::tempdir().unwrap();
        list().write(folder.path()).unwrap();
        let file = folder.path().join(name);
        match change {
            Some(bytes) => fs::write(&file, bytes).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }

        assert_eq!(TableList::read(folder.path()).unwrap(), Err((file, problem)));
    }
}

#[test]
fn tables_are_compared_with_their_checksums_in_every_keyspace() {
    let root = tempfile::tempdir().unwrap();
    let database = root.path();
    keyspace(database, NAMES, &[(1, b"names")]);
    let meta = keyspace(database, 1, &[(2, b"one"), (3, b"two")]);
    let rows = keyspace(database, 2, &[(2, b"three")]);
    assert_eq!(problems(database), []);

    fs::write(meta.join(TABLES).join("3"), b"twO").unwrap();
    fs::remove_file(rows.join(TABLES).join("2")).unwrap();

    let expected = [
        ("db/keyspaces/1/tables/3".to_owned(), FileProblem::Changed),
        ("db/keyspaces/2/tables/2".to_owned(), FileProblem::Missing),
    ];
    assert_eq!(problems(database), expected);
    let found = damaged(database, &keyspaces(), FileCheck::Whole).unwrap();
    assert_eq!(
        found[0].to_string(),
        "file=`db/keyspaces/1/tables/3`, keyspace=`meta`, bytes=`3`, problem=`checksum mismatch`"
    );
    assert_eq!(found[1].keyspace, Some("rows"));
}

#[test]
fn a_keyspace_that_was_not_made_yet_is_not_damaged() {
    let root = tempfile::tempdir().unwrap();
    keyspace(root.path(), NAMES, &[(1, b"names")]);
    keyspace(root.path(), 1, &[]);

    assert_eq!(problems(root.path()), []);
}
