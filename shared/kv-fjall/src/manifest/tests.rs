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
