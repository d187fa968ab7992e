use super::*;

fn keyspaces() -> Vec<Keyspace> {
    vec![
        Keyspace { name: "meta", kinds: 0x01..=0x1f, domain: trestle_kv::key_domain },
        Keyspace { name: "rows", kinds: 0x20..=0x2f, domain: trestle_kv::key_domain },
    ]
}

#[test]
fn a_written_manifest_reads_back() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");

    write(directory.path(), &keyspaces()).expect("it can be written");

    let verdict = check(directory.path(), &keyspaces()).expect("it can be read");
    assert_eq!(verdict, ManifestVerdict::Same);
}

#[test]
fn new_keyspaces_are_growth_and_missing_or_moved_ones_are_unfit() {
    let all = keyspaces();
    let some: Vec<_> = all.iter().take(1).cloned().collect();
    let moved = vec![Keyspace { name: "meta", kinds: 0x01..=0x20, domain: trestle_kv::key_domain }];
    let text = |list: &[Keyspace]| {
        let lines: Vec<_> = list.iter().map(line).collect();
        format!("trestle-kv 1\nshards 1\n{}\n", lines.join("\n"))
    };

    assert_eq!(judge(&text(&some), &all), ManifestVerdict::Grown(vec!["meta"]));
    assert!(matches!(judge(&text(&all), &some), ManifestVerdict::Unfit(_)));
    assert!(matches!(judge(&text(&some), &moved), ManifestVerdict::Unfit(_)));
}

#[test]
fn other_versions_shard_counts_and_texts_are_unfit() {
    for text in ["", "trestle-kv 2\nshards 1\n", "trestle-kv 1\nshards 2\n", "hello"] {
        assert!(matches!(judge(text, &[]), ManifestVerdict::Unfit(_)), "{text:?}");
    }
}

#[test]
fn a_format_of_another_version_is_named_with_both() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let unfit = || match check(directory.path(), &keyspaces()).expect("it can be read") {
        ManifestVerdict::Unfit(reason) => reason,
        verdict => panic!("{verdict:?}"),
    };
    sign(directory.path()).expect("it can be written");
    fs::write(directory.path().join(FILE), "trestle-kv 2\nshards 1\n").expect("written");
    assert_eq!(unfit(), "unknown format: found=`2`, known=`1`");

    fs::write(directory.path().join(WRITER), "9.2.0\n").expect("written");

    let versions = format!("written by trestle 9.2.0, this is {PROGRAM}");
    assert!(unfit().contains(&versions), "{}", unfit());
    assert!(unfit().starts_with("unknown format: found=`2`"), "{}", unfit());

    sign(directory.path()).expect("it can be written");
    assert_eq!(unfit(), "unknown format: found=`2`, known=`1`");
}
